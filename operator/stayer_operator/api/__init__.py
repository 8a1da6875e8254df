"""The contract with users and with Kubernetes: object models, names, conditions, reasons.

The pydantic models here are the one source of `crds/`. Imports nothing but pydantic, the standard
library and the wire records; knows nothing of deciding, I/O or clocks.
"""
