"""Everything of Stayer that runs beside a task: recording, adjudicating, storing, scoring.

Knows nothing of the Kubernetes API; the operator imports from here, never the reverse.
"""
