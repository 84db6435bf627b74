"""On what the ranks of a run disagree: their collectives, their weights, their metrics; and what no gradient reached."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ddpfix.prove.ranks import Ended
from ddpfix.prove.traces import Call, Round, Trace

_ALIKE = frozenset({"all_reduce", "broadcast", "reduce", "all_gather", "all_gather_into_tensor"})


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first collective that is not the same on all ranks: its number from 1, what each rank issued, None for none."""

    number: int
    calls: Mapping[int, Call | None]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A value that is not the same on all ranks; a rank that has none has None."""

    name: str
    values: Mapping[int, float | str | None]


@dataclass(frozen=True, slots=True)
class UnusedParameters:
    """Parameters of a model that no backward pass reached (`never`), or not every one (`sometimes`), on any rank."""

    model: str
    never: tuple[str, ...]
    sometimes: tuple[str, ...]


# Point-to-point calls are not the same on all ranks by nature.
_ONE_SIDED = {"send", "recv", "send_object_list", "recv_object_list", "batch_isend_irecv"}


def first_divergence(traces: Sequence[Trace]) -> Divergence | None:
    """Where the sequences of collectives first differ, in the operation, in what it moves, or in that one rank has none.

    The place is no part of the comparison: two ranks may come to the same collective by different lines.
    """
    rows = [[c for c in t.calls if c.op not in _ONE_SIDED] for t in traces]
    if len(rows) < 2:
        return None
    for i in range(max(map(len, rows))):
        now = {t.rank: row[i] if i < len(row) else None for t, row in zip(traces, rows, strict=True)}
        if len({(c.op, c.what if _moves_alike(c.op) else "") if c else None for c in now.values()}) > 1:
            return Divergence(i + 1, now)
    return None


def _moves_alike(op: str) -> bool:
    """True where every rank must hand in the same shape."""
    return op in _ALIKE


def metrics_that_differ(traces: Sequence[Trace]) -> tuple[Disagreement, ...]:
    """Logged metrics that are not the same on all ranks, to five places."""
    if len(traces) < 2 or not any(t.metrics for t in traces):
        return ()
    names = sorted({name for t in traces for name in t.metrics})
    found = [Disagreement(n, {t.rank: t.metrics.get(n) for t in traces}) for n in names]
    return tuple(d for d in found if not _all_close(list(d.values.values())))


def _all_close(values: Sequence[float | str | None]) -> bool:
    first = values[0]
    for value in values[1:]:
        if isinstance(value, float) and isinstance(first, float):
            if not (math.isclose(value, first, rel_tol=1e-5, abs_tol=1e-7) or (math.isnan(value) and math.isnan(first))):
                return False
        elif value != first:
            return False
    return True


def weights_that_differ(traces: Sequence[Trace]) -> tuple[Disagreement, ...]:
    """Parameters of wrapped models that are not the same, bit for bit, on all ranks after as many steps."""
    if len(traces) < 2 or not all(t.weights for t in traces):
        return ()
    out = []
    for model in sorted({name for t in traces for name in t.weights}):
        held = {t.rank: t.weights[model].weights if model in t.weights else {} for t in traces}
        for name in sorted({n for weights in held.values() for n in weights}):
            values: dict[int, float | str | None] = {rank: weights.get(name) for rank, weights in held.items()}
            if len(set(values.values())) > 1:
                out.append(Disagreement(f"{model}: {name}", values))
    return tuple(out)


def unused_parameters(traces: Sequence[Trace]) -> tuple[UnusedParameters, ...]:
    """What no gradient reached, over all ranks: `never` on all of them, `sometimes` where a rank or a step differs."""
    out = []
    for model in sorted({name for t in traces for name in t.unused}):
        seen = [t.unused[model] for t in traces if model in t.unused]
        never = set.intersection(*(set(u.never) for u in seen))
        some = {n for u in seen for n in (*u.never, *u.sometimes)} - never
        if never or some:
            out.append(UnusedParameters(model, tuple(sorted(never)), tuple(sorted(some))))
    return tuple(out)


def epochs(trace: Trace) -> tuple[tuple[Round, ...], ...]:
    """Of each sampler that shuffles, its passes that trained: a model was in training mode, and a step came before the next."""
    out = []
    for number in sorted({r.sampler for r in trace.rounds}):
        own = [r for r in trace.rounds if r.sampler == number]
        ends = [*(r.steps for r in own[1:]), trace.steps]
        out.append(tuple(r for r, end in zip(own, ends, strict=True) if r.training and end > r.steps and r.samples > 2))
    return tuple(rounds for rounds in out if len(rounds) > 1)


def same_order(rounds: Sequence[Round]) -> bool:
    """True where every pass had the samples in one order."""
    return len({r.order for r in rounds}) == 1


# what is another in each run: the name of our copy, of a temporary file, an id in hexadecimal digits, a number
_NUMBER = re.compile(
    r"ddpfix-(?:prove|trace)-\w+|\btmp[a-z0-9_]{8}\b|0x[0-9a-f]+|\b(?=[a-f-]*\d)[0-9a-f]{8,}(?:-[0-9a-f]{4,})*\b|"
    r"[-+]?\d[\d.,:]*(?:e[-+]?\d+)?|[-+]?\b(?:nan|inf)\b[.,:]*"
)


def lines_lost(before: Ended, after: Ended) -> tuple[str, ...]:
    """Lines that some rank printed before and that no rank prints after; numbers in them do not count, nor the names of
    this run's own files.

    A run that did not end well has nothing to lose.
    """
    if before.outcome != "completes" or after.outcome != "completes":
        return ()
    said = {_plain(text) for _, stream, text in after.lines if stream == "stdout"}
    had = {_plain(text): text.strip() for _, stream, text in before.lines if stream == "stdout"}
    return tuple(text for plain, text in had.items() if plain and plain not in said)


def _plain(text: str) -> str:
    """A line without what is another in each run: also the blanks that a number is filled up with (`{loss:6.2f}`)."""
    return "".join(_NUMBER.sub("#", text).split())


def why_weights_differ(traces: Sequence[Trace]) -> str:
    """What the traces show of the cause, where the ranks end with other weights."""
    steps = {t.rank: t.steps for t in traces}
    if len(set(steps.values())) > 1:
        return ", ".join(f"rank {rank} made {n} optimizer steps" for rank, n in steps.items())
    if (parted := first_divergence(traces)) is not None:
        return f"their collectives part at number {parted.number}"
    if not any(_averages(t) for t in traces):
        return "DDP averaged no gradients: no forward pass went through the wrapper, or all were made under `no_sync()`"
    return "after as many steps: they began with other values, or a rank changed them by itself"


_AVERAGES = _ALIKE | {"all_reduce_coalesced", "reduce_scatter", "reduce_scatter_tensor"}


def _averages(trace: Trace) -> bool:
    """True where DDP averaged gradients, where nothing was trained, and where the program may do it by calls of its own."""
    ops = [c.op for c in trace.calls]
    return not trace.steps or "ddp_gradients" in ops or sum(op in _AVERAGES for op in ops) >= trace.steps
