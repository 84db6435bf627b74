"""Who else reads a state that is saved of a wrapper, and would no longer find the keys that it expects."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bound_values import assigned
from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.wrapped.saved_states import Saved, bare_loads, key_of
from codemods.late_pattern import late
from codemods.project import Project
from codemods.record import record
from codemods.source import SourceModule, walk

# What holds the content of a checkpoint, by its name, where the load is not seen.
_CHECKPOINTS = late(r"ckpt|check_?point|snapshot|state|saved|resum|loaded|restor", 2)  # 2: re.IGNORECASE
# A reader that takes `module.` off where it is there, and is content with bare keys.
_STRIPS_EITHER = late(rb"""startswith\(["']module|replace\(["']module\.|consume_prefix|removeprefix|strip_prefix|remove_prefix""")


@record
class OtherReader:
    """A place that reads the same part of the file."""

    module: SourceModule
    line: int
    text: str


def other_reader(project: Project, saved: Saved) -> OtherReader | None:
    """The first place that reads what is saved, but for loads into bare models and for what takes `module.` off if it is there."""
    bare = {id(n) for one in bare_loads(project) for n in walk(one.call)}
    bare |= {id(v) for one in bare_loads(project) if one.key == saved.key for v in _values_of(one.module, one.call)}
    for module in _readers(project, saved.key):
        for node in _reads(module, saved.key):
            if id(node) not in bare:
                return OtherReader(module, node.lineno, " ".join(module.text_of(module.statement_of(node)).split())[:60])
    return None


def _values_of(module: SourceModule, call: ast.Call) -> Iterator[ast.AST]:
    """What a load is handed by a name: `state = file["model"]; net.load_state_dict(state)`."""
    for name in (n for a in call.args[:1] for n in walk(a) if isinstance(n, ast.Name)):
        yield from (n for value in assigned(module, name, name.id) for n in walk(value))


def _readers(project: Project, key: str) -> Iterator[SourceModule]:
    paths: set[str] = set(project.files_containing(b"load_state_dict("))
    if key:
        named = {p for quote in "\"'" for p in project.files_containing(f"{quote}{key}{quote}".encode())}
        loading = set(project.files_containing(b"torch.load("))
        paths = (paths | loading) & named
    for path in sorted(paths):
        if is_test_file(path) or _STRIPS_EITHER.search(project.read(path) or b""):
            continue
        if (module := project.module(path)) is not None:
            yield module


def _reads(module: SourceModule, key: str) -> Iterator[ast.Subscript | ast.Call]:
    if not key:
        for call in module.calls_named("load_state_dict"):
            if call.args and key_of(module, call.args[0]) == "":
                yield call
        return
    for node in module.nodes(ast.Subscript):
        if isinstance(node.ctx, ast.Load) and _is(node.slice, key) and _is_of_file(module, node.value):
            yield node
    for call in module.calls_named("get", "pop"):
        if call.args and _is(call.args[0], key) and isinstance(call.func, ast.Attribute):
            if _is_of_file(module, call.func.value):
                yield call


def _is(node: ast.expr, key: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == key


def _is_of_file(module: SourceModule, holder: ast.expr) -> bool:
    if isinstance(holder, ast.Call):
        return qualified(module, holder.func) == "torch.load"
    values = assigned(module, holder, dotted(holder)) if dotted(holder) else []
    if any(isinstance(v, ast.Call) and qualified(module, v.func) == "torch.load" for v in values):
        return True
    return not values and _CHECKPOINTS.search(last(dotted(holder))) is not None
