"""Task directories in the public format: loading, checking, graph, digests, bundles, pushing.

Runs on a person's machine (`stayer tasks`), where the directory is trusted; only `bundle.extract`
and `graph` are also used inside pods.
"""
