"""A rendezvous by a file whose path is the same in every run, and which nothing removes before a run begins.

Measured with torch 2.13 over gloo: the last process to end takes the file away, but not where it is killed. In 8 of 13 runs
after a killed one, a rank read the address of a dead rank out of the file before the living one had written its own, waited, and
ended with "Connection refused"; in the other 5 the ranks met. A run that fails leaves the file behind in its turn.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.guards.fixed_paths import option_in, same_in_every_run, texts_of
from codemods.analysis.names import qualified
from codemods.files.source import SourceModule
from codemods.files.text_file import PYTHON_KINDS, SHELL_KINDS
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_SCHEME = "file://"
_STARTS = "init_process_group"
_METHOD = "init_method"
_REMOVES = ("remove", "unlink", "rmtree", "run", "call", "system")
_FILES = lazy(r"init_?file|rendezvous|rdzv|dist_?file|lock_?file|sync_?file|store", re.I)
_WINDOWS = lazy(r"win32|[\"']nt[\"']|[wW]indows")


@record
class Left:
    """place: where the path stands. name: of the file. options: what names its folder. starter: what starts the group."""

    place: ast.AST
    name: str
    options: tuple[str, ...]
    starter: tuple[SourceModule, ast.Call]


@record
class _Address:
    """value: what the group is given. at: the statement or call that gives it. field: the attribute that holds it."""

    value: ast.expr
    at: ast.AST
    field: str
    starter: tuple[SourceModule, ast.Call]


def left_rendezvous(project: Project, module: SourceModule) -> Iterator[Left]:
    """Each such path of a file."""
    if not module.holds(_SCHEME.encode()):
        return
    told: set[str] = set()
    for address in _addresses(project, module):
        if _is_for_windows(module, address.at):
            continue
        texts = texts_of(module, address.value)
        if not texts or not texts[0].startswith(_SCHEME):
            continue
        name = re.split(r"[/\\\\]", next((t for t in reversed(texts) if t.strip("/\\.")), ""))[-1]
        options = tuple(dict.fromkeys(o for t in texts if (o := option_in(t))))
        if not name or option_in(name) or name in told or not all(same_in_every_run(project, o) for o in options):
            continue
        if not _is_removed(project, module, name, address.field):
            told.add(name)
            yield Left(_written(module, address.at, name), name, options, address.starter)


def _addresses(project: Project, module: SourceModule) -> Iterator[_Address]:
    """What groups are started with: an argument, an entry of the arguments that are kept in a dict, a field of the options."""
    for call in _starts(module):
        given = next((k.value for k in call.keywords if k.arg == _METHOD), call.args[1] if len(call.args) > 1 else None)
        if given is not None:
            yield _Address(given, call, "", (module, call))
        elif any(k.arg is None for k in call.keywords):
            for kept in module.nodes(ast.Dict):
                for key, value in zip(kept.keys, kept.values, strict=True):
                    if isinstance(key, ast.Constant) and key.value == _METHOD:
                        yield _Address(value, kept, "", (module, call))
    for assign in module.nodes(ast.Assign):
        target = assign.targets[0]
        if isinstance(target, ast.Attribute) and _SCHEME in ast.unparse(assign.value):
            starter = _started_with(project, target.attr)
            if starter is not None:
                yield _Address(assign.value, assign, target.attr, starter)


def _starts(module: SourceModule) -> Iterator[ast.Call]:
    return (c for c in module.calls_named(_STARTS) if qualified(module, c.func).startswith("torch.distributed."))


def _started_with(project: Project, field: str) -> tuple[SourceModule, ast.Call] | None:
    """The call that starts a group by an attribute of that name."""
    for path in sorted(project.files_containing(_STARTS.encode())):
        module = project.module(path) if path.endswith(PYTHON_KINDS) else None
        for call in _starts(module) if module is not None and module.holds(field.encode()) else ():
            given = (k.value for k in call.keywords if k.arg == _METHOD)
            if module is not None and any(isinstance(g, ast.Attribute) and g.attr == field for g in given):
                return module, call
    return None


def _written(module: SourceModule, at: ast.AST, name: str) -> ast.AST:
    """The statement that has the name in it, in the function of the address; else what gives the address."""
    home = module.function_of(at)
    texts = (n for n in module.nodes(ast.Constant) if isinstance(n.value, str) and name in n.value)
    return next((module.statement_of(n) for n in texts if module.function_of(n) is home), at)


def _is_for_windows(module: SourceModule, at: ast.AST) -> bool:
    """True in the arm of a test for the system: files are how torch's own tutorial starts there."""
    below: ast.AST = at
    for up in module.ancestors(at):
        if isinstance(up, ast.If) and any(below is s for s in up.body) and _WINDOWS.search(ast.unparse(up.test)):
            return True
        below = up
    return False


def _is_removed(project: Project, module: SourceModule, name: str, field: str) -> bool:
    """True where the project removes a file whose path is put together from that name, or a name for it that looks like one."""
    if project.files_containing(name.encode(), kinds=SHELL_KINDS):
        return True  # a script that speaks of the file most likely takes it away
    others = (p for word in (name, field) if word for p in project.files_containing(word.encode()))
    for path in sorted({module.path, *others}):
        other = project.module(path) if path.endswith(PYTHON_KINDS) else None
        for call in other.calls_named(*_REMOVES) if other is not None else ():
            assert other is not None
            held = call.func.value if isinstance(call.func, ast.Attribute) else None
            for node in (*([held] if held is not None else []), *call.args):
                text = ast.unparse(node)
                if name in text or (field and field in text) or _FILES.search(text):
                    return True
                texts = texts_of(other, node)
                if texts is not None and any(name in t for t in texts):
                    return True
    return False
