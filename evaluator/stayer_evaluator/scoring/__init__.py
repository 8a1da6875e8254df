"""Metrics and tables: pure functions from records to numbers and text; no I/O, no clocks."""
