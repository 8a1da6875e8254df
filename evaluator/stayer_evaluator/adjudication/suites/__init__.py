"""Suite adapters: how a task's tests are run, read and controlled. Pure; one module each.

An adapter turns a target (a unit, the whole suite, a canary) into a command, a log into cases, and
ships canaries that run by the same command. Adding one touches no control flow: `by_name` below.
"""
