"""How a sampler is told its epoch: the call of `set_epoch` that goes above a pass, or why none is written."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_in, bindings_of
from codemods.analysis.loading.epochs import Counter, counter_of, place_for
from codemods.analysis.loading.origins import BARS
from codemods.analysis.loading.passes import Epochs
from codemods.analysis.loading.restarts import Restart, is_only_loop
from codemods.analysis.loading.untold import Untold
from codemods.analysis.names import dotted, last, qualified
from codemods.api.findings import Applicability, Edit, InsertBefore, ReplaceExpression
from codemods.files.source import SourceModule
from codemods.store.project import Project

# The edits, what they assume or why there are none, and how sure they are.
Repair = tuple[list[Edit], str, Applicability]


def told_each_epoch(module: SourceModule, missing: Untold, epochs: Epochs, name: str, counter: Counter | None) -> Repair:
    """The number of the epoch, at the top of the loop over epochs. name: the loader, as it is written there."""
    if missing.listed is not None:
        reason = "each loader of the list has a sampler of its own: give each the number of the round before it is gone through"
        return _by_hand(reason)
    if counter is None:
        return _by_hand("call `sampler.set_epoch(n)` before each pass, with a number that grows and is the same on every rank")
    holder, plain = _holder(module, missing, epochs, name)
    call = f"`loader{_way_to_sampler(missing)}.set_epoch(epoch)`"
    if not holder and missing.wrapped:
        return _by_hand(f"what is gone through here holds the loader: hand the epoch on, and call {call}")
    if not holder and name and _is_behind_a_bar(module, epochs, name):
        return _by_hand(f"`{name}` may be a progress bar here: keep the loader under a name of its own, and call {call}")
    if not holder:
        return _by_hand(f"the loader has no name at this loop: hand the epoch on, and call {call}")
    place = place_for(epochs, missing.found, holder if plain else name)
    if place is None or not module.is_whole(place) or place.lineno == epochs.loop.lineno:
        return _by_hand(f"the loader is made in the same statement: call {call} before it is gone through")
    edits: list[Edit] = []
    number = counter.name
    if number == "_" and isinstance(epochs.loop, ast.For):
        if "epoch" in {n.id for n in module.nodes(ast.Name)} or any(
            n.id == "_" for n in module.nodes(ast.Name) if isinstance(n.ctx, ast.Load)
        ):
            return _by_hand("give the number of the epoch a name, and call `sampler.set_epoch(epoch)` with it")
        number = "epoch"
        edits.append(ReplaceExpression(module.path, module.span(epochs.loop.target), number))
    call = f"{holder}.set_epoch({number})"
    if not missing.sure:
        test = f"{holder} is not None" if plain and missing.none else f'hasattr({holder}, "set_epoch")'
        call = f"if {test}:\n    {call}"
    edits.append(InsertBefore(module.path, module.span(place), call))
    return _written(edits, number, counter)


def told_each_restart(module: SourceModule, project: Project, missing: Untold, restart: Restart) -> Repair:
    """The number of the step tells the passes apart: every rank comes to the end of its share at the same one."""
    by_hand = _by_hand("count the passes, and call `set_epoch` of its sampler with their number before each `iter`")
    counter = counter_of(Epochs(module, restart.loop)) if restart.loop is not None else None
    if counter is None or not is_only_loop(project, restart) or not isinstance(restart.loop, ast.For):
        return by_hand
    # else `loader.sampler` is another one, or none
    plain = missing.loader.sampler is not None and not missing.heir and not missing.wrapped
    if counter.name == "_" or not module.is_whole(restart.statement) or not plain:
        return by_hand
    name = module.text_of(restart.source)
    call = f"{name}.sampler.set_epoch({counter.name})"
    if not missing.sure:
        call = f'if hasattr({name}.sampler, "set_epoch"):\n    {call}'
    return _written([InsertBefore(module.path, module.span(restart.statement), call)], counter.name, counter)


def _by_hand(reason: str) -> Repair:
    return [], reason, Applicability.DISPLAY


def _written(edits: list[Edit], number: str, counter: Counter) -> Repair:
    if counter.sure:
        return edits, "", Applicability.SAFE
    return edits, f"assumes that `{number}` is the same on every rank", Applicability.UNSAFE


def _is_behind_a_bar(module: SourceModule, epochs: Epochs, name: str) -> bool:
    """True where the name at the loop over epochs is also given to a bar, which has no `sampler`: `loader = tqdm(loader)`."""
    bound = bindings_in(module, module.function_of(epochs.loop), name)
    return any(isinstance(b.value, ast.Call) and last(qualified(module, b.value.func)) in BARS for b in bound)


def _holder(module: SourceModule, missing: Untold, epochs: Epochs, name: str) -> tuple[str, bool]:
    """How the sampler is written at the loop over epochs: by its own name where it has one there, else through the loader."""
    given = missing.loader.batch_sampler if missing.heir and missing.loader.sampler is None else missing.loader.sampler
    here = missing.loader.module is module and module.function_of(missing.loader.call) is module.function_of(epochs.loop)
    if here and isinstance(given, ast.Name) and len(bindings_of(module, given)) == 1 + (not missing.sure):
        before = all(getattr(b.node, "lineno", 0) < epochs.loop.lineno for b in bindings_of(module, given))
        if before:
            return given.id, True
    if here and given is not None and dotted(given).startswith("self."):
        return dotted(given), True
    if not name or missing.wrapped or _is_behind_a_bar(module, epochs, name):
        return "", False
    return f"{name}{_way_to_sampler(missing)}", False


def _way_to_sampler(missing: Untold) -> str:
    """From a loader to the sampler that deals the data out."""
    if missing.loader.batch_sampler is None:
        return ".sampler"
    return ".batch_sampler" if missing.heir and missing.loader.sampler is None else ".batch_sampler.sampler"
