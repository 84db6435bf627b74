"""What Lightning's Trainer gave back, and what it logs: numbers of each rank's own samples, unless the ranks reduce them.

`predict()` hands each rank the answers for its own batches. `test()`, `validate()` and `callback_metrics` hold what was logged:
the rank's own mean, unless the log call has `sync_dist=True` or logs a metric object (Lightning's documentation of `log`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.names import dotted, last
from codemods.analysis.output.natures import values_of
from codemods.analysis.output.own_batches import joins_the_ranks
from codemods.data.host_only import MUTATORS
from codemods.files.source import SourceModule, once_a_module, walk
from codemods.store.project import Project

_RUNS = frozenset({"predict", "test", "validate"})
_ENDS = re.compile(r"_(?:step|epoch)$")
_LOGS = (b".log(", b".log_dict(")


def is_of_own_answers(project: Project, module: SourceModule, part: ast.AST) -> bool:
    """True for what is made of a Trainer's answer for this rank alone, through lists and tables that it was put into."""
    if not module.holds(b"ightning"):
        return False
    if any(_is_own_metric(project, n) for n in _with_values(module, part)):
        return True
    scope = id(module.function_of(part))
    seen: set[str] = set()
    asked: list[ast.AST] = [part] if _answers(module) else []
    while asked:
        for node in _told(asked.pop()):
            if isinstance(node, ast.Call) and _is_own_answer(project, module, node):
                return True
            if isinstance(node, ast.Name) and node.id not in seen:
                seen.add(node.id)
                asked += _given(module).get((scope, node.id), ())
    return False


def _with_values(module: SourceModule, part: ast.AST) -> Iterator[ast.AST]:
    for node in _told(part):
        yield node
        for value in values_of(module, node) if isinstance(node, ast.Name) else ():
            yield from _told(value)


def _told(value: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a value that it tells of: not what is only counted, nor what the ranks have put together."""
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Call) and (last(dotted(node.func)) == "len" or joins_the_ranks(node)):
            continue
        yield node
        stack += ast.iter_child_nodes(node)


@once_a_module
def _answers(module: SourceModule) -> bool:
    return any(_is_answer(c) for c in module.calls_named(*_RUNS))


def _is_answer(call: ast.Call) -> bool:
    func = call.func
    return isinstance(func, ast.Attribute) and func.attr in _RUNS and "trainer" in dotted(func.value).lower()


def _is_own_answer(project: Project, module: SourceModule, call: ast.Call) -> bool:
    if not _is_answer(call):
        return False
    if last(dotted(call.func)) == "predict":
        return True
    key, up = "", module.parent(call)
    while isinstance(up, ast.Subscript):
        if isinstance(up.slice, ast.Constant) and isinstance(up.slice.value, str):
            key = up.slice.value
        up = module.parent(up)
    return _is_logged_apart(project, key, "val" if last(dotted(call.func)) == "validate" else "test")


def _is_own_metric(project: Project, node: ast.AST) -> bool:
    """True for `callback_metrics["loss_step"]` and `….get("loss_step")` that the ranks do not reduce."""
    held: ast.expr | None = None
    key: ast.expr | None = None
    if isinstance(node, ast.Subscript):
        held, key = node.value, node.slice
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get" and node.args:
        held, key = node.func.value, node.args[0]
    if held is None or last(dotted(held)) != "callback_metrics" or not isinstance(key, ast.Constant):
        return False
    return isinstance(key.value, str) and _is_logged_apart(project, key.value, "")


def _is_logged_apart(project: Project, key: str, stage: str) -> bool:
    """True where a number is logged by this key (by any, in a hook of the stage), and no log call of it reduces it."""

    def ask() -> bool:
        logs = [(m, c) for m, c in _logs(project) if _is_meant(m, c, key, stage)]
        return bool(logs) and not any(_reduces(m, c) for m, c in logs)

    return project.keep(("logged apart", key, stage), ask)


def _logs(project: Project) -> Iterator[tuple[SourceModule, ast.Call]]:
    for path in sorted({p for word in _LOGS for p in project.files_containing(word)}):
        module = project.module(path)
        for call in module.calls_named("log", "log_dict") if module is not None and module.holds(b"ightning") else ():
            if module is not None and dotted(call.func).partition(".")[0] in ("self", "pl_module", "module") and call.args:
                yield module, call


def _is_meant(module: SourceModule, call: ast.Call, key: str, stage: str) -> bool:
    if key:
        names = {n.value for n in walk(call.args[0]) if isinstance(n, ast.Constant)}
        return key in names or _ENDS.sub("", key) in names
    function = module.function_of(call)
    return function is not None and stage in function.name


def _reduces(module: SourceModule, call: ast.Call) -> bool:
    """True with `sync_dist`, for a metric object, and for what one computes or the ranks have put together."""
    given = next((k.value for k in call.keywords if k.arg == "sync_dist"), None)
    if given is not None:
        return not (isinstance(given, ast.Constant) and not given.value)
    for node in (n for a in call.args for n in _with_values(module, a)):
        if isinstance(node, ast.Call) and joins_the_ranks(node):
            return True
        if isinstance(node, ast.Attribute) and node.attr == "compute":
            return True
    logged = [v for a in call.args for v in (a.values if isinstance(a, ast.Dict) else [a])]
    return any(_is_held(w) for v in logged for w in (v, *values_of(module, v)))


def _is_held(value: ast.expr) -> bool:
    """True for `self.accuracy`: Lightning computes a metric object over all ranks, but not what calling it gave."""
    return isinstance(value, ast.Attribute) and dotted(value).startswith("self.")


@once_a_module
def _given(module: SourceModule) -> dict[tuple[int, str], list[ast.AST]]:
    """For each name of a function: what it is bound to, what loops bind it from, and what is put into it."""
    found: dict[tuple[int, str], list[ast.AST]] = {}

    def add(target: ast.AST, value: ast.AST, scope: int) -> None:
        for name in _bound(target):
            if name not in ("self", "cls"):
                found.setdefault((scope, name), []).append(value)

    for assign in module.nodes(ast.Assign):
        for target in assign.targets:
            add(target, assign.value, id(module.function_of(assign)))
    for added in module.nodes(ast.AugAssign):
        add(added.target, added.value, id(module.function_of(added)))
    for loop in module.nodes(ast.For):
        add(loop.target, loop.iter, id(module.function_of(loop)))
    for call in module.calls_named(*MUTATORS):
        if isinstance(call.func, ast.Attribute):
            for value in call.args:
                add(call.func.value, value, id(module.function_of(call)))
    return found


def _bound(target: ast.AST) -> Iterator[str]:
    """The names that a target binds or fills: `rows` of `rows[i]`."""
    if isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from _bound(element)
    while isinstance(target, (ast.Subscript, ast.Attribute, ast.Starred)):
        target = target.value
    if isinstance(target, ast.Name):
        yield target.id
