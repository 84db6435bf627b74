"""Wrappers that nobody runs: what they wrap is run inside of another model, whose layers it is made of or hooked into."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.accelerators import is_accelerator, is_fabric
from codemods.analysis.bindings import attribute_bindings, bindings_of
from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import dotted, last
from codemods.analysis.wrapped.losses import Behind, backward_passes, behind
from codemods.analysis.wrapped.wraps import inner_of, is_wrap
from codemods.files.source import SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project

# What may be done to a wrapper without running it: methods of it, and functions that it may be handed to.
_METHODS = frozenset(
    {"parameters", "named_parameters", "train", "eval", "to", "cuda", "cpu", "state_dict", "load_state_dict", "requires_grad_",
     "zero_grad", "modules", "named_modules", "apply_to", "no_sync", "module", "half", "float", "children", "buffers"}
)  # fmt: skip
_HANDED = frozenset(
    {"accumulate", "unwrap_model", "no_sync", "clip_grad_norm_", "isinstance", "hasattr", "getattr", "len", "id", "type", "print",
     "register_for_checkpointing", "get_state_dict", "save_model", "prepare", "setup", "DistributedDataParallel", "DDP",
     "no_backward_sync", "clip_gradients"}
)  # fmt: skip


@record
class Unrun:
    """A wrapper that is never run. run: the call, behind a loss, of the model that the wrapped layers are part of."""

    wrap: ast.Call
    name: str
    model: str
    run: Behind | None


@record
class _Pair:
    """A module that is wrapped, as it is handed over and as it is called behind the wrap."""

    wrap: ast.Call
    given: ast.expr
    name: str


def unrun_wraps(project: Project, module: SourceModule) -> Iterator[Unrun]:
    for pair in _pairs(project, module):
        model = _parts_of(module, pair)
        hooked = not model and _is_hooked(project, pair)
        if not (model or hooked) or _may_be_run(project, module, pair):
            continue
        if hooked:
            yield Unrun(pair.wrap, pair.name, "", None)
        elif model and not _is_wrapped(module, model) and (run := _run_of(project, module, model)) is not None:
            yield Unrun(pair.wrap, pair.name, model, run)


def is_only_kept(project: Project, module: SourceModule, wrap: ast.Call) -> bool:
    """True for `DistributedDataParallel(net)` in a name that is read, for its state say, and that nobody runs or hands on."""
    pair = next((p for p in _pairs(project, module) if p.wrap is wrap), None)
    if pair is None or "." in pair.name or not module.reads_of(pair.name):
        return False
    scope = module.function_of(wrap)
    read = [r for r in module.reads_of(pair.name) if isinstance(r, ast.Name) and _is_seen_from(module, r, scope)]
    return any(r.lineno > wrap.lineno for r in read) and not any(
        _runs(project, module, pair, r) for r in read if r.lineno > wrap.lineno or _is_in_loop_with(module, wrap, r)
    )


def _is_in_loop_with(module: SourceModule, wrap: ast.Call, read: ast.AST) -> bool:
    """True where a loop comes back to the read behind the wrap."""
    loops = {id(up) for up in module.ancestors(wrap) if isinstance(up, (ast.For, ast.While))}
    return any(id(up) in loops for up in module.ancestors(read))


def _pairs(project: Project, module: SourceModule) -> Iterator[_Pair]:
    """Each module that `prepare`, `fabric.setup` or `DistributedDataParallel` wraps in an assignment."""
    for assign in module.nodes(ast.Assign):
        call, target = assign.value, assign.targets[0]
        if not isinstance(call, ast.Call) or len(assign.targets) != 1:
            continue
        if is_wrap(module, call):
            given = inner_of(call)
            if given is not None and dotted(target):
                yield _Pair(call, given, dotted(target))
        elif _wraps_many(project, module, call):
            targets = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
            if len(targets) == len(call.args):
                yield from (_Pair(call, g, dotted(t)) for g, t in zip(call.args, targets, strict=True) if dotted(t))


def _wraps_many(project: Project, module: SourceModule, call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute):
        return False
    if call.func.attr == "prepare":
        return is_accelerator(project, module, call.func.value)
    return call.func.attr == "setup" and is_fabric(project, module, call.func.value)


def _parts_of(module: SourceModule, pair: _Pair) -> str:
    """`net` for `layers = Layers(net.attn_processors)`: the model whose layers the wrapped module is made of."""
    if not isinstance(pair.given, ast.Name):
        return ""
    for bound in bindings_of(module, pair.given):
        value = bound.value
        if not isinstance(value, ast.Call) or bound.part or len(value.args) != 1 or value.keywords:
            continue
        part = value.args[0]
        if last(dotted(value.func))[:1].isupper() and isinstance(part, ast.Attribute) and "." in dotted(part):
            owner = dotted(part.value)
            if owner not in ("self", "cls") and "config" not in last(owner) and "config" not in part.attr:
                return owner
    return ""


def _is_hooked(project: Project, pair: _Pair) -> bool:
    """True for `network.apply_to(...)`: the network puts its layers into those of other models, which are run."""
    name = last(dotted(pair.given))
    if not name or not project.files_containing(b".apply_to("):
        return False
    for path in project.files_containing(b".apply_to("):
        other = project.module(path)
        for call in other.calls_named("apply_to") if other is not None else ():
            if isinstance(call.func, ast.Attribute) and _holder(call.func.value) == name and not is_test_file(path):
                return True
    return False


def _holder(node: ast.expr) -> str:
    """`network` of `network.to(device)`: what a chain of methods is called on."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    return last(dotted(node))


