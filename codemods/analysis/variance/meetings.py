"""The collectives that a call comes to: its own, the forward of a wrapped model, and those of the functions that it calls."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_of
from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.class_index import ClassSite, Role, class_facts
from codemods.analysis.class_values import class_values
from codemods.analysis.names import dotted, family, last, qualified
from codemods.analysis.ranks.collectives import OUT_OF_PLACE, Collective
from codemods.analysis.ranks.trace_items import Step
from codemods.analysis.variance.bare_by_argument import is_of_a_bare_model
from codemods.analysis.variance.gradient_sync import may_have_one_model, may_sync_gradients
from codemods.analysis.variance.heirs import held_by_heirs
from codemods.analysis.variance.objects import wrapped
from codemods.analysis.variance.past_the_wrapper import all_made_past_the_wrapper, is_made_past_the_wrapper
from codemods.analysis.variance.paths import own_field, path_of
from codemods.analysis.variance.state import STEP, Meeting, State
from codemods.analysis.variance.values import SAME, UNKNOWN, Cause, How, Kind, Proof, Thing, Value, differing
from codemods.analysis.wrapped.arms import is_bare
from codemods.data.rank_variance import HOST_PACKAGES, IN_PLACE, SAME_CALLS, SHARDED_GENERATION, TO_ONE_RANK

MOST_MEETINGS = 6  # of one call; more of them say no more
MOST_STEPS = 7  # calls on the way to a collective that a reader still follows
_NO_MEETING = frozenset({"init_process_group", "new_group", "DistributedDataParallel", "log", "log_dict", "mark_step_sync"})
_GIVES_BACK = ("accelerate", "fabric", "lightning")  # their collectives give a new tensor, and leave the old one as it is
# Hooks in which Lightning logs by the step unless it is asked for the epoch.
_BY_STEP = frozenset({"training_step", "training_step_end", "on_train_batch_start", "on_train_batch_end", "on_before_backward"})
_TENSOR_KEYWORDS = ("tensor_list", "object_list", "output_tensor", "tensors", "tensor")
_LIST_KEYWORDS = ("gather_list", "object_gather_list")


def meet(state: State, node: ast.AST, *meetings: Meeting) -> None:
    """Note that the statement comes to these collectives."""
    known = state.met.get(id(node), ())
    fresh = tuple(m for m in meetings if all(m.place != k.place for k in known))
    state.met[id(node)] = (*known, *fresh)[:MOST_MEETINGS]
    if state.in_place:
        state.conditional.add(id(node))


def meet_here(state: State, node: ast.Call, name: str) -> None:
    """The call itself is the meeting: a backward, a step of the optimizer, `compute()` of a metric."""
    step = Step(state.module.path, node.lineno, f"{state.module.text_of(node.func)}()")
    meet(state, node, Meeting(name, (step,), carries=name == "compute"))


def meet_behind(
    state: State,
    node: ast.AST,
    text: str,
    summary: State,
    binding: dict[str, Value],
    *,
    heir: bool = False,
    exact: bool = False,
) -> None:
    """What a function comes to, its caller comes to as well. text: the step that leads there, as it is told.

    heir: the function is that of a derived class. exact: the class of the object is known, so what others make does not count.
    """
    step = Step(state.module.path, getattr(node, "lineno", 0), text)
    found: list[Meeting] = []
    for ident, meetings in summary.met.items():
        for m in meetings:
            if exact and m.heir:
                continue
            needs, maybe = "", m.maybe
            if m.needs:
                model = binding.get(m.needs, UNKNOWN)
                if model.kind is Kind.MODULE:  # `model.module` of a parameter: the module inside waits for nobody
                    continue
                needs = next(iter(model.params), "") if len(model.params) == 1 else ""
                if not needs and not (model.kind is Kind.WRAPPED and model.thing is not None and model.thing.waits is not False):
                    continue
                maybe = maybe or (model.thing is not None and model.thing.waits is None)
            if len(m.steps) < MOST_STEPS:
                must = m.must and ident not in summary.conditional
                found.append(Meeting(m.name, (step, *m.steps), must, m.carries, needs, maybe, heir or m.heir))
    if found:
        meet(state, node, *found)


# Collectives


def collective_value(state: State, node: ast.Call, found: Collective, args: list[Value]) -> Value:
    """A collective waits for all ranks; what it gives, or leaves in its argument, is the same on all of them."""
    if found.name == "DistributedDataParallel":
        return wrapped(state, node, found.name, args)
    step = Step(state.module.path, node.lineno, found.text)
    if found.name in _NO_MEETING:
        if found.name in ("log", "log_dict") and _reduces_at_once(state, node):
            meet(state, node, Meeting(found.name, (step,)))
        return SAME
    if found.writes_its_part:  # each rank writes its own part, and waits for nobody under plain DDP
        return SAME
    if not _is_of_shards(state, node):
        meet(state, node, Meeting(found.name, (step,), carries=not found.waits_only))
    if found.text.startswith(OUT_OF_PLACE):
        return SAME
    if found.name == "predict" and found.framework == "lightning":
        return _predictions(state, node)
    if found.name in TO_ONE_RANK and found.framework == "torch":
        return _sum_of_one_rank(state, node)
    position = IN_PLACE.get(found.name)
    if position is not None and found.framework not in _GIVES_BACK:
        if (tensor := _given_at(node, position)) is not None:
            make_same(state, tensor)
    return SAME


def _predictions(state: State, node: ast.Call) -> Value:
    """Lightning gives each rank what `predict_step` made of its own batches, in shares that it does not pad."""
    text = f"`{state.short(node)}` gives each rank the predictions of its own share"
    return differing(Cause.DATA, Proof.PROVEN, state.link(node, text, how=How.PREDICTED), sized=True)


def _is_of_shards(state: State, node: ast.Call) -> bool:
    """True under `if synced_gpus:` of transformers' generation, which is on where the weights are shared out over the ranks."""
    for up in state.module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        if isinstance(up, ast.If) and last(dotted(up.test)) == SHARDED_GENERATION:
            return True
    return False


