"""What `torch.save` writes of a DDP wrapper, and where the project loads such a file into a bare model."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_in
from codemods.analysis.bound_values import assigned
from codemods.analysis.class_index import ClassFacts
from codemods.analysis.distribution import is_test_file, is_test_module
from codemods.analysis.model.signatures import bind
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.uses import uses_of
from codemods.analysis.wrapped.bound_places import end_of
from codemods.analysis.wrapped.holders import MOST_CALLERS, Wrapped, wrapper_in
from codemods.analysis.wrapped.made_models import classes_of
from codemods.analysis.wrapped.wrapper_tests import is_tested
from codemods.analysis.wrapped.wraps import without_moves
from codemods.late_pattern import late
from codemods.project import Project
from codemods.record import record
from codemods.source import SourceModule

# What takes `module.` off the keys of a state, or puts it on.
_STRIPS = late(rb"""["']module\.?["']|consume_prefix|\[7:\]|remove_prefix|strip_prefix|removeprefix""")
# Wrappers other than torch's own of DDP, which `wrapper_in` follows.
_PARALLEL = late(r"Parallel(?:Criterion|Model)?$|^DP$|^FSDP$")
# A file that this training did not write.
_GIVEN = late(r"pretrain|backbone|imagenet|init_|_init|hub|clip|vgg|resnet|teacher|vae|http", 2)  # 2: re.IGNORECASE


@record
class Saved:
    """A wrapper in what is saved. node: the expression of it; key: under which key of a dict, "" for the whole file; state: its
    `state_dict()`, else the wrapper itself."""

    call: ast.Call
    node: ast.expr
    wrapped: Wrapped
    key: str
    state: bool


@record
class Loaded:
    """A state from a file that goes into a model without the wrapper. strict: keys that do not fit raise."""

    module: SourceModule
    call: ast.Call
    key: str
    strict: bool
    receiver: str
    classes: tuple[ClassFacts, ...]


def saved_wrappers(project: Project, module: SourceModule) -> Iterator[Saved]:
    """Every wrapper, and every state of one, that a `torch.save` of this file writes."""
    for call in module.calls_named("save"):
        owner = dotted(call.func).rpartition(".")[0]
        if not call.args or not (qualified(module, call.func) == "torch.save" or "accelerator" in last(owner).lower()):
            continue
        if is_tested(module, call):
            continue
        for key, value in entries(module, call.args[0]):
            state = isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "state_dict"
            node = value.func.value if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and state else value
            if isinstance(node, (ast.Name, ast.Attribute)) and (found := wrapper_in(project, module, node)) is not None:
                if not is_tested(module, value):
                    yield Saved(call, node, found, key, state)


def strips(data: bytes) -> bool:
    """True for a file that takes `module.` off the keys of a state, or puts it on."""
    return _STRIPS.search(data) is not None


def entries(module: SourceModule, node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """(key, value) of what is saved: a dict written out, one that a name holds, or the value itself."""
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant):
                yield str(key.value), value
        return
    if isinstance(node, ast.Call) and dotted(node.func) == "dict":
        yield from ((k.arg, k.value) for k in node.keywords if k.arg)
        return
    if isinstance(node, ast.Name):
        scope = module.function_of(node)
        above = [b for b in bindings_in(module, scope, node.id) if not b.part and end_of(b.node) < node.lineno]
        held = above[0].value if len(above) == 1 else None
        if isinstance(held, ast.Dict) or (isinstance(held, ast.Call) and dotted(held.func).endswith("dict")):
            yield from entries(module, held)
            return
    yield "", node


def bare_loads(project: Project) -> tuple[Loaded, ...]:
    """Every `model.load_state_dict(...)` of a bare model with a state that comes straight from a file."""
    return project.memo("states loaded into bare models", lambda: tuple(_loads(project)))


def _loads(project: Project) -> Iterator[Loaded]:
    for path in project.files_containing(b".load_state_dict("):
        module = None if is_test_file(path) or _STRIPS.search(project.read(path) or b"") else project.module(path)
        if module is None:
            continue
        for call in module.calls_named("load_state_dict"):
            if (one := _load(project, module, call)) is not None:
                yield one


def _load(project: Project, module: SourceModule, call: ast.Call) -> Loaded | None:
    if not call.args or not isinstance(call.func, ast.Attribute) or is_tested(module, call):
        return None
    key = key_of(module, call.args[0])
    holder = call.func.value
    if key is None or any(word in dotted(holder).lower() for word in ("optim", "sched", "scaler", "ema")):
        return None
    inside = isinstance(holder, ast.Attribute) and holder.attr == "module"
    bare = holder.value if isinstance(holder, ast.Attribute) and inside else holder
    if not inside and is_in_parallel(module, bare):
        return None
    found = wrapper_in(project, module, bare) if isinstance(bare, (ast.Name, ast.Attribute)) else None
    if found is not None and not inside:
        return None
    classes = classes_of(project, found.module, found.model) if found is not None else classes_of(project, module, bare)
    given = call.args[1] if len(call.args) > 1 else next((k.value for k in call.keywords if k.arg == "strict"), None)
    strict = not (isinstance(given, ast.Constant) and given.value is False)
    if not classes and found is None:
        classes = _handed_classes(project, module, bare)
    return Loaded(module, call, key, strict, dotted(bare), classes)


def is_in_parallel(module: SourceModule, node: ast.expr) -> bool:
    """True for `DataParallel(net).cuda()` and other wrappers: their keys begin with `module.`, as those of DDP do."""
    values = [node] if isinstance(node, ast.Call) else assigned(module, node, dotted(node)) if dotted(node) else []
    calls = (v for v in map(without_moves, values) if isinstance(v, ast.Call) and v.lineno <= node.lineno)
    return any(_PARALLEL.search(last(qualified(module, c.func)) or last(dotted(c.func))) for c in calls)


def _handed_classes(project: Project, module: SourceModule, node: ast.expr) -> tuple[ClassFacts, ...]:
    """The classes of what the callers hand over for a parameter, where each hands over a bare model."""
    function = module.function_of(node)
    if not isinstance(node, ast.Name) or function is None:
        return ()
    out: list[ClassFacts] = []
    for site in uses_of(project, module, function).calls[:MOST_CALLERS]:
        given = (bind(function, site.call, bound=isinstance(module.parent(function), ast.ClassDef)) or {}).get(node.id)
        if given is None or is_test_module(site.module) or wrapper_in(project, site.module, given) is not None:
            return ()
        out += classes_of(project, site.module, given)
    return tuple(out)


def key_of(module: SourceModule, node: ast.expr) -> str | None:
    """The key under which a state stands in a file of this training; None where it is changed, or from another file."""
    return _key(module, node, 0)


def _key(module: SourceModule, node: ast.expr, depth: int) -> str | None:
    """The key of the file under which the state stands, "" for the file itself; None where it is changed, or not from a file."""
    if depth > 3:
        return None
    if isinstance(node, ast.Call):
        if last(dotted(node.func)) == "get" and isinstance(node.func, ast.Attribute) and node.args:
            return _below(module, node.func.value, node.args[0], depth)
        is_load = qualified(module, node.func) == "torch.load" and node.args
        return "" if is_load and not _is_given(module, node.args[0]) else None
    if isinstance(node, ast.Subscript):
        return _below(module, node.value, node.slice, depth)
    if isinstance(node, ast.Name):
        scope = module.function_of(node)
        values = [b for b in bindings_in(module, scope, node.id) if end_of(b.node) < node.lineno]
        if scope is not None and not values:
            values = bindings_in(module, None, node.id)
        one = values[-1] if len(values) == 1 else None
        return _key(module, one.value, depth + 1) if one is not None and one.value is not None and not one.part else None
    return None


def _below(module: SourceModule, holder: ast.expr, name: ast.expr, depth: int) -> str | None:
    if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
        return None
    return name.value if _key(module, holder, depth + 1) == "" else None


def _is_given(module: SourceModule, path: ast.expr) -> bool:
    texts = [module.text_of(path)]
    parts = {id(n.value) for n in ast.walk(path) if isinstance(n, ast.Attribute)}  # `args` of `args.folder` says nothing
    for name in (n for n in ast.walk(path) if isinstance(n, ast.Name) and id(n) not in parts):
        texts += [module.text_of(b.value) for b in bindings_in(module, module.function_of(name), name.id) if b.value is not None]
    return any(_GIVEN.search(text) for text in texts)


def load_of(project: Project, module: SourceModule, saved: Saved) -> Loaded | None:
    """A load that what is saved goes to: of the same key, into the same class, or into the variable that is wrapped later."""
    wanted = {id(f.lineage[0].node) for f in classes_of(project, saved.wrapped.module, saved.wrapped.model)}
    for one in bare_loads(project):
        if one.key != saved.key:
            continue
        if wanted & {id(f.lineage[0].node) for f in one.classes}:
            return one
        home = saved.wrapped.module
        same = one.module is home and home.function_of(one.call) is home.function_of(saved.wrapped.wrap)
        if same and saved.wrapped.model is not None and one.receiver == dotted(saved.wrapped.model) and not one.classes:
            return one
    return None


def copied_wrappers(project: Project, module: SourceModule) -> Iterator[tuple[ast.Call, ast.expr, Wrapped]]:
    for call in module.calls_named("deepcopy"):
        if call.args and isinstance(call.args[0], (ast.Name, ast.Attribute)) and not is_tested(module, call):
            if (found := wrapper_in(project, module, call.args[0])) is not None:
                yield call, call.args[0], found
