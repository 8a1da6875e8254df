"""Workspace states: found by a walk, stored as packs and manifests, restored byte for byte.

Everything that touches a workspace works through directory descriptors and never follows a link:
the tree belongs to an untrusted agent that may change it at any moment (security.md W1-W13).
Nothing here knows rounds, harnesses or verdicts.
"""
