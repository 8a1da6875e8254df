"""The progress endpoint: small cumulative reports of the sidecars, for eyes and metrics only.

Nothing is decided by them; a report that is lost, late or false changes no score and no phase.
"""
