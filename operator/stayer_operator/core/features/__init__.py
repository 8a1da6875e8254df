"""What the nodes' runtime can do for trial pods, found out by a small probe pod. Pure."""