def _given_at(node: ast.Call, position: int) -> ast.expr | None:
    """What a collective fills: the argument of that position, or the one of that name."""
    given = {k.arg: k.value for k in node.keywords}
    words = _LIST_KEYWORDS if position else _TENSOR_KEYWORDS
    found = node.args[position] if len(node.args) > position else next((given[w] for w in words if w in given), None)
    if isinstance(found, ast.IfExp):  # `got if rank == 0 else None`: the others have no list to fill
        return found.orelse if isinstance(found.body, ast.Constant) else found.body
    return found


def _reduces_at_once(state: State, node: ast.Call) -> bool:
    """True where Lightning reduces in the call: what is logged by the step. What is logged by the epoch is reduced at its end."""
    asked = next((k.value for k in node.keywords if k.arg == "on_step"), None)
    if isinstance(asked, ast.Constant) and asked.value is not None:
        return bool(asked.value)
    return asked is not None or state.function is None or state.function.name in _BY_STEP


def _sum_of_one_rank(state: State, node: ast.Call) -> Value:
    """`dist.reduce(x, dst=0)`: one rank has the sum, the others what they had, or something in between."""
    path = path_of(_same_tensor(node.args[0])) if node.args else ""
    if path:
        link = state.link(node, f"`{state.short(node)}` gives the sum to one rank alone")
        old = state.env.get(path)
        state.env[path] = Value(Cause.RANK, Proof.PROVEN, (link, *(old.chain[:2] if old else ()), link), decided=True)
    return SAME


