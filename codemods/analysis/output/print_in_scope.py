"""What is `print` at this place? A module may bind the name itself, and then nobody but that binding knows who prints.

`print = accelerator.print` prints once for each node, `print = logger.info if rank == 0 else …` on rank 0 alone.
"""

from __future__ import annotations

import ast

from codemods.analysis.bindings import Binding, bindings_of
from codemods.analysis.names import dotted, last, qualified
from codemods.files.source import SourceModule

PRINTS = frozenset({"print", "builtins.print", "rich.print", "pprint.pprint"})
_STREAMS = frozenset({"stdout", "stderr"})


def goes_to_terminal(call: ast.Call) -> bool:
    """False for `print(..., file=log)`."""
    target = next((k.value for k in call.keywords if k.arg == "file"), None)
    return target is None or last(dotted(target)) in _STREAMS


def is_print_of_python(module: SourceModule, name: ast.Name) -> bool:
    """True where the scope of the call does not bind `print`, or binds nothing but Python's with arguments of its own."""
    return all(_hands_on(module, bound) for bound in bindings_of(module, name))


def _hands_on(module: SourceModule, bound: Binding) -> bool:
    value = bound.value
    if bound.parameter or bound.part or value is None:
        return False
    if isinstance(value, ast.Call) and qualified(module, value.func) == "functools.partial" and value.args:
        value = value.args[0]  # `functools.partial(print, flush=True)`
    return isinstance(value, (ast.Name, ast.Attribute)) and qualified(module, value) in PRINTS
