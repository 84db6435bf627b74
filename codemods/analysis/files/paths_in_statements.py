"""What files statements open, write or delete, and to which open files they write: as far as it is written there."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bound_values import assigned
from codemods.analysis.files.opened_paths import is_mode
from codemods.analysis.names import dotted, last
from codemods.data import host_only
from codemods.files.source import SourceModule, walk

_ON_HANDLES = frozenset({"write", "writelines", "writerow", "writerows", "writeheader", "flush"})
_PATH_KEYWORDS = frozenset({"f", "file", "filename", "fname", "fp", "path", "path_or_buf", "filepath", "path_or_buffer"})
_TAKES_TWO = frozenset({"rename", "renames", "replace", "move", "copy", "copy2", "copyfile", "copytree"})
_LEAVES_THE_FIRST = frozenset({"copy", "copy2", "copyfile", "copytree"})  # what is copied stays what it was
_TAKES_PATH = (
    {"open", "to_csv", "to_json", "to_parquet", "to_pickle", "to_excel", "savefig"}
    | {last(name) for name in host_only.WRITERS} - {"dump", "safe_dump", "dump_all", "writer", "DictWriter", "save_image"}
)  # fmt: skip


def paths_in(statement: ast.stmt) -> list[ast.expr]:
    """The expressions of the files that a statement opens, writes or deletes, as far as they are written there."""
    return _paths(statement, whole=True)


def changed_paths_in(statement: ast.stmt) -> list[ast.expr]:
    """Those without what is only copied from: a copy changes its target alone, a move both."""
    return _paths(statement, whole=False)


def _paths(statement: ast.stmt, *, whole: bool) -> list[ast.expr]:
    """whole: with the sources of copies."""
    out: list[ast.expr] = []
    for node in walk(statement):
        if not isinstance(node, ast.Call):
            continue
        name = last(dotted(node.func)) or getattr(node.func, "attr", "")
        if isinstance(node.func, ast.Attribute) and name == "open" and node.args and is_mode(node.args[0]):
            out.append(node.func.value)
        elif name in _TAKES_PATH and node.args:
            first = 0 if whole or name not in _LEAVES_THE_FIRST else 1
            out += node.args[first : 2 if name in _TAKES_TWO else 1]
        elif name in _TAKES_PATH or name == "save":
            out += [k.value for k in node.keywords if k.arg in _PATH_KEYWORDS]
        elif name in host_only.WRITING_METHODS - _ON_HANDLES and isinstance(node.func, ast.Attribute):
            out.append(node.func.value)
    return out


def handles_in(statement: ast.stmt) -> list[ast.expr]:
    """The open files that a statement writes to, but for those that it opens itself: their paths stand in it.

    The same name may be another file elsewhere in the function, `with open(…) as f` again.
    """
    opened = {n.id for w in walk(statement) if isinstance(w, ast.withitem) and w.optional_vars is not None
              for n in walk(w.optional_vars) if isinstance(n, ast.Name)}  # fmt: skip
    calls = [n for n in walk(statement) if isinstance(n, ast.Call)]
    handles = [c.func.value for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr in _ON_HANDLES]
    handles += [k.value for c in calls if dotted(c.func) == "print" for k in c.keywords if k.arg == "file"]
    handles += [c.args[1] for c in calls if last(dotted(c.func)) == "dump" and len(c.args) > 1]
    return [h for h in handles if not (isinstance(h, ast.Name) and h.id in opened)]


def opened_for(module: SourceModule, call: ast.Call) -> list[ast.Call]:
    """What opened the handle that a line is printed to, that is written to, or that a `dump` is handed."""
    own = [call.func.value] if isinstance(call.func, ast.Attribute) else []
    given = (*own, *call.args, *(k.value for k in call.keywords if k.arg == "file"))
    return [opened for handle in given if isinstance(handle, ast.Name) for opened in _opening(module, handle)]


def _opening(module: SourceModule, handle: ast.Name) -> Iterator[ast.Call]:
    yield from (v for v in assigned(module, handle, handle.id) if isinstance(v, ast.Call))
    for up in module.ancestors(handle):
        for item in up.items if isinstance(up, (ast.With, ast.AsyncWith)) else ():
            if dotted(item.optional_vars) == handle.id and isinstance(item.context_expr, ast.Call):
                yield item.context_expr
