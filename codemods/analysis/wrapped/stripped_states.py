"""States whose keys lose `module.` and that go into the wrapper all the same: no key fits."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import Binding, bindings_of
from codemods.analysis.call_graph import called_function
from codemods.analysis.model.signatures import returned
from codemods.analysis.names import dotted, last
from codemods.analysis.reaching import reaching
from codemods.analysis.wrapped.holders import Wrapped, wrapper_in
from codemods.analysis.wrapped.wrapper_tests import is_tested
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_DEPTH = 3
_ADDS = lazy(rb"""["']module\.["']\s*\+|f["']module\.\{""")  # what puts it on again
_NAMES = frozenset({"module.", "module", r"^module\.", r"^module."})
_CONSUMES = "consume_prefix_in_state_dict_if_present"


@record
class StrippedState:
    """call: the load into the wrapper, node. stripped: where its keys lose `module.`. strict: keys that do not fit raise."""

    call: ast.Call
    node: ast.expr
    wrapped: Wrapped
    stripped_in: SourceModule
    stripped: ast.AST
    strict: bool


def stripped_states(project: Project, module: SourceModule) -> Iterator[StrippedState]:
    """Each load into a wrapper of a state whose keys have lost `module.` on every way to it."""
    for call in module.calls_named("load_state_dict"):
        node = call.func.value if isinstance(call.func, ast.Attribute) else None
        if node is None or not call.args or not isinstance(node, (ast.Name, ast.Attribute)) or is_tested(module, call):
            continue
        found = _stripped(project, module, call.args[0], 0)
        if found is None or any(_ADDS.search(m.data) for m in (module, found[0])):
            continue
        wrapped = wrapper_in(project, module, node)
        if wrapped is not None:
            given = call.args[1] if len(call.args) > 1 else next((k.value for k in call.keywords if k.arg == "strict"), None)
            strict = not (isinstance(given, ast.Constant) and given.value is False)
            yield StrippedState(call, node, wrapped, *found, strict=strict)


def _stripped(project: Project, module: SourceModule, node: ast.expr, depth: int) -> tuple[SourceModule, ast.AST] | None:
    """Where the keys of a state lose `module.`; None where they may have it still."""
    if depth > _DEPTH:
        return None
    if isinstance(node, ast.DictComp):
        return (module, node) if len(node.generators) == 1 and _loses(module, node.key) else None
    if isinstance(node, ast.Call):
        site = called_function(project, module, node)
        values = returned(site.node, site.module) if site is not None else []
        found = [_stripped(project, site.module, v, depth + 1) for v in values] if site is not None else []
        return found[0] if found and None not in found else None
    if not isinstance(node, ast.Name):
        return None
    if (made := _consumed(module, node)) is not None:
        return module, made
    bound = [b for b in reaching(module, node, bindings_of(module, node)) if b.node is not node]
    ways = [_of_binding(project, module, node, b, depth) for b in bound]
    return ways[0] if ways and None not in ways else None


def _of_binding(
    project: Project, module: SourceModule, name: ast.Name, bound: Binding, depth: int
) -> tuple[SourceModule, ast.AST] | None:
    if bound.value is None or bound.part or bound.parameter:
        return None
    if _is_empty(bound.value):
        filled = _filled(module, name)
        return (module, filled) if filled is not None else None
    return _stripped(project, module, bound.value, depth + 1)


def _is_empty(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return last(dotted(node.func)) in ("OrderedDict", "dict") and not node.args and not node.keywords
    return isinstance(node, ast.Dict) and not node.keys


def _filled(module: SourceModule, name: ast.Name) -> ast.stmt | None:
    """`state[key.replace("module.", "")] = value` in a loop of the same function, under no test but one of the key."""
    function, found = module.function_of(name), None
    for statement in module.nodes(ast.Assign):
        target = statement.targets[0]
        if not isinstance(target, ast.Subscript) or dotted(target.value) != name.id:
            continue
        if module.function_of(statement) is not function or statement.lineno > name.lineno:
            continue
        if _loses(module, target.slice):
            if any(not _asks_for_key(up.test) for up in module.ancestors(statement) if isinstance(up, ast.If)):
                return None
            found = statement
    return found


def _asks_for_key(test: ast.expr) -> bool:
    """`if key.startswith("module."):`, and a filter that asks whether a key is in something."""
    texts = any(isinstance(n, ast.Constant) and n.value in _NAMES for n in walk(test))
    return texts or (isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.In, ast.NotIn)))


def _consumed(module: SourceModule, name: ast.Name) -> ast.Call | None:
    """torch's own helper, which takes the prefix off in place, in the block of the function or round the load."""
    blocks = {id(b) for up in module.ancestors(name) if isinstance(up, ast.stmt) for b in module.block_of(up)}
    for call in module.calls_named(_CONSUMES):
        if len(call.args) == 2 and dotted(call.args[0]) == name.id and call.lineno < name.lineno:
            if _says_module(call.args[1]) and id(module.statement_of(call)) in blocks:
                return call
    return None


def _loses(module: SourceModule, key: ast.expr) -> bool:
    """True for `key` without `module.`, under a name that it is given too."""
    if isinstance(key, ast.Name):
        function = module.function_of(key)
        bound = [b for b in bindings_of(module, key) if module.function_of(b.node) is function]
        lost = [b for b in bound if b.value is not None and not b.part and not isinstance(b.value, ast.Name)]
        lost = [b for b in lost if b.value is not None and _loses(module, b.value)]
        tests = [up.test for b in lost for up in module.ancestors(b.node) if isinstance(up, ast.If)]
        return bool(lost) and all(map(_asks_for_key, tests))
    if isinstance(key, ast.IfExp):
        return _asks_for_key(key.test) and (_loses(module, key.body) or _loses(module, key.orelse))
    if isinstance(key, ast.Subscript) and isinstance(key.slice, ast.Slice):
        return key.slice.upper is None and key.slice.lower is not None and _is_as_long(module, key)
    if isinstance(key, ast.Subscript):  # `key.split("module.")[-1]`
        taken = key.value
        splits = isinstance(taken, ast.Call) and isinstance(taken.func, ast.Attribute) and taken.func.attr == "split"
        return splits and isinstance(taken, ast.Call) and bool(taken.args) and _says_module(taken.args[0])
    if not isinstance(key, ast.Call) or not isinstance(key.func, ast.Attribute) or not key.args:
        return False
    end = key.func.attr
    if end in ("replace", "sub"):
        by = key.args[1] if len(key.args) > 1 else None
        return _says_module(key.args[0]) and isinstance(by, ast.Constant) and by.value == ""
    return end == "removeprefix" and _says_module(key.args[0])


def _is_as_long(module: SourceModule, key: ast.Subscript) -> bool:
    """`key[7:]` where the function speaks of `module`, and `key[len("module."):]`."""
    assert isinstance(key.slice, ast.Slice)
    lower = key.slice.lower
    if isinstance(lower, ast.Call):
        return dotted(lower.func) == "len" and bool(lower.args) and _says_module(lower.args[0])
    function = module.function_of(key)
    text = module.text_of(function) if function is not None else module.text_of(module.statement_of(key))
    return isinstance(lower, ast.Constant) and lower.value == 7 and "module." in text


def _says_module(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in _NAMES
