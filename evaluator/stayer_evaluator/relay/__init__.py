"""The evidence relay: the only way from a trial's pods to the object store (design.md §4).

Stateless. It knows tokens, trial documents and keys; it never looks into the objects it passes on.
"""
