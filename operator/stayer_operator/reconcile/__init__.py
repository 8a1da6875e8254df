"""Between the core and the world: read a view, have it planned, carry it out, over and over.

Nothing is decided here that a test of the core could not see.
"""
