"""The query language. See requirements/query-language.yaml."""
