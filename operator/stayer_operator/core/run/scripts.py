"""Scripts of agents, read once: YAML is slow, and a run is planned many times."""

from functools import lru_cache

from stayer_evaluator.episode.steps import BadScript, parse_script


@lru_cache(maxsize=64)
def script_problems(text: str) -> tuple[str, ...]:
    """Everything that is wrong with a script; empty when it can be run."""
    try:
        parse_script(text)
    except BadScript as error:
        return error.problems
    return ()


@lru_cache(maxsize=64)
def gold_units(text: str) -> tuple[str, ...]:
    """Units whose gold patch a sound script applies. Raises BadScript for another one."""
    return parse_script(text).units
