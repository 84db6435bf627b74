"""Calls whose inside the source does not show: methods of objects of a known kind, and all the others."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted, family, last
from codemods.analysis.variance.call_parts import CallParts
from codemods.analysis.variance.keeping import fill, put
from codemods.analysis.variance.meetings import make_same, meet_here, step_of_optimizer
from codemods.analysis.variance.paths import path_of
from codemods.analysis.variance.state import State, Told
from codemods.analysis.variance.values import SAME, UNKNOWN, Cause, Kind, Proof, Value, at_most, join, made_of, plain
from codemods.data.rank_variance import (
    AGREED,
    ASKS_PATHS,
    CASTS,
    EMPTIES,
    FILLS,
    HOST_PACKAGES,
    LOADER_NAMES,
    LOADS,
    OWN_PREEMPTION,
    PASSED_ON,
    SAME_CALLS,
    SAYS_REDUCED,
    WITHOUT_END,
)
from codemods.runtime.record import replace

_DATA = ("Dataset", "Subset", "Loader", "Sampler", "Tensor", "Iterator", "Reader", "Pipe", "Pipeline", "Split", "Shard", "Shards")


def call_of_thing(state: State, call: CallParts) -> Value | None:
    """A method of a metric, a scheduler, an optimizer or a model."""
    if call.holder is None:
        return None
    if call.kind is Kind.METRIC:
        return _of_metric(state, call, call.holder)
    if call.kind is Kind.PLATEAU and call.end == "step" and len(call.everything) == 1:
        state.told.append(Told(call.node, call.everything[0]))
    if call.kind is Kind.OPTIMIZER and call.end == "step":
        step_of_optimizer(state, call.node)
    if call.kind in (Kind.OPTIMIZER, Kind.PLATEAU, Kind.SAMPLER):
        return SAME
    return made_of(*call.everything) if call.kind in (Kind.MODULE, Kind.WRAPPED) else None


def _of_metric(state: State, call: CallParts, holder: Value) -> Value:
    """Of torchmetrics: `forward` gives the number of the batch, `compute` reduces over all ranks."""
    if call.end == "compute":
        meet_here(state, call.node, "compute")
        return SAME
    if call.end in ("to", "cuda", "cpu", "clone"):
        return holder
    return plain(made_of(*call.everything)) if call.end in ("forward", "__call__") else SAME


def unknown_call(state: State, call: CallParts) -> Value:
    """What the name says, and else: what the call is handed decides what it gives."""
    if _is_agreed(state, call):
        return SAME
    if _says_reduced(call):
        return _reduced(state, call)
    if call.end in SAME_CALLS:
        if call.end == "step":
            _step(state, call)
        return SAME
    path = path_of(call.node.func.value) if isinstance(call.node.func, ast.Attribute) else ""
    if call.holder is not None and call.end in EMPTIES and path in state.env:
        put(state, path, Value(thing=call.holder.thing))
        return SAME
    operands = [plain(v) for v in call.everything]
    if call.holder is not None and call.end in FILLS and path:
        told = join((*operands, *_key_of(state, call.node)))
        if told.cause.differs or told.params or state.control:
            fill(state, call.node, path, call.holder, told)
    known = family(call.name) in ("torch", "numpy", "math") or (call.end in CASTS and call.holder is None)
    if call.holder is not None and not _is_package(state, call.node.func):
        operands.append(plain(call.holder))
        known = known or call.holder.cause is not Cause.UNKNOWN
    if call.end in PASSED_ON and call.everything:
        return replace(call.everything[0], sized=False) if call.end in WITHOUT_END else call.everything[0]
    if _is_handed_out(state, call) or _looks_at_files(call):
        return UNKNOWN
    return _made_of_operands(state, call, operands, known=known)


def _is_agreed(state: State, call: CallParts) -> bool:
    """True for a question that the ranks answer together; with Determined each may ask the master by itself, if it is told so."""
    if not AGREED.search(dotted(call.node.func)):
        return False
    return call.end != "should_preempt" or not state.project.files_containing(OWN_PREEMPTION)


def _is_handed_out(state: State, call: CallParts) -> bool:
    """True for `train, validate = engine_of(args)` and then `validate(model, loader)`: such a function may well gather itself."""
    func, written = call.node.func, (*call.node.args, *(k.value for k in call.node.keywords))
    if not isinstance(func, ast.Name) or func.id not in state.env:
        return False
    return any(v.kind is Kind.LOADER for v in call.everything) or any(LOADER_NAMES.search(last(path_of(w))) for w in written)


def _looks_at_files(call: CallParts) -> bool:
    """True for `path.is_file()`: what lies on the disk is no matter of how the path was made, as with `os.path.isfile(path)`."""
    return isinstance(call.node.func, ast.Attribute) and call.end in ASKS_PATHS and not call.node.args


def _key_of(state: State, node: ast.Call) -> list[Value]:
    """The key of `groups[name].append(x)`, which a `defaultdict` puts in: which keys there are differs as it does."""
    held = node.func.value if isinstance(node.func, ast.Attribute) else None
    if not isinstance(held, ast.Subscript) or isinstance(held.slice, (ast.Slice, ast.Constant)):
        return []
    key = plain(state.value(held.slice))
    return [replace(key, sized=True, keyed=True)] if key.cause.differs or key.params else []


def _is_told_who_it_is(call: CallParts, found: Value) -> bool:
    """True for an object that is no data and was given a name or a role: `Checkpointer(model, save_to_disk=rank == 0)`.

    What it answers later is not made of that.
    """
    if not call.end[:1].isupper() or call.end.isupper():
        return False
    return found.cause is Cause.PLACE or (found.cause is Cause.RANK and not call.end.endswith(_DATA))


def _is_unseen_file(state: State, call: CallParts, found: Value) -> bool:
    """True for `torch.load(f"{rank}.pth")`: the epoch and the settings in the ranks' files are most often the same.

    In a `try` the file of one rank may be missing. What a file holds in a folder that bears the time is not made of that.
    """
    if found.cause is Cause.PLACE:
        return True
    tried = any(isinstance(up, ast.Try) for up in state.module.ancestors(call.node))
    return call.name == "torch.load" and found.cause in (Cause.RANK, Cause.UNKNOWN) and not tried


def _made_of_operands(state: State, call: CallParts, operands: list[Value], *, known: bool) -> Value:
    """known: the package is, or the object, so that nothing is guessed of what it is made of."""
    found = made_of(*operands) if operands else UNKNOWN
    if (call.end in LOADS and (found.decided or _is_unseen_file(state, call, found))) or _is_told_who_it_is(call, found):
        return UNKNOWN  # what a file holds, or an object that was given a time in its name, or the rank
    as_long = call.end in CASTS or call.end in PASSED_ON or call.end.endswith(("Dataset", "Subset"))
    if found.sized and not as_long and not (call.holder is not None and call.holder.sized):
        found = replace(found, sized=False)
    if not found.cause.differs:
        return found if found.params or known else UNKNOWN
    return found if known else at_most(found, Proof.LIKELY)


def _says_reduced(call: CallParts) -> bool:
    """True for `reduce_mean(x)` and the like; of torch only what is in its package of collectives."""
    root = family(call.name)
    of_torch = root == "torch" and not call.name.startswith("torch.distributed")
    return bool(SAYS_REDUCED.search(call.end)) and root not in HOST_PACKAGES and not of_torch


def _reduced(state: State, call: CallParts) -> Value:
    """The result is everybody's, and so is the object whose method it is; the argument only where it is done in place.

    So it is in a statement that drops the result: `dist.reduce(x, dst=0)` with a `dist` that another file brings in.
    """
    dropped = isinstance(state.module.parent(call.node), ast.Expr)
    for argument in call.node.args[:1] if dropped or call.end.startswith(("all_reduce", "allreduce")) else ():
        make_same(state, argument)
    if isinstance(call.node.func, ast.Attribute) and (path := path_of(call.node.func.value)) in state.env:
        put(state, path, Value(thing=state.env[path].thing))
        state.made_same.add(path)
    return Value(Cause.SAME, Proof.LIKELY)


def _step(state: State, call: CallParts) -> None:
    """`step` of an object that is not seen: a number makes it a scheduler, its name an optimizer."""
    if len(call.everything) == 1 and isinstance(state.module.parent(call.node), ast.Expr):
        state.told.append(Told(call.node, call.everything[0]))
    elif "optim" in dotted(call.node.func).lower():
        step_of_optimizer(state, call.node)


def _is_package(state: State, func: ast.expr) -> bool:
    return isinstance(func, ast.Attribute) and dotted(func.value).partition(".")[0] in state.module.imports
