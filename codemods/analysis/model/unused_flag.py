"""Every spelling of DDP's find-unused-parameters flag in Python: where it is written, what it comes to, how to change it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from codemods.analysis.class_index import Role, class_facts, external_role, find_class
from codemods.analysis.functions import find_function
from codemods.analysis.model.flag_defaults import default_of
from codemods.analysis.model.signatures import returned
from codemods.analysis.names import dotted, family, last, qualified
from codemods.data.find_unused_parameters import (
    HF_KEYWORD,
    OFF_NAMES,
    ON_NAMES,
    RAW_KEYWORD,
    STATIC_KEYWORDS,
    STRATEGY_CLASSES,
)
from codemods.findings import AddComment, Edit, ReplaceExpression, SetKeyword
from codemods.project import Project
from codemods.source import FunctionNode, SourceModule


class Framework(Enum):
    """Who builds the wrapper from the flag."""

    TORCH = "DistributedDataParallel"
    LIGHTNING = "the Lightning Trainer"
    FABRIC = "Fabric"
    HF = "the Hugging Face Trainer"
    ACCELERATE = "Accelerate"


class State(Enum):
    """What is written: on, off, nothing (the framework's default), or something only known at run time."""

    ON = "on"
    OFF = "off"
    DEFAULT = "default"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Setting:
    """One place where the flag is decided.

    node: the expression that says it; for a keyword its value, for DEFAULT the call that could say it. call: the call whose
    keyword `node` is, None where it stands elsewhere. text: how it reads, for messages. strategy: it is a strategy's name.
    overridable: what has to hold for the value to count, where it is a default that others may not keep.
    """

    state: State
    module: SourceModule
    node: ast.expr
    keyword: str
    call: ast.Call | None = None
    strategy: bool = False
    text: str = ""
    conditional: bool = False
    overridable: str = ""


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A place where a framework takes the flag. call: DDP(…), Trainer(…), TrainingArguments(…), or the strategy's call."""

    framework: Framework
    module: SourceModule
    call: ast.Call
    settings: tuple[Setting, ...]
    static_graph: bool | None


def wrappers(project: Project, module: SourceModule) -> tuple[Wrapper, ...]:
    """Every wrapper in the file, in source order."""
    return project.memo(("ddp wrappers", module.path), lambda: tuple(_wrappers(project, module)))


def _wrappers(project: Project, module: SourceModule) -> Iterator[Wrapper]:
    taken: set[int] = set()
    for call in module.nodes(ast.Call):
        name = qualified(module, call.func)
        end, root = last(name), family(name)
        if end == "DistributedDataParallel" and root == "torch":
            yield _keyword_wrapper(project, module, call, Framework.TORCH, RAW_KEYWORD, taken)
        elif end == "DistributedDataParallelKwargs":
            yield _keyword_wrapper(project, module, call, Framework.ACCELERATE, RAW_KEYWORD, taken)
        elif root == "lightning" and (end in ("Trainer", "Fabric") or name.endswith(".Trainer.from_argparse_args")):
            framework = Framework.FABRIC if end == "Fabric" else Framework.LIGHTNING
            yield Wrapper(framework, module, call, tuple(_strategy_settings(project, module, call, taken)), None)
        elif (name != "dict" and any(k.arg == HF_KEYWORD for k in call.keywords)) or _is_arguments(project, module, call):
            yield _keyword_wrapper(project, module, call, Framework.HF, HF_KEYWORD, taken)
    for call in module.nodes(ast.Call):
        if id(call) not in taken and last(qualified(module, call.func)) in STRATEGY_CLASSES and _is_lightning(module, call):
            yield _keyword_wrapper(project, module, call, Framework.LIGHTNING, RAW_KEYWORD, taken)


def settings_in(project: Project, module: SourceModule) -> tuple[tuple[Wrapper, tuple[Setting, ...]], ...]:
    """The wrappers whose flag is decided in the file, in this file first, each with the settings that stand here."""
    others = project.memo("wrappers with settings elsewhere", lambda: _decided_elsewhere(project)).get(module.path, ())
    both = (*wrappers(project, module), *others)
    found = ((w, tuple(s for s in w.settings if s.module is module)) for w in both)
    return tuple((w, here) for w, here in found if here)


def _decided_elsewhere(project: Project) -> dict[str, tuple[Wrapper, ...]]:
    """Path of a setting -> wrappers of other files that it is for."""
    out: dict[str, tuple[Wrapper, ...]] = {}
    for path in project.files_containing(RAW_KEYWORD.encode()):
        module = project.module(path)
        for wrapper in wrappers(project, module) if module is not None else ():
            for home in dict.fromkeys(s.module.path for s in wrapper.settings if s.module is not module):
                out[home] = (*out.get(home, ()), wrapper)
    return out


def _is_lightning(module: SourceModule, call: ast.Call) -> bool:
    return family(qualified(module, call.func)) == "lightning"


def _is_arguments(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for TrainingArguments and what derives from it."""
    name = qualified(module, call.func)
    if external_role(name) is Role.HF_ARGUMENTS:
        return True
    written = dotted(call.func)
    if not written.endswith(("Arguments", "Config", "Args")):
        return False
    site = find_class(project, module, written)
    return site is not None and class_facts(project, site.module, site.node).is_a(Role.HF_ARGUMENTS)


def loose_settings(project: Project, module: SourceModule) -> Iterator[Setting]:
    """The flag switched on in data that no wrapper of this file is seen to take: dicts, strategy names, assignments."""
    claimed = {id(s.node) for w, _ in settings_in(project, module) for s in w.settings}
    for node in module.nodes(ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value in (RAW_KEYWORD, HF_KEYWORD) and id(value) not in claimed:
                if isinstance(value, ast.Constant) and value.value is True:
                    yield Setting(State.ON, module, value, str(key.value), text=f'{{"{key.value}": True}}')
    for owner, name, value, _ in stored_by_call(module):
        if name in (RAW_KEYWORD, HF_KEYWORD) and _is_true(value) and id(value) not in claimed:
            yield Setting(State.ON, module, value, name, text=f'{owner}["{name}"] = True')
    for assign in module.nodes(ast.Assign):
        for target in assign.targets:
            name = _stored_name(target)
            if name in (RAW_KEYWORD, HF_KEYWORD) and _is_true(assign.value) and id(assign.value) not in claimed:
                yield Setting(State.ON, module, assign.value, name, text=f"{module.text_of(target)} = True")
    for constant in module.nodes(ast.Constant):
        if constant.value in ON_NAMES and id(constant) not in claimed and _names_a_strategy(module, constant):
            yield Setting(State.ON, module, constant, "strategy", strategy=True, text=module.text_of(constant))
    for call in module.calls_named("dict"):
        for keyword in call.keywords:
            on = isinstance(keyword.value, ast.Constant) and keyword.value.value is True
            if keyword.arg in (RAW_KEYWORD, HF_KEYWORD) and on and id(keyword.value) not in claimed:
                yield Setting(State.ON, module, keyword.value, keyword.arg, text=f"dict({keyword.arg}=True)")


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _stored_name(target: ast.expr) -> str:
    """The key or attribute that an assignment sets; a plain name counts where a configuration in Python gives it a value."""
    if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
        return str(target.slice.value)
    return target.attr if isinstance(target, ast.Attribute) else target.id if isinstance(target, ast.Name) else ""


def _names_a_strategy(module: SourceModule, node: ast.Constant) -> bool:
    """True where the string is a value: an argument, an element, something assigned; not where it is compared or printed."""
    up = module.parent(node)
    while isinstance(up, (ast.IfExp, ast.BoolOp)):
        up = module.parent(up)
    if isinstance(up, ast.keyword):
        return up.arg is not None and "strategy" in up.arg
    if isinstance(up, ast.Assign):
        return any("strategy" in module.text_of(t) for t in up.targets)
    if isinstance(up, ast.Dict):
        pairs = zip(up.keys, up.values, strict=True)
        return any(v is node and isinstance(k, ast.Constant) and "strategy" in str(k.value) for k, v in pairs)
    return False


# Settings of one call


def _keyword_wrapper(
    project: Project, module: SourceModule, call: ast.Call, framework: Framework, keyword: str, taken: set[int]
) -> Wrapper:
    taken.add(id(call))
    settings = tuple(_keyword_settings(project, module, call, keyword))
    static = next((k.value for k in call.keywords if k.arg in STATIC_KEYWORDS), None)
    constant = static.value if isinstance(static, ast.Constant) else None
    return Wrapper(framework, module, call, settings, constant if isinstance(constant, bool) else None if static else False)


def _keyword_settings(project: Project, module: SourceModule, call: ast.Call, keyword: str) -> Iterator[Setting]:
    value = next((k.value for k in call.keywords if k.arg == keyword), None)
    if value is None and keyword == RAW_KEYWORD and len(call.args) > 8:
        value = call.args[8]
        yield from _values(project, module, value, keyword, None, conditional=False)
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
    elif (default := default_of(project, module, value)) is not None:
        state = State.ON if default.value else State.OFF
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
        for inner_module, function in _called(project, module, expression):
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


def _called(project: Project, module: SourceModule, call: ast.Call) -> list[tuple[SourceModule, FunctionNode]]:
    if found := find_function(project, module, call.func, call):
        return [found]
    name = dotted(call.func)
    owner = module.class_of(call)
    if owner is not None and name.startswith("self.") and name.count(".") == 1:
        method = class_facts(project, module, owner).method(name[5:])
        return [(method[0].module, method[1])] if method else []
    return []


# Strategies


def _strategy_settings(project: Project, module: SourceModule, call: ast.Call, taken: set[int]) -> Iterator[Setting]:
    for keyword in call.keywords:
        if keyword.arg in ("strategy", "plugins", "accelerator", "distributed_backend"):
            yield from _strategy(project, module, keyword.value, taken, conditional=False)


def _strategy(
    project: Project, module: SourceModule, node: ast.expr, taken: set[int], *, conditional: bool, depth: int = 0
) -> Iterator[Setting]:
    """The strategies an expression may come to; what is no DDP strategy is passed over."""
    if depth > 6:
        return
    if isinstance(node, ast.IfExp):
        for side in (node.body, node.orelse):
            yield from _strategy(project, module, side, taken, conditional=True, depth=depth + 1)
    elif isinstance(node, ast.BoolOp):
        for side in node.values:
            yield from _strategy(project, module, side, taken, conditional=True, depth=depth + 1)
    elif isinstance(node, (ast.List, ast.Tuple)):
        for element in node.elts:
            yield from _strategy(project, module, element, taken, conditional=conditional, depth=depth + 1)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        if state := state_of_name(node.value):
            yield Setting(state, module, node, "strategy", None, True, module.text_of(node), conditional)
    elif isinstance(node, ast.Call) and last(qualified(module, node.func)) in STRATEGY_CLASSES:
        taken.add(id(node))
        yield from _keyword_settings(project, module, node, RAW_KEYWORD)
    elif isinstance(node, ast.Name):
        home = module.function_of(node)
        values = assignments(module, node.id, home) or (assignments(module, node.id, None) if home else [])
        for value in values:
            yield from _strategy(project, module, value, taken, conditional=conditional or len(values) > 1, depth=depth + 1)


def state_of_name(name: str) -> State | None:
    if name in ON_NAMES:
        return State.ON
    if name.endswith("find_unused_parameters_false"):
        return State.OFF
    return State.DEFAULT if name in OFF_NAMES else None


# Edits


def switched(setting: Setting, to: str) -> Edit | None:
    """The edit that writes `to` (`True`, `False`, or a strategy's name) in place of the setting."""
    module = setting.module
    if setting.strategy:
        quote = module.text_of(setting.node)[:1]
        return ReplaceExpression(module.path, module.span(setting.node), f"{quote}{to}{quote}") if quote in "'\"" else None
    if setting.call is not None:
        return SetKeyword(module.path, module.span(setting.call), setting.keyword, to)
    if setting.state in (State.ON, State.OFF):
        return ReplaceExpression(module.path, module.span(setting.node), to)
    return None


def comment_at(setting: Setting, lines: tuple[str, ...]) -> Edit:
    """The comment above the argument where the call has one argument a line, else above the statement."""
    module = setting.module
    if setting.call is not None and setting.state is not State.DEFAULT and _own_line(module, setting):
        return AddComment(module.path, module.span(setting.call), lines, setting.keyword)
    return AddComment(module.path, module.span(module.statement_of(setting.node)), lines)


def comment_column(setting: Setting) -> int:
    """The column that the comment will start at."""
    module = setting.module
    if setting.call is not None and _own_line(module, setting):
        keyword = module.parent(setting.node)
        return module.span(keyword).column if isinstance(keyword, ast.keyword) else 0
    return module.span(module.statement_of(setting.node)).column


def _own_line(module: SourceModule, setting: Setting) -> bool:
    """True where the argument begins its line."""
    keyword = module.parent(setting.node)
    if not isinstance(keyword, ast.keyword) or setting.call is None or keyword.lineno == setting.call.lineno:
        return False
    span = module.span(keyword)
    return not module.lines[span.line - 1][: span.column].strip()


def anchor_of(setting: Setting) -> ast.AST:
    """What a finding about the setting points at: the whole argument where it is one."""
    up = setting.module.parent(setting.node)
    return up if isinstance(up, ast.keyword) and setting.call is not None else setting.node


def static_graph_of(setting: Setting) -> ast.keyword | None:
    """`static_graph=…` in the call that the setting stands in, unless it is written as False or None."""
    for keyword in setting.call.keywords if setting.call is not None else []:
        off = isinstance(keyword.value, ast.Constant) and not keyword.value.value
        if keyword.arg in STATIC_KEYWORDS and not off:
            return keyword
    return None


def is_on(keyword: ast.keyword) -> bool:
    return isinstance(keyword.value, ast.Constant) and keyword.value.value is True
