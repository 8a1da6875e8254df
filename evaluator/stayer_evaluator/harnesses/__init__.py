"""Harnesses as data: one description file and one transcript parser each.

A description says what is started, what is written before, and how an exit is read; nothing in the
recorder's control flow knows a harness by name.
"""
