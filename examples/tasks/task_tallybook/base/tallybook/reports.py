"""Statements over periods. See requirements/period-reports.yaml."""
