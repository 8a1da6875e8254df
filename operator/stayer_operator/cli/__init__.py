"""`stayer`: the command line. One module a command group; it reads, asks and prints.

Decisions live in `core`, numbers in `stayer_evaluator.scoring`; here they are only shown. The
`kubernetes` package is imported nowhere else.
"""
