"""One real single-node Kubernetes on a bare Debian machine.

This package builds the cluster's programs, starts and ends their processes and cleans up after
them. It knows nothing of the product that is tested on the cluster.
"""
