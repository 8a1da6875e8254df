"""The pure core: views in, plans out.

No I/O, no clock, no randomness, no environment: time and everything observed come in as fields of
a frozen view, everything to be done leaves as a `Plan` (plan.py).
"""
