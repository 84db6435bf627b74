"""States that training saves without the wrapper, and loads into the wrapper when it is resumed: no key fits."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_of
from codemods.analysis.bound_values import assigned
from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import dotted, last
from codemods.analysis.wrapped.holders import Wrapped, wrapper_in
from codemods.analysis.wrapped.saved_states import is_in_parallel, key_of, strips
from codemods.analysis.wrapped.saving_calls import entries, saving_calls
from codemods.analysis.wrapped.wrapper_tests import is_tested
from codemods.files.source import SourceModule, line_of
from codemods.runtime.record import record
from codemods.store.project import Project

_NAMES_DEEP = 2


@record
class BareState:
    """call: the load into the wrapper, node, with the key of the file. saved: where the state without the wrapper is saved under
    that key. strict: keys that do not fit raise."""

    call: ast.Call
    node: ast.expr
    wrapped: Wrapped
    saved_in: SourceModule
    saved: ast.expr
    strict: bool


def bare_states(project: Project, module: SourceModule) -> Iterator[BareState]:
    """Each load of a file that this file's loads put into a wrapper, and that is only ever saved of the module inside."""
    if strips(module.data):
        return
    for call in module.calls_named("load_state_dict"):
        node = call.func.value if isinstance(call.func, ast.Attribute) else None
        if node is None or not call.args or not isinstance(node, (ast.Name, ast.Attribute)) or is_tested(module, call):
            continue
        key = key_of(module, call.args[0])
        wrapped = wrapper_in(project, module, node) if key is not None else None
        if wrapped is None or wrapped.many:
            continue
        states = [(m, s) for m, k, s in _saved_states(project) if k == key]
        own = [(m, s) for m, s in states if _is_inside(project, m, s, wrapped) or _is_wrapped_model(module, call, wrapped, m, s)]
        if own and not any(_is_of_wrapper(project, m, s) for m, s in states):
            given = call.args[1] if len(call.args) > 1 else next((k.value for k in call.keywords if k.arg == "strict"), None)
            strict = not (isinstance(given, ast.Constant) and given.value is False)
            yield BareState(call, node, wrapped, *own[0], strict=strict)


def _saved_states(project: Project) -> tuple[tuple[SourceModule, str, ast.expr], ...]:
    """(the file, the key, the expression) of every state that the project saves."""

    def build() -> Iterator[tuple[SourceModule, str, ast.expr]]:
        for path in sorted({p for word in (b".save(", b".state_dict()") for p in project.files_containing(word)}):
            module = project.module(path) if not is_test_file(path) else None
            for _, written in saving_calls(project, module, torch_only=True) if module is not None else ():
                if module is not None:
                    yield from ((module, key, value) for key, value in entries(module, written))

    return project.memo("saved states", lambda: tuple(build()))


def _is_inside(project: Project, module: SourceModule, state: ast.expr, wrapped: Wrapped) -> bool:
    inside = _inside(module, state)
    found = wrapper_in(project, module, inside) if inside is not None else None
    return found is not None and found.wrap is wrapped.wrap


def _is_wrapped_model(module: SourceModule, load: ast.Call, wrapped: Wrapped, saved_in: SourceModule, state: ast.expr) -> bool:
    """True for `torch.save(model.state_dict(), path)` beside `ddp = DDP(model)`, in the function that loads from this path."""
    inside = state.func.value if isinstance(state, ast.Call) and isinstance(state.func, ast.Attribute) else None
    given = wrapped.wrap.args[0] if wrapped.wrap.args else None
    if saved_in is not module or not isinstance(inside, ast.Name) or not isinstance(given, ast.Name) or inside.id != given.id:
        return False
    function, saving, loaded = module.function_of(load), module.parent(state), load.args[0]
    if any(module.function_of(n) is not function for n in (state, given)) or not isinstance(saving, ast.Call):
        return False
    wrapping = module.statement_of(given).lineno
    later = any(not b.parameter and line_of(b.node) >= wrapping for b in bindings_of(module, given))
    if later or len(saving.args) < 2 or saving.args[0] is not state:
        return False  # the name may hold the wrapper by then
    paths = (saving.args[1], loaded.args[0] if isinstance(loaded, ast.Call) and loaded.args else None)
    return paths[1] is not None and module.text_of(paths[0]) == module.text_of(paths[1])


def _is_of_wrapper(project: Project, module: SourceModule, state: ast.expr) -> bool:
    """True for the state of a wrapper, of DataParallel's too: such a file would fit."""
    if not isinstance(state, ast.Call) or not isinstance(state.func, ast.Attribute):
        return not isinstance(state, (ast.Call, ast.Attribute)) and _inside(module, state) is None
    return wrapper_in(project, module, state.func.value) is not None or is_in_parallel(module, state.func.value)


def _inside(module: SourceModule, state: ast.expr) -> ast.expr | None:
    """`model` of `model.module.state_dict()`, and of `accelerator.unwrap_model(model).state_dict()`; None for other states."""
    if isinstance(state, ast.Name):
        values = assigned(module, state, state.id)
        return _inside(module, values[0]) if len(values) == 1 and not isinstance(values[0], ast.Name) else None
    if not isinstance(state, ast.Call) or not isinstance(state.func, ast.Attribute):
        return None
    if state.func.attr == "get_state_dict" and state.args and "accelerator" in last(dotted(state.func.value)):
        return state.args[0]  # it takes the model out first
    return _taken_out(module, state.func.value, 0) if state.func.attr == "state_dict" else None


def _taken_out(module: SourceModule, inside: ast.expr, depth: int) -> ast.expr | None:
    """`model` of what the model inside of it is written as; also where a bare one is given as it is."""
    if isinstance(inside, ast.Attribute) and inside.attr == "module":
        return inside.value
    if isinstance(inside, ast.Call) and inside.args:
        name = last(dotted(inside.func))
        of_module = name == "getattr" and len(inside.args) == 3 and dotted(inside.args[0]) == dotted(inside.args[2])
        return inside.args[0] if name == "unwrap_model" or (of_module and _says(inside.args[1], "module")) else None
    if isinstance(inside, ast.IfExp):
        return _agreed(module, [inside.body, inside.orelse], depth)
    if isinstance(inside, ast.Name) and depth < _NAMES_DEEP:
        return _agreed(module, assigned(module, inside, inside.id), depth + 1)
    return None


def _agreed(module: SourceModule, values: list[ast.expr], depth: int) -> ast.expr | None:
    """The wrapper that all of the values are the inside of, or are themselves, where one of them is taken out."""
    taken = [(v, _taken_out(module, v, depth)) for v in values]
    out = [w for _, w in taken if w is not None]
    name = dotted(out[0]) if out else ""
    return out[0] if name and all(name in (dotted(v), dotted(w)) for v, w in taken) else None


def _says(node: ast.expr, text: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == text
