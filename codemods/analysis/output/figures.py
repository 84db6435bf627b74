"""Figures of matplotlib: pyplot keeps each until it is closed, on every rank that made it."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from codemods.analysis.names import dotted, last, qualified
from codemods.files.source import SourceModule, walk, walk_scope

_CLOSES = frozenset({"close", "clf"})
_MAKES = frozenset({"figure", "subplots", "subplot_mosaic"})


def releases_figures(module: SourceModule, statements: Sequence[ast.stmt]) -> bool:
    """True where the statements close figures that were made outside of them: under a guard the other ranks would keep theirs."""
    inside = [n for s in statements for n in walk(s)]
    closed = [n for n in inside if isinstance(n, ast.Call) and _is_of_pyplot(module, n, _CLOSES)]
    if not closed:
        return False
    bound = {n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    named = [a.id for c in closed for a in c.args if isinstance(a, ast.Name)]
    if any(name not in bound for name in named):
        return True
    return len(named) < len(closed) and _is_made_above(module, statements)


def _is_made_above(module: SourceModule, statements: Sequence[ast.stmt]) -> bool:
    """True where the figure that is the current one, which a bare `plt.close()` closes, is made above the statements."""
    home = module.function_of(statements[0]) or module.tree
    made = [n.lineno for n in walk_scope(home) if isinstance(n, ast.Call) and _is_of_pyplot(module, n, _MAKES)]
    first, end = statements[0].lineno, statements[-1].end_lineno or statements[-1].lineno
    return bool(made) and not any(first <= line <= end for line in made) and min(made) < first


def _is_of_pyplot(module: SourceModule, call: ast.Call, names: frozenset[str]) -> bool:
    return last(dotted(call.func)) in names and qualified(module, call.func).startswith(("matplotlib.pyplot.", "pylab."))
