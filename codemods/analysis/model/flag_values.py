"""What the expression behind the flag may come to: constants, names, dicts that are splatted, arguments of a helper."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import class_facts
from codemods.analysis.frameworks import torch_pin
from codemods.analysis.functions import find_function
from codemods.analysis.model.flag_defaults import default_of
from codemods.analysis.model.flag_setting import Setting, State
from codemods.analysis.model.signatures import bind, defaults, returned
from codemods.analysis.model.wrapped_model import callers
from codemods.analysis.names import dotted
from codemods.data.find_unused_parameters import (
    FIRST_POSITION,
    FIRST_POSITION_BELOW,
    RAW_KEYWORD,
    SECOND_POSITION_FROM,
)
from codemods.files.source import FunctionNode, SourceModule
from codemods.store.project import Project


def keyword_settings(project: Project, module: SourceModule, call: ast.Call, keyword: str) -> Iterator[Setting]:
    value = next((k.value for k in call.keywords if k.arg == keyword), None)
    if value is None and keyword == RAW_KEYWORD and len(call.args) > FIRST_POSITION:
        yield from _by_position(project, module, call, keyword)
        return
    if value is not None:
        yield from _values(project, module, value, keyword, call, conditional=False)
        return
    spread = [k.value for k in call.keywords if k.arg is None]
    found = False
    for expression in spread:
        for home, inner in _dict_values(project, module, expression, keyword):
            found = True
            if inner is None:
                yield Setting(State.UNKNOWN, module, expression, keyword, None, text=f"**{module.text_of(expression)}")
            else:
                yield from _values(project, home, inner, keyword, None, conditional=False)
    if not found:
        yield Setting(State.DEFAULT, module, call, keyword, call, text="not given")


def _by_position(project: Project, module: SourceModule, call: ast.Call, keyword: str) -> Iterator[Setting]:
    """The flag among unnamed arguments: `init_sync` has moved it, so only a pinned torch says which one it is."""
    pin = torch_pin(project, near=module.path)
    old = pin is not None and pin.surely_below(FIRST_POSITION_BELOW)
    new = pin is not None and pin.surely_at_least(SECOND_POSITION_FROM)
    at = FIRST_POSITION if old else FIRST_POSITION + 1
    if (old or new) and not any(isinstance(a, ast.Starred) for a in call.args[: at + 1]):
        if at < len(call.args):
            yield from _values(project, module, call.args[at], keyword, None, conditional=False)
        else:
            yield Setting(State.DEFAULT, module, call, keyword, call, text="not given")
        return
    text = "an argument without a name, whose place differs between versions of torch,"
    yield Setting(State.UNKNOWN, module, call.args[FIRST_POSITION], keyword, None, text=text)


def _from_callers(project: Project, module: SourceModule, name: ast.Name) -> list[Setting]:
    """The flag as the parameter of a helper: what its callers give, where all of them give the same; else nothing."""
    function = module.function_of(name)
    given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs] if function is not None else []
    if function is None or name.id not in [a.arg for a in given] or assignments(module, name.id, function):
        return []
    fallback = defaults(function).get(name.id)
    found: list[Setting] = []
    for caller, call in callers(project, module, function):
        bound = bind(function, call, bound=module.class_of(function) is not None)
        if bound is None:
            return []
        value = bound.get(name.id, fallback)
        home = caller if name.id in bound else module
        if not isinstance(value, ast.Constant) or not isinstance(value.value, bool):
            return []
        state = State.ON if value.value else State.OFF
        text = f"{name.id}={value.value} for {function.name}"
        found.append(Setting(state, home, value, name.id, None, text=text if name.id in bound else f"the default {text}"))
    if len({s.state for s in found}) != 1:
        return []
    return list({id(s.node): s for s in found}.values())


def _values(
    project: Project, module: SourceModule, value: ast.expr, keyword: str, call: ast.Call | None, *, conditional: bool
) -> Iterator[Setting]:
    """The constants that an expression may come to."""
    text = f"{keyword}={module.text_of(value)}"
    if isinstance(value, ast.Constant) and (value.value is None or isinstance(value.value, bool)):
        state = State.DEFAULT if value.value is None else State.ON if value.value else State.OFF
        yield Setting(state, module, value, keyword, call, text=text, conditional=conditional)
    elif isinstance(value, ast.IfExp):
        yield from _values(project, module, value.body, keyword, None, conditional=True)
        yield from _values(project, module, value.orelse, keyword, None, conditional=True)
    elif isinstance(value, ast.Name) and (bound := bound_once(module, value)) is not None:
        for inner in _values(project, module, bound, keyword, None, conditional=conditional):
            shared = uses(module, value) > 1
            yield inner if not shared else Setting(State.UNKNOWN, module, value, keyword, None, text=text)
    elif isinstance(value, ast.Name) and (handed := _from_callers(project, module, value)):
        yield from handed
    elif (default := default_of(project, module, value)) is not None:
        state = State.UNKNOWN if default.otherwise else State.ON if default.value else State.OFF
        if default.otherwise:
            text = f"{text} ({default.otherwise})"
            yield Setting(state, module, value, keyword, None, text=text, conditional=conditional)
            return
        yield Setting(
            state, default.module, default.node, keyword, None, text=default.text, conditional=True, overridable=default.kept_by
        )
    else:
        yield Setting(State.UNKNOWN, module, value, keyword, None, text=text, conditional=conditional)


def bound_once(module: SourceModule, name: ast.Name) -> ast.expr | None:
    """The one value a name is given in its function, or else in the file; None where there are several or it is a parameter."""
    function = module.function_of(name)
    homes: list[FunctionNode | None] = [function] if function is None else [function, None]
    for home in homes:
        values = assignments(module, name.id, home)
        if values:
            return values[0] if len(values) == 1 else None
        if home is not None and any(a.arg == name.id for a in (*home.args.args, *home.args.kwonlyargs, *home.args.posonlyargs)):
            return None
    return None


def assignments(module: SourceModule, name: str, home: FunctionNode | None) -> list[ast.expr]:
    """Every value that `name = …` gives the name in one scope."""
    out = []
    for node in module.nodes(ast.Assign):
        if module.function_of(node) is home and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            out.append(node.value)
    for typed in module.nodes(ast.AnnAssign):
        if module.function_of(typed) is home and isinstance(typed.target, ast.Name) and typed.target.id == name and typed.value:
            out.append(typed.value)
    return out


def uses(module: SourceModule, name: ast.Name) -> int:
    """How often the name is read in its scope."""
    home = module.function_of(name)
    return sum(n.id == name.id and isinstance(n.ctx, ast.Load) and module.function_of(n) is home for n in module.nodes(ast.Name))


def _dict_values(
    project: Project, module: SourceModule, expression: ast.expr, keyword: str, depth: int = 0
) -> Iterator[tuple[SourceModule, ast.expr | None]]:
    """(file, value) of `keyword` in a dict that is splatted; (file, None) where the dict is not written out."""
    if depth > 4:
        return
    if isinstance(expression, ast.Dict):
        found: list[tuple[SourceModule, ast.expr | None]] = []
        for key, value in zip(expression.keys, expression.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == keyword:
                found = [(module, value)]  # what stands behind wins
            elif key is None:
                found += _dict_values(project, module, value, keyword, depth + 1)
        yield from found
    elif isinstance(expression, ast.Call) and dotted(expression.func) == "dict":
        for k in expression.keywords:
            if k.arg == keyword:
                yield module, k.value
            elif k.arg is None:
                yield from _dict_values(project, module, k.value, keyword, depth + 1)
    elif isinstance(expression, ast.Call):
        for inner_module, function in called(project, module, expression):
            for value in returned(function, inner_module):
                yield from _dict_values(project, inner_module, value, keyword, depth + 1)
            return
        yield module, None
    elif isinstance(expression, ast.Name):
        yield from _named_dict(project, module, expression, keyword, depth)
    else:
        yield module, None


def _named_dict(
    project: Project, module: SourceModule, name: ast.Name, keyword: str, depth: int
) -> Iterator[tuple[SourceModule, ast.expr | None]]:
    """A dict bound to a name, with `name["keyword"] = …` behind it."""
    home = module.function_of(name)
    stored = [
        a.value for a in module.nodes(ast.Assign) for t in a.targets
        if isinstance(t, ast.Subscript) and dotted(t.value) == name.id
        and isinstance(t.slice, ast.Constant) and t.slice.value == keyword and module.function_of(a) is home
    ]  # fmt: skip
    stored += [v for owner, key, v, at in stored_by_call(module) if (owner, key) == (name.id, keyword) and at is home]
    if stored:
        yield from ((module, value) for value in stored)
        return
    bound = bound_once(module, name)
    if bound is None:
        yield module, None
        return
    yield from _dict_values(project, module, bound, keyword, depth + 1)


def stored_by_call(module: SourceModule) -> Iterator[tuple[str, str, ast.expr, FunctionNode | None]]:
    """(dict, key, value, function) of `d.setdefault("key", value)`, `d.update(key=value)` and `d.update({"key": value})`."""
    for call in module.calls_named("setdefault", "update"):
        if not isinstance(call.func, ast.Attribute) or not (owner := dotted(call.func.value)):
            continue
        pairs: list[tuple[ast.expr | None, ast.expr]] = []
        if call.func.attr == "setdefault" and len(call.args) == 2:
            pairs = [(call.args[0], call.args[1])]
        elif call.func.attr == "update" and call.args and isinstance(call.args[0], ast.Dict):
            pairs = list(zip(call.args[0].keys, call.args[0].values, strict=True))
        keyed = [(k.value, v) for k, v in pairs if isinstance(k, ast.Constant) and isinstance(k.value, str)]
        keyed += [(k.arg, k.value) for k in call.keywords if k.arg and call.func.attr == "update"]
        yield from ((owner, key, value, module.function_of(call)) for key, value in keyed)


def called(project: Project, module: SourceModule, call: ast.Call) -> list[tuple[SourceModule, FunctionNode]]:
    if found := find_function(project, module, call.func, call):
        return [found]
    name = dotted(call.func)
    owner = module.class_of(call)
    if owner is not None and name.startswith("self.") and name.count(".") == 1:
        method = class_facts(project, module, owner).method(name[5:])
        return [(method[0].module, method[1])] if method else []
    return []