def _same_tensor(node: ast.expr) -> ast.expr:
    """`loss` of `loss.div_(n)` and of `loss.detach()`: a method that ends in an underscore gives the tensor it works on."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name = node.func.attr
        if name != "detach" and (not name.endswith("_") or name.endswith("__")):
            break
        node = node.func.value
    return node


def make_same(state: State, node: ast.expr) -> None:
    """A value is equal on all ranks from here on."""
    node = _same_tensor(node)
    if isinstance(node, (ast.List, ast.Tuple)):
        for element in node.elts:
            make_same(state, element)
        return
    path = path_of(node)
    if not path and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        path = path_of(node.func.value)  # `dist.all_reduce(x.detach())`: a view of it
    path = path.removesuffix(".data")  # the same storage
    if not path:
        return
    old = state.env.get(path)
    state.env[path] = Value(thing=old.thing if old else None)
    state.made_same.add(path)
    if state.is_parameter(path):
        state.reduced.add(path)
    if name := own_field(path):
        state.sets[name] = SAME
    settle_object(state, path)


def settle_object(state: State, path: str) -> None:
    """`dist.all_reduce(meter.matrix)`: what an object of the project holds of the own data may be that of all ranks now."""
    holder = path.rpartition(".")[0]
    old = state.env.get(holder)
    if old is None or holder == "self" or not (old.cause is Cause.DATA or old.params):
        return
    told = old.kind is Kind.INSTANCE or (old.thing is None and state.is_parameter(holder) and old.params != {holder})
    if told:
        state.env[holder] = Value(Cause.UNKNOWN, Proof.UNKNOWN, thing=old.thing)


# What waits without being a collective by its name


def is_backward(state: State, node: ast.Call, name: str) -> bool:
    """True for `.backward()` of a tensor or of a framework, where several processes run the file."""
    root = name.partition(".")[0]
    if root in ("ctx", "torch") or family(name) in HOST_PACKAGES or not isinstance(node.func, ast.Attribute):
        return False
    owner = state.module.class_of(node)
    if owner is not None and class_facts(state.project, state.module, owner).is_a(Role.LIGHTNING_MODULE):
        return name.startswith("self.") and name.endswith("manual_backward")  # a bare one reduces nothing there
    if not state.is_parallel or not may_sync_gradients(state.project) or is_made_past_the_wrapper(state.module, node):
        return False
    return not is_of_a_bare_model(state.project, state.module, node)


def forward(state: State, node: ast.Call) -> None:
    """`model(x)` of a wrapped model with buffers or shards waits for all ranks; of a parameter, if it is handed such a model."""
    path = dotted(node.func) or state.module.text_of(node.func)
    if (known := called_object(state, node)) is None or is_bare(state.module, node, path):
        return
    step = Step(state.module.path, node.lineno, f"{path}(), the forward of the wrapper")
    if known.thing is not None and known.thing.kind is Kind.WRAPPED and known.thing.waits is not False:
        meet(state, node, Meeting("forward", (step,), maybe=known.thing.waits is None))
    elif known.thing is None and known.params == {path} and state.is_parameter(path):
        meet(state, node, Meeting("forward", (step,), needs=path))


def called_object(state: State, node: ast.Call) -> Value | None:
    """The object that `model(x)` or `self.model(x)` calls; None where it is none that is known by a name."""
    path = dotted(node.func) or state.module.text_of(node.func)
    known = state.env.get(path)
    if known is None and (name := own_field(path)) and (owner := state.own_class(node)) is not None:
        thing = state.summaries.field_thing(owner, name)
        known = Value(thing=thing or _handed_to_field(state, owner, name) or _field_of_heirs(state, owner, name))
    if known is None and isinstance(node.func, (ast.Attribute, ast.Subscript)):
        known = _one_of_models(state, node.func)
    return known


def _handed_to_field(state: State, owner: ClassSite, name: str) -> Thing | None:
    """The wrapper that whoever makes the object hands over for `self.model`: of trainers, not of models."""
    facts = class_facts(state.project, owner.module, owner.node)
    if facts.is_a(Role.NN_MODULE) or facts.is_a(Role.LIGHTNING_MODULE) or facts.method(name) is not None:
        return None
    if not class_values(state.project, facts).set_once(name):
        return None
    thing = state.summaries.field(facts.lineage[0], name).thing
    return thing if thing is not None and thing.kind is Kind.WRAPPED else None


def _field_of_heirs(state: State, owner: ClassSite, name: str) -> Thing | None:
    """The wrapper that an heir keeps in `self.model`, where the base class runs it: of trainers, not of models."""
    facts = class_facts(state.project, owner.module, owner.node)
    if facts.is_a(Role.NN_MODULE) or facts.is_a(Role.LIGHTNING_MODULE) or facts.method(name) is not None:
        return None
    thing = held_by_heirs(state, facts.lineage[0], name)
    return thing if thing is not None and thing.kind is Kind.WRAPPED else None


def _one_of_models(state: State, func: ast.Attribute | ast.Subscript) -> Value | None:
    """`models.decoder(x)`, `models["decoder"](x)` of a container that holds wrapped models."""
    holder = state.env.get(dotted(func.value))
    if holder is None or holder.thing is None or holder.thing.kind is not Kind.MODELS:
        return None
    if isinstance(func, ast.Attribute) and func.attr in (*SAME_CALLS, "items", "values", "keys", "get"):
        return None
    return Value(thing=Thing(Kind.WRAPPED, None, holder.thing.waits))


def step_of_optimizer(state: State, node: ast.Call) -> None:
    """A step of the optimizer waits for nobody, but all ranks have to make it: their weights part else."""
    if _steps_in_vain(state, node) or all_made_past_the_wrapper(state.module, node):
        return
    if state.is_parallel and may_have_one_model(state.project):
        meet_here(state, node, STEP)


def _steps_in_vain(state: State, node: ast.Call) -> bool:
    """True in a function that makes the optimizer itself and never goes backward: it tabulates a schedule, no weights change."""
    function = state.module.function_of(node)
    holder = node.func.value if isinstance(node.func, ast.Attribute) else None
    if function is None or not isinstance(holder, ast.Name) or "backward(" in state.module.text_of(function):
        return False
    made = [b.value for b in bindings_of(state.module, holder)]
    return bool(made) and all(
        isinstance(v, ast.Call) and qualified(state.module, v.func).startswith("torch.optim.") for v in made
    )


def shown(state: State, node: ast.AST, value: Value) -> None:
    """An object that is put into a text: its `__str__` runs, with the collectives that it comes to."""
    site = value.thing.site if value.thing is not None else None
    if site is None:
        return
    facts = class_facts(state.project, site.module, site.node)
    for name in ("__format__", "__str__", "__repr__"):
        if (method := facts.method(name)) is not None:
            summary = state.summaries.of(FunctionSite(method[0].module, method[1]))
            if summary is not None:
                meet_behind(state, node, f"{name} of {state.module.text_of(node)}", summary, {})
            return
