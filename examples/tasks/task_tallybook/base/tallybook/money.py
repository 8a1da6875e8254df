"""Amounts of commodities. See requirements/money-amounts.yaml."""
