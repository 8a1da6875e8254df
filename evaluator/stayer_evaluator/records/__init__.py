"""Wire models shared by operator, recorder, adjudicator, relay and CLI.

Only data and its validation: no I/O, no clocks. Every document carries its schema name, so that a
reader can refuse what it does not know. Unknown fields are refused: a typo must not be a default.
"""
