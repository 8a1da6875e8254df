"""The object store: protocol, key layout, S3, relay and memory implementations, retries."""
