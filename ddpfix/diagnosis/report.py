"""A diagnosis as text and as JSON (version 1)."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from codemods.api.findings import Finding
from ddpfix.diagnosis.cause import Diagnosis
from ddpfix.diagnosis.log import Exit, Hit
from ddpfix.diagnosis.messages import Role
from ddpfix.diagnosis.places import Place
from ddpfix.diagnosis.tracebacks import Crash
from ddpfix.outputs import text as findings_text
from ddpfix.outputs.json import finding_object
from ddpfix.outputs.paths import Shown

VERSION = 1
WIDTH = 110
_SIGNALS = {-6: "SIGABRT", -9: "SIGKILL, most often for memory", -11: "SIGSEGV, native code", -15: "SIGTERM, another rank failed"}


@dataclass(frozen=True, slots=True)
class InRepository:
    """What the repository adds: places of the traceback, findings of the codemods that repair the cause, how paths are shown."""

    places: tuple[Place, ...] = ()
    findings: tuple[Finding, ...] = ()
    shown: Shown = str


def text(diagnosis: Diagnosis, repository: InRepository | None, names: dict[str, str]) -> str:
    """For people. names: code -> name of the codemods."""
    rows = [*_head(diagnosis), *_cause(diagnosis), *_facts(diagnosis), *_repair(diagnosis, names)]
    if repository is not None:
        rows += _repository(diagnosis, repository)
    rows += _others(diagnosis)
    return "".join(f"{row}\n" for row in rows)


def _head(diagnosis: Diagnosis) -> Iterator[str]:
    log = diagnosis.log
    ranks = f"rank{'s' if len(log.ranks) > 1 else ''} {', '.join(map(str, log.ranks))}" if log.ranks else "no rank named"
    yield f"{log.file}: {findings_text.plural(log.lines, 'line')}, {ranks}"


def _cause(diagnosis: Diagnosis) -> Iterator[str]:
    hit, first = diagnosis.cause, diagnosis.first
    if hit is not None:
        title = {Role.WARNING: "Nothing failed. It warns", Role.ECHO: "The first failure is not in this log"}
        yield from _wrapped(f"{title.get(hit.message.role, 'Probable cause')}: ", f"{hit.message.cause} [{hit.message.id}]")
        yield from _wrapped("  it means: ", hit.message.means)
        yield f"  {_line(hit.file, hit.line)}: {_short(hit.text)}"
        return
    if not diagnosis.failed:
        yield "Nothing failed in this log, as far as it shows, and it holds no message that ddpfix knows."
    elif first is not None:
        own = f"The program's own error, {_line(first.file, first.end)}: {_short(first.error)}"
        yield f"Unknown: no message that ddpfix knows. {own}"
    else:
        yield "Unknown: the run failed, and no message that ddpfix knows says why."
    yield "  The last lines that matter:"
    for line in diagnosis.log.tail:
        whose = f" rank {line.rank}" if line.rank is not None else ""
        yield f"    {line.number}{whose}: {_short(line.text)}"


def _facts(diagnosis: Diagnosis) -> Iterator[str]:
    first = diagnosis.first
    if diagnosis.waiting:
        yield "  where the ranks waited:"
        yield from (f"    rank {_rank(c.rank)}: {_at(c)}" for c in diagnosis.waiting)
    elif first is not None and diagnosis.rank is None and diagnosis.fell:
        yield f"  fell: ranks {', '.join(map(str, diagnosis.fell))}; which of them first, separate logs do not say"
        yield f"  one of them, {_line(first.file, first.line)}: {first.type} at {_at(first)}"
    elif first is not None:
        yield f"  first to fall: rank {_rank(diagnosis.rank)}, {_line(first.file, first.line)}: {first.type} at {_at(first)}"
    elif diagnosis.rank is not None and diagnosis.failed:
        yield f"  first to fall: rank {diagnosis.rank}"
    if diagnosis.parameters or diagnosis.indices:
        names = ", ".join(diagnosis.parameters[:12]) + (" …" if len(diagnosis.parameters) > 12 else "")
        numbers = " ".join(map(str, diagnosis.indices[:24])) + (" …" if len(diagnosis.indices) > 24 else "")
        yield "  parameters: " + "; ".join(p for p in (names, f"by number: {numbers}" if numbers else "") if p)
    if ended := [f"rank {e.rank}: {_ended(e)}" for e in diagnosis.exits if e.code]:
        yield f"  ended: {'; '.join(ended)}"


def _repair(diagnosis: Diagnosis, names: dict[str, str]) -> Iterator[str]:
    if diagnosis.cause is not None:
        yield from _wrapped("  what repairs it: ", diagnosis.cause.message.repair)
        known = [f"{code} {names[code]}" for code in diagnosis.codes if code in names]
        if known:
            yield from _wrapped("  codemods: ", ", ".join(known))


def _repository(diagnosis: Diagnosis, repository: InRepository) -> Iterator[str]:
    if repository.places:
        yield "In the repository:"
        for place in repository.places:
            whose = f", rank {place.rank}" if place.rank is not None else ""
            yield f"  {repository.shown(place.path)}:{place.line} in {place.function or '?'}{whose}"
    if repository.findings:
        yield "What ddpfix finds there:"
        yield from (f"  {findings_text.line(f, repository.shown)}" for f in repository.findings)
    elif diagnosis.codes:
        yield f"Nothing of {', '.join(diagnosis.codes)} is found in the repository."


def _others(diagnosis: Diagnosis) -> Iterator[str]:
    if diagnosis.others:
        yield "Also in the log:"
    for hit in diagnosis.others:
        times = f", {hit.count} times" if hit.count > 1 else ""
        yield from _wrapped(f"  {hit.message.id} {_line(hit.file, hit.line)}{times}: ", hit.message.means)


def _wrapped(head: str, words: str) -> list[str]:
    return textwrap.wrap(head + words, WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)


def _short(words: str, most: int = 160) -> str:
    flat = "".join(c if c.isprintable() else " " for c in " ".join(words.split()))  # no escape sequence reaches the screen
    return flat if len(flat) <= most else flat[: most - 1] + "…"


def _line(file: str, line: int) -> str:
    return f"{file} line {line}" if file else f"line {line}"


def _rank(rank: int | None) -> str:
    return "unknown" if rank is None else str(rank)


def _at(crash: Crash) -> str:
    """The innermost frame of code that is not installed, else the innermost."""
    own = [f for f in crash.frames if "-packages" not in f.path and "lib/python" not in f.path and not f.path.startswith("<")]
    for frame in (own or list(crash.frames))[-1:]:
        return f"{frame.path}:{frame.line} in {frame.function}"
    return "a place that is not shown"


def _ended(end: Exit) -> str:
    return f"{end.code}" + (f" ({_SIGNALS[end.code]})" if end.code in _SIGNALS else "")


# JSON


def to_json(diagnosis: Diagnosis, repository: InRepository | None) -> str:
    """The same for programs; a key is there only where it says something, `cause` always."""
    log = diagnosis.log
    document: dict[str, Any] = {
        "version": VERSION,
        "log": {"file": log.file, "bytes": log.size, "lines": log.lines, "ranks": list(log.ranks)},
        "failed": diagnosis.failed,
        "cause": _message(diagnosis.cause) if diagnosis.cause is not None else None,
        "first_rank": diagnosis.rank,
        "parameters": list(diagnosis.parameters),
        "indices": list(diagnosis.indices),
        "exits": [{"rank": e.rank, "code": e.code, "root": e.root} for e in diagnosis.exits],
        "others": [_message(h) for h in diagnosis.others],
    }
    if diagnosis.first is not None:
        document["first"] = _crash(diagnosis.first)
    if diagnosis.waiting:
        document["waiting"] = [_crash(c) for c in diagnosis.waiting]
    if not diagnosis.known:
        document["tail"] = [{"line": line.number, "rank": line.rank, "text": line.text} for line in log.tail]
    if repository is not None:
        document["places"] = [_place(p, repository.shown) for p in repository.places]
        document["findings"] = [finding_object(f, repository.shown) for f in repository.findings]
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _message(hit: Hit) -> dict[str, Any]:
    m = hit.message
    said = {"id": m.id, "role": m.role.value, "file": hit.file, "line": hit.line, "rank": hit.rank, "count": hit.count}
    told = {"means": m.means, "cause": m.cause, "repair": m.repair, "codes": list(m.codes), "source": m.source}
    return {**said, "text": " ".join(hit.text.split()), **told}


def _crash(crash: Crash) -> dict[str, Any]:
    frames = [{"path": f.path, "line": f.line, "function": f.function} for f in crash.frames]
    return {"rank": crash.rank, "file": crash.file, "line": crash.line, "error": crash.error, "frames": frames}


def _place(place: Place, shown: Shown) -> dict[str, Any]:
    return {"path": shown(place.path), "line": place.line, "function": place.function, "rank": place.rank, "inner": place.inner}
