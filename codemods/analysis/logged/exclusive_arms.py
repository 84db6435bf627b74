"""Two logs of one key in arms of a test of the settings: a run comes to one of them, and never to the other."""

from __future__ import annotations

import ast

from codemods.analysis.logged.log_calls import LogCall
from codemods.analysis.names import dotted
from codemods.analysis.wrapped.wrapper_tests import arms_exclude
from codemods.files.source import SourceModule

_SETTINGS = frozenset(
    {"args", "hparams", "cfg", "config", "conf", "opt", "opts", "options", "params", "settings", "hps", "flags", "FLAGS"}
)
_PLAIN = (ast.BoolOp, ast.UnaryOp, ast.Compare, ast.Constant, ast.boolop, ast.unaryop, ast.cmpop, ast.Tuple, ast.List, ast.Set)


def never_in_one_run(one: LogCall, other: LogCall) -> bool:
    """True where a test that nothing of a run changes lets only one of the two calls be reached."""
    if one.module is not other.module or one.function is not other.function:
        return False
    return arms_exclude(one.module, one.call, other.call) and _is_of_settings(_parting(one.module, one.call, other.call))


def _parting(module: SourceModule, one: ast.AST, other: ast.AST) -> ast.expr | None:
    """The test that stands over both: the innermost `if` that holds the two."""
    over = {id(up) for up in module.ancestors(one)}
    shared = next((up for up in module.ancestors(other) if isinstance(up, (ast.If, ast.IfExp)) and id(up) in over), None)
    return shared.test if shared is not None else None


def _is_of_settings(test: ast.expr | None) -> bool:
    """True for `self.args.wide and not self.args.deep`: all that is read stands below an object of settings."""
    if test is None:
        return False
    stack: list[ast.AST] = [test]
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.Name, ast.Attribute)):
            if not set(dotted(node).split(".")[:-1]) & _SETTINGS:
                return False
        elif isinstance(node, _PLAIN):
            stack += ast.iter_child_nodes(node)
        else:
            return False
    return True
