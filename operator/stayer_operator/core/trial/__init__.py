"""The life of a Trial: what is known of it (view), what follows (rules), as one Plan. Pure."""
