"""The commands, one module each.

A module of this package is a command when it defines

- `NAME`: what the user types,
- `HELP`: one line,
- `configure(parser)`: adds its options to an `argparse` parser,
- `run(args, context)`: does the work and returns the exit code.

Modules are found by name, so a new command needs no change elsewhere.
"""

import importlib
import pkgutil
from types import ModuleType


def discover() -> dict[str, ModuleType]:
    """All commands by the name that the user types, sorted."""
    found = {}
    for entry in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{entry.name}")
        if hasattr(module, "NAME"):
            found[module.NAME] = module
    return dict(sorted(found.items()))
