"""Days, spans and intervals. See requirements/date-periods.yaml."""
