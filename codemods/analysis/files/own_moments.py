"""Is a path made of a clock that is read to the microsecond? No two processes read the same: each has a folder of its own."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.bound_values import assigned
from codemods.analysis.names import dotted
from codemods.analysis.paths import origin_text
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy

_MOMENT = lazy(
    r"\b(?:now|today|utcnow)\(.*%f|%f.*\b(?:now|today|utcnow)\(|\b(?:time|perf_counter|monotonic)_ns\(|"
    r"(?<!\w)str\((?:\w+\.)*(?:now|utcnow)\(\)\)|\bnow\(\)\.isoformat\(\)",
    re.DOTALL,
)
_WORDS = (b"%f", b"_ns(", b"now())", b"isoformat(")
_DEPTH = 3


def is_named_by_moment(module: SourceModule, path: ast.expr, depth: int = _DEPTH) -> bool:
    """True where it is made of such a time, by names and by what this file alone puts into `args.folder`."""
    if not any(module.holds(word) for word in _WORDS):
        return False
    if _MOMENT.search(origin_text(module, path)):
        return True
    return depth > 0 and any(is_named_by_moment(module, value, depth - 1) for value in _put_into(module, path))


def _put_into(module: SourceModule, path: ast.expr) -> Iterator[ast.expr]:
    """The one value of each field that the path, or what its names were given, reads."""
    made = [path, *(v for n in walk(path) if isinstance(n, ast.Name) for v in assigned(module, n, n.id)[:2])]
    fields = {dotted(n) for value in made for n in walk(value) if isinstance(n, ast.Attribute) and dotted(n)}
    stores = [(dotted(t), n.value) for n in module.nodes(ast.Assign) for t in n.targets if isinstance(t, ast.Attribute)]
    for field in fields:
        values = [value for name, value in stores if name == field]
        if len(values) == 1:
            yield values[0]
