"""The only room that knows kopf. It watches BenchmarkRuns and passes on what it hears: no patches,
no finalizers, no Events, no peering.
"""