def _may_be_run(project: Project, module: SourceModule, pair: _Pair) -> bool:
    """True where a place calls the wrapper, hands it on, or keeps it where it is not followed."""
    name = last(pair.name)
    if "." not in pair.name:
        return _runs_name(project, module, pair, module.function_of(pair.wrap))
    for path in project.files_containing(name.encode()):
        other = project.module(path)
        if other is None or is_test_file(path):
            continue
        if any(_runs(project, other, pair, r) for r in other.reads_of(name) if not _is_raw(other, r)):
            return True
    return False


def _runs_name(project: Project, module: SourceModule, pair: _Pair, scope: ast.AST | None) -> bool:
    reads = (r for r in module.reads_of(pair.name) if isinstance(r, ast.Name) and _is_seen_from(module, r, scope))
    return any(_runs(project, module, pair, r) for r in reads)


def _is_raw(module: SourceModule, read: ast.AST) -> bool:
    """True for `self.x` in the function that makes it, below the making: it is not wrapped yet."""
    if not isinstance(read, ast.Attribute):
        return False
    function = module.function_of(read)
    made = [b for b in attribute_bindings(module, read) if module.function_of(b.node) is function and not b.part]
    return any(isinstance(b.value, ast.Call) and getattr(b.node, "lineno", 0) < read.lineno for b in made)


def _runs_returned(project: Project, module: SourceModule, pair: _Pair, read: ast.AST) -> bool:
    """Whether what a method hands out (`def get_module(self): return self.network`) is run by a caller."""
    function = module.function_of(read)
    if function is None or "." not in pair.name:
        return True
    for path in project.files_containing(f".{function.name}(".encode()):
        other = project.module(path)
        for call in other.calls_named(function.name) if other is not None else ():
            up = other.parent(call) if other is not None else None
            if other is None or not isinstance(up, ast.Assign) or not isinstance(up.targets[0], ast.Name):
                return True
            if _runs_name(project, other, _Pair(pair.wrap, pair.given, up.targets[0].id), other.function_of(call)):
                return True
    return False


def _is_seen_from(module: SourceModule, read: ast.AST, scope: ast.AST | None) -> bool:
    return scope is None or any(up is scope for up in module.ancestors(read))


def _runs(project: Project, module: SourceModule, pair: _Pair, read: ast.AST) -> bool:
    if isinstance(read, ast.Attribute) and "." not in pair.name:
        return False  # an attribute of something else
    up = module.parent(read)
    if isinstance(up, ast.Attribute):
        return up.attr not in _METHODS and not up.attr.startswith(("save", "load"))
    if isinstance(up, ast.keyword):
        up = module.parent(up)
    if isinstance(up, ast.Call):
        return up.func is read or last(dotted(up.func)) not in _HANDED
    if isinstance(up, (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.If, ast.Delete, ast.FormattedValue)):
        return False
    if isinstance(up, ast.Return):
        return _runs_returned(project, module, pair, read)
    return True


def _is_wrapped(module: SourceModule, model: str) -> bool:
    """True where the model itself, or what it is bound to, is wrapped or prepared in the file."""
    for call in module.calls_named("prepare", "prepare_model", "setup", "DistributedDataParallel", "DDP"):
        if any(dotted(a) == model or last(dotted(a)) == last(model) for a in call.args):
            return True
    return False


def _run_of(project: Project, module: SourceModule, model: str) -> Behind | None:
    """The first call of the model that a loss of the file is made of."""
    for one in backward_passes(module):
        calls = [b for b in behind(project, one) if b.module is module and dotted(b.call.func) == model]
        if calls:
            return min(calls, key=lambda b: b.call.lineno)
    return None
