"""Did a change part the ranks? The matching check on the text before and after, in the functions touched and in their callers.

Also for a class as a whole: a training value with `sync_dist=True` is reduced when rank 0's progress bar reads it, before the
hooks at the epoch's end; a collective in one of these hooks pairs with that reduction (measured on Lightning 2.6.6). Each of the
two is right without the other.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from codemods.analysis.logged.pending_metrics import epoch_end_collective
from codemods.analysis.ranks.collectives import keyword_is
from codemods.analysis.ranks.matching import Mismatch, mismatches
from codemods.analysis.ranks.trace_items import Side, meetings
from codemods.analysis.ranks.traces import trace_of
from codemods.data.rank_words import GUARDS
from codemods.files.source import FunctionNode, SourceModule
from codemods.files.text_file import PYTHON_KINDS
from codemods.runtime.record import record
from codemods.store.project import Project

_FAR = 60  # callers in more files than this are not asked
_TRAINING = frozenset({"training_step", "on_train_batch_end", "on_train_epoch_end"})
_ENDS = (b"def on_train_epoch_end(", b"def training_epoch_end(")


@record
class Harm:
    """A place where the ranks part since a change. text: what happens, as a reason not to make it."""

    path: str
    symbol: str
    text: str


def harms(before: Project, after: Project, changed: Iterable[str]) -> tuple[Harm, ...]:
    """What the new bytes of the files `changed` make worse, in them and in what calls them."""
    paths = sorted(p for p in changed if p.endswith(PYTHON_KINDS))
    found = [harm for path in paths for harm in _in_file(before, after, path)]
    for path in _callers(before, after, paths):
        found += _in_file(before, after, path)
    return (*found, *_across_the_class(before, after, paths))


def _in_file(before: Project, after: Project, path: str) -> Iterator[Harm]:
    data = after.read(path) or b""
    if not any(word in data for word in GUARDS):
        return
    old, new = before.module(path), after.module(path)
    known = _by_symbol(before, old) if old else {}
    for symbol, found in (_by_symbol(after, new) if new else {}).items():
        if sum(m.unpaired for m in found) > sum(m.unpaired for m in known.get(symbol, ())):
            yield Harm(path, symbol, _words(path, found[0]))


def _by_symbol(project: Project, module: SourceModule) -> dict[str, tuple[Mismatch, ...]]:
    out: dict[str, tuple[Mismatch, ...]] = {}
    for function in (*module.functions, None):
        if found := mismatches(project, module, function):
            symbol = module.symbol(function) if function else ""
            out[symbol] = (*out.get(symbol, ()), *found)
    return out


def _words(path: str, mismatch: Mismatch) -> str:
    who, others = mismatch.side.value, mismatch.side.turned.value
    step = mismatch.meeting.steps[0]
    return f"with it {who} would come to {step.text} ({path}:{step.line}) without {others}: the run would hang"


# Callers


def _callers(before: Project, after: Project, paths: list[str]) -> list[str]:
    """Other files with a call of a function that meets something else now, through any number of such functions."""
    queue = [name for path in paths for name in _met_otherwise(before, after, path)]
    asked: set[str] = set()
    found: list[str] = []
    while queue and len(found) <= _FAR:
        name = queue.pop()
        if name in asked:
            continue
        asked.add(name)
        for path in after.files_containing(name.encode() + b"("):
            if path in paths or path in found:
                continue
            found.append(path)
            queue += _met_otherwise(before, after, path)
    return found


def _met_otherwise(before: Project, after: Project, path: str) -> list[str]:
    """The functions of a file in which one side meets other collectives than before."""
    old, new = before.module(path), after.module(path)
    if old is None or new is None:
        return []
    functions = {old.symbol(f): f for f in old.functions}
    return [
        f.name for f in new.functions
        if (was := functions.get(new.symbol(f))) is not None and _met(before, old, was) != _met(after, new, f)
    ]  # fmt: skip


def _met(project: Project, module: SourceModule, function: FunctionNode) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(m.name for m in meetings(trace_of(project, module, function, side).items)) for side in Side)


# The hooks of a class together


def _across_the_class(before: Project, after: Project, paths: list[str]) -> Iterator[Harm]:
    if not any(after.files_containing(word) for word in _ENDS) or not after.files_containing(b"sync_dist"):
        return
    if (now := _pending_beside_collective(after)) is None or _pending_beside_collective(before) is not None:
        return
    call, place = now
    yield Harm(
        call[0], "",
        f"with it rank 0 would reduce the training value of {call[0]}:{call[1]} while the other ranks are at the collective of "
        f"another hook ({place}): the run would hang",
    )  # fmt: skip


def _pending_beside_collective(project: Project) -> tuple[tuple[str, int], str] | None:
    place = epoch_end_collective(project)
    if place is None:
        return None
    for path in project.files_containing(b"sync_dist"):
        module = project.module(path)
        for call in module.calls_named("log", "log_dict") if module else ():
            function = module.function_of(call) if module else None
            if function is None or function.name not in _TRAINING or not keyword_is(call, "sync_dist", True):
                continue
            if function.name == "on_train_epoch_end" or _at_epoch_level(call):
                return (path, call.lineno), str(place)
    return None


def _at_epoch_level(call: ast.Call) -> bool:
    return keyword_is(call, "on_epoch", True)
