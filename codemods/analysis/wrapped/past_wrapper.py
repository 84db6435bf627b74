"""The calls of the module inside a DDP wrapper that a loss is made of, where no call of that wrapper takes part in it."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.names import dotted, last
from codemods.analysis.positions import behind as statements_behind
from codemods.analysis.ranks.left_in_a_mode import all_come
from codemods.analysis.wrapped.arms import are_opposite, are_other_arms
from codemods.analysis.wrapped.losses import Backward, Behind, behind
from codemods.analysis.wrapped.plain_parts import is_plain_part
from codemods.analysis.wrapped.wraps import Held, Side, held, inside_of, without_moves
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

Past = tuple[Behind, Held, ast.expr]
_OF_RUNS = lazy(r"(?i)distrib|world|ddp|gpus|n_?gpu|device_count|parallel|multi|launch|initiali|rank|n_?proc|num_proc|module")
_MASKS = lazy(r"^(?:get|make|create|generate|build)_(?:\w+_)?masks?$")  # a mask has no gradient
# A prepared loader is gone through by these, and a wrapper asked what it is; none of them runs a model that it is given.
_GO_THROUGH = frozenset(
    {"enumerate", "iter", "next", "zip", "len", "tqdm", "range", "cycle", "prepare", "hasattr", "isinstance", "type", "id"}
)
# Methods of a parameter (`ddp.module.logit_scale.exp()`): the calls beside it say how the loss goes past the wrapper.
_OF_TENSORS = frozenset(
    {"exp", "log", "mean", "sum", "clamp", "clamp_", "sigmoid", "tanh", "sqrt", "abs", "square", "pow", "softplus"}
)


def past_the_wrapper(project: Project, one: Backward) -> list[Past]:
    """The calls of the module inside that a loss is made of; none where its wrapper takes part in it."""
    calls = behind(project, one)
    past: list[Past] = []
    for each in calls:
        if without_moves(each.call) is not each.call:
            continue  # `net.cuda()` runs nothing
        if isinstance(each.call.func, ast.Attribute) and _runs_no_layer(each.call.func.attr):
            continue
        if isinstance(each.module.parent(each.call), ast.Attribute) and is_getter(each.call):
            if run_by_getter(each.module, each.call) is None:
                continue  # `net.get_model().head.width`
        if (found := inside_of(project, each.module, each.call.func)) is not None and not is_plain_part(project, each, found[1]):
            past.append((each, *found))
    beside = [r for each in calls if past and (r := _run_wrapper(project, each)) is not None]
    past = [p for p in past if all(_is_apart(r, p, one) for r in beside if not _is_other_arm(r[0], past))]
    outer = [p for p in past if not any(p is not q and _within(p[0].call, q[0].call) for q in past)] or past
    return [p for p in outer if all_come(project, p[0].module, p[0].call)]


def _runs_no_layer(method: str) -> bool:
    return method in _OF_TENSORS or _MASKS.search(method) is not None


def is_getter(call: ast.Call) -> bool:
    """True for `net.get_model()`: it only hands out a part."""
    return last(dotted(call.func)).startswith("get_") and not call.args and not call.keywords


def run_by_getter(module: SourceModule, call: ast.Call) -> ast.Call | None:
    """The call of what a getter hands out, or of a part of it: `net.get_model().head(x)`."""
    node: ast.expr = call
    while is_getter(call) and isinstance(above := module.parent(node), ast.Attribute):
        node = above
    up = module.parent(node)
    return up if node is not call and isinstance(up, ast.Call) and up.func is node else None


def _is_other_arm(each: Behind, past: list[Past]) -> bool:
    """True where a test lets either run, the wrapper or the module inside: `if hasattr(model, "module"): … else: …`."""
    return all(
        are_opposite(each.module, each.call, p[0].call)
        if each.module is p[0].module and each.through is p[0].through
        else _is_other_helper(each, p[0])
        for p in past
    )


def _is_other_helper(each: Behind, gone: Behind) -> bool:
    """True where the module inside is run by a helper that is called in the other arm: `out = net(x)`, else `out = run(net, x)`.

    Not where the test asks for a run of several processes: the helper may be for the others, which have no wrapper.
    """
    if each.through is not None or gone.through is None or not are_other_arms(each.module, each.call, gone.through):
        return False
    tests = [up.test for up in each.module.ancestors(gone.through) if isinstance(up, (ast.If, ast.IfExp))]
    return not any(_OF_RUNS.search(each.module.text_of(test)) for test in tests)


def _within(call: ast.Call, other: ast.Call) -> bool:
    return any(n is call for n in ast.walk(other.func))


def _run_wrapper(project: Project, each: Behind) -> tuple[Behind, Held, ast.expr] | None:
    """The wrapper that a call runs, or may run as it is handed it."""
    func = each.call.func
    ran = [func.value, func] if isinstance(func, ast.Attribute) and func.attr == "forward" else [func]
    taken_out = held(project, each.module, each.call) is not None  # `unwrap_model(ddp)` runs nothing
    taken_out = taken_out or last(dotted(func)) in _GO_THROUGH
    reworked = _given_back(each.module, each.call)
    given = [] if each.entered or taken_out else [*each.call.args, *(k.value for k in each.call.keywords)]
    for node in [*ran, *(a.value if isinstance(a, ast.Starred) else a for a in given)]:
        if isinstance(node, (ast.Name, ast.Attribute)) and dotted(node) not in reworked:
            found = held(project, each.module, node)
            if found is not None and found.side is Side.WRAPPER:
                return each, found, node
    return None


def _given_back(module: SourceModule, call: ast.Call) -> set[str]:
    """Names that a call is handed and gives anew (`net, optimizer = amp.initialize(net, optimizer)`): a model comes of it.

    Of the names that it is called on (`net = net(x)`) it says nothing.
    """
    up = module.parent(call)
    if not isinstance(up, ast.Assign) or up.value is not call:
        return set()
    given = {dotted(a) for a in (*call.args, *(k.value for k in call.keywords))} - {""}
    return given & {dotted(t) for target in up.targets for t in getattr(target, "elts", [target])}


def _is_apart(run: tuple[Behind, Held, ast.expr], past: Past, one: Backward) -> bool:
    """True where the wrapper that is run is another one, of another model, and the next step is that of the model gone past.

    `vae, critic = accelerator.prepare(vae, critic)`: a loss of `vae.module.encode(x)` and `critic(x)`
    makes the critic's DDP ready.
    """
    (each, other, node), (gone, inside, _) = run, past
    module = one.module
    if not (each.module is gone.module is other.module is inside.module is module and inside.prepared and other.prepared):
        return False
    names = _targets(module, inside.wrap)
    other_name = dotted(node)
    if other.wrap is not inside.wrap or inside.wrapper == other_name or not {inside.wrapper, other_name} <= names:
        return False
    return _steps_next(module, one.call, inside.wrapper)


def _targets(module: SourceModule, wrap: ast.Call) -> set[str]:
    up = module.parent(wrap)
    if not isinstance(up, ast.Assign) or not isinstance(up.targets[0], (ast.Tuple, ast.List)):
        return set()
    return {dotted(t) for t in up.targets[0].elts if dotted(t)}


def _steps_next(module: SourceModule, backward: ast.Call, model: str) -> bool:
    """True where the first optimizer that steps behind the backward pass was made of the parameters of `model`."""
    for statement in statements_behind(module, module.statement_of(backward)):
        for call in walk(statement):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "step":
                holder = call.func.value
                return isinstance(holder, ast.Name) and _is_made_of(module, holder, model)
    return False


def _is_made_of(module: SourceModule, optimizer: ast.Name, model: str) -> bool:
    values = [b.value for b in bindings_of(module, optimizer) if b.value is not None and not b.part]
    reads = [n for v in values for n in walk(v) if isinstance(n, ast.Attribute) and n.attr in ("parameters", "named_parameters")]
    return bool(reads) and all(dotted(n.value) == model for n in reads)
