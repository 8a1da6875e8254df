"""The adjudicator: works a trial's queue and says what each snapshot is worth.

`gate`, `checkpoint`, `difflines`, `results` and `parsers` are pure; `suites` are data and small
pure code; `bench`, `inventory`, `worker` and `session` do the talking. Nothing here believes what
the workspace or its processes claim of themselves.
"""
