"""What `torch.save` writes of a DDP wrapper, and where the project loads such a file into a bare model."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_in
from codemods.analysis.bound_values import assigned
from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.class_index import ClassFacts
from codemods.analysis.distribution import is_test_file, is_test_module
from codemods.analysis.handed import handed
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.analysis.ranks.uses import uses_of
from codemods.analysis.reaching import reaching
from codemods.analysis.wrapped.bound_places import end_of
from codemods.analysis.wrapped.holders import MOST_CALLERS, Wrapped, wrapper_in
from codemods.analysis.wrapped.made_models import classes_of
from codemods.analysis.wrapped.same_file import have_other_names, reads_back_bare_files
from codemods.analysis.wrapped.saving_calls import entries, of_state, saving_calls
from codemods.analysis.wrapped.wrapper_tests import is_tested
from codemods.analysis.wrapped.wraps import without_moves
from codemods.files.source import SourceModule, line_of
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

# What takes `module.` off the keys of a state, or puts it on.
_STRIPS = lazy(rb"""["']module\.?["']|consume_prefix|\[7:\]|remove_prefix|strip_prefix|removeprefix""")
_ASKS = lazy(rb"""(?:has|get)attr\(\s*[\w.]+\s*,\s*["']module["']""")  # for the wrapper, not for a key
# Wrappers other than torch's own of DDP, which `wrapper_in` follows.
_PARALLEL = lazy(r"Parallel(?:Criterion|Model)?$|^DP$|^FSDP$")
# A file that this training did not write.
_GIVEN = lazy(r"pretrain|backbone|imagenet|init_|_init|hub|clip|vgg|resnet|teacher|vae|http", 2)  # 2: re.IGNORECASE


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
    """A state from a file that goes into a model without the wrapper. strict: keys that do not fit raise.

    picked: only the keys that the model has are taken, into a state of its own.
    """

    module: SourceModule
    call: ast.Call
    key: str
    strict: bool
    receiver: str
    classes: tuple[ClassFacts, ...]
    picked: bool = False


def saved_wrappers(project: Project, module: SourceModule) -> Iterator[Saved]:
    """Every wrapper, and every state of one, that a `torch.save` of this file writes."""
    for call, written in saving_calls(project, module):
        if is_tested(module, call):
            continue
        for key, value in entries(module, written):
            holder = of_state(value)
            node = value if holder is None else holder
            if isinstance(node, (ast.Name, ast.Attribute)) and (found := wrapper_in(project, module, node)) is not None:
                if not is_tested(module, value):
                    yield Saved(call, node, found, key, state=holder is not None)


def strips(data: bytes) -> bool:
    """True for a file that takes `module.` off the keys of a state, or puts it on."""
    return _STRIPS.search(data) is not None and _STRIPS.search(_ASKS.sub(b"", data)) is not None


def bare_loads(project: Project) -> tuple[Loaded, ...]:
    """Every `model.load_state_dict(...)` of a bare model with a state that comes straight from a file."""
    return project.memo("states loaded into bare models", lambda: tuple(_loads(project)))


def _loads(project: Project) -> Iterator[Loaded]:
    for path in project.files_containing(b".load_state_dict("):
        module = None if is_test_file(path) or strips(project.read(path) or b"") else project.module(path)
        if module is None:
            continue
        for call in module.calls_named("load_state_dict"):
            if (one := _load(project, module, call)) is not None:
                yield one


def _load(project: Project, module: SourceModule, call: ast.Call) -> Loaded | None:
    if not call.args or not isinstance(call.func, ast.Attribute) or is_tested(module, call):
        return None
    updating = _updating(module, call.args[0])
    key = key_of(module, call.args[0] if updating is None else updating)
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
    strict = updating is None and not (isinstance(given, ast.Constant) and given.value is False)
    if not classes and found is None:
        classes = _handed_classes(project, module, bare)
    return Loaded(module, call, key, strict, dotted(bare), classes, picked=updating is not None)


def _updating(module: SourceModule, state: ast.expr) -> ast.expr | None:
    """What `own = model.state_dict()` is updated with before it is loaded: those entries of a file whose keys it has."""
    scope = module.function_of(state)
    bound = bindings_in(module, scope, state.id) if isinstance(state, ast.Name) else []
    if not isinstance(state, ast.Name) or not any(of_state(b.value) is not None for b in bound):
        return None
    updates = [
        c for c in module.calls_named("update")
        if module.function_of(c) is scope and dotted(c.func) == f"{state.id}.update" and c.lineno < state.lineno
    ]  # fmt: skip
    last_own = max((line_of(b.node) for b in bound if line_of(b.node) < state.lineno), default=0)
    near = [c for c in updates if c.lineno > last_own and len(c.args) == 1]
    return near[0].args[0] if len(near) == 1 and _picks(module, near[0].args[0]) else None


def _picks(module: SourceModule, node: ast.expr) -> bool:
    """True for entries that are filtered by the keys that a model has."""
    if isinstance(node, ast.Name):
        bound = [b for b in bindings_in(module, module.function_of(node), node.id) if end_of(b.node) < node.lineno]
        return bool(bound) and isinstance(max(bound, key=lambda b: line_of(b.node)).value, ast.DictComp)
    return isinstance(node, ast.DictComp)


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
        given = handed(FunctionSite(module, function), site.call).get(node.id)
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
    if isinstance(node, ast.DictComp):
        filtered = _filtered(node)
        return _key(module, filtered, depth + 1) if filtered is not None else None
    if isinstance(node, ast.Name):
        scope = module.function_of(node)
        values = [b for b in bindings_in(module, scope, node.id) if end_of(b.node) < node.lineno]
        if scope is not None and not values:
            values = bindings_in(module, None, node.id)
        values = reaching(module, node, values)
        if not values or any(b.value is None or b.part for b in values):
            return None
        keys = {_key(module, b.value, depth + 1) for b in values if b.value is not None}
        return keys.pop() if len(keys) == 1 else None
    return None


def _filtered(node: ast.DictComp) -> ast.expr | None:
    """`state` of `{k: v for k, v in state.items() if k in own}`: the keys stay as they are."""
    part = node.generators[0]
    pair = [dotted(e) for e in part.target.elts] if isinstance(part.target, ast.Tuple) else []
    if len(node.generators) > 1 or not part.ifs or [dotted(node.key), dotted(node.value)] != pair:
        return None
    test = part.ifs[0]
    asked = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.In) and dotted(test.left) == pair[0]
    items = part.iter.func if isinstance(part.iter, ast.Call) else None
    return items.value if asked and isinstance(items, ast.Attribute) and items.attr == "items" else None


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
        if one.key != saved.key or not _may_read(project, module, saved, one):
            continue
        if wanted & {id(f.lineage[0].node) for f in one.classes}:
            return one
        home = saved.wrapped.module
        same = one.module is home and home.function_of(one.call) is home.function_of(saved.wrapped.wrap)
        if same and saved.wrapped.model is not None and one.receiver == dotted(saved.wrapped.model) and not one.classes:
            return one
    return None


def _may_read(project: Project, module: SourceModule, saved: Saved, load: Loaded) -> bool:
    """False where the load reads a file of another name, one that its own program saves bare, and where nobody runs it."""
    if have_other_names(module, saved.call, load.module, load.call.args[0]):
        return False
    if load.module is not module and reads_back_bare_files(project, load.module, load.key):
        return False
    return not is_run_by_nobody(project, load.module, load.call)


def copied_wrappers(project: Project, module: SourceModule) -> Iterator[tuple[ast.Call, ast.expr, Wrapped]]:
    """Copies of a wrapper; none in a project that reads entries by names with `module.`: it goes by what such a copy holds."""
    if any(project.files_containing(quote + b"module.") for quote in (b"'", b'"')):
        return
    for call in module.calls_named("deepcopy"):
        if call.args and isinstance(call.args[0], (ast.Name, ast.Attribute)) and not is_tested(module, call):
            if (found := wrapper_in(project, module, call.args[0])) is not None:
                yield call, call.args[0], found
