"""Plain-text double-entry bookkeeping."""

__version__ = "0.1.0"
