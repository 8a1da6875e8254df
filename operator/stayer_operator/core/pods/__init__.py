"""Pods of a trial as plain manifests. Pure builders: settings and a Trial in, a dictionary out."""
