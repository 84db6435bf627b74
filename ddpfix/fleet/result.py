"""What came of one repository: plain values that travel as JSON between machines."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

# why there is no result: what `fleet retry --cause` takes
CAUSES = {
    "timeout": "it took longer than one repository may",
    "memory": "it took more memory than one repository may",
    "size": "it holds more than is looked at",
    "git": "git could not read it",
    "settings": "its settings cannot be used",
    "crash": "the process that worked on it ended",
    "worker": "the worker that had it was lost",
    "version": "the worker had other rules than the driver",
    "defect": "a defect of ddpfix",
}
LEVELS = ("safe", "unsafe", "display")
MOST, LONGEST = 2**53, 1e9  # what every reader of JSON holds; seconds
Row = tuple[str, str, str, int, str]  # code, level, path, line, message


@dataclass(frozen=True, slots=True)
class Result:
    """head: the commit that was looked at, "" for an empty repository. rules: of the version that looked (`work.rules`).

    cause: one of `CAUSES` where it failed, else "". unchanged: head and rules are those of the last result, which stands.
    files, unread: those looked at, and those that could not be read. rejected: (code, place, why) of what its people rejected in
    a decisions file that lies in it.
    """

    head: str = ""
    rules: str = ""
    cause: str = ""
    error: str = ""
    seconds: float = 0.0
    files: int = 0
    unread: int = 0
    unchanged: bool = False
    findings: tuple[Row, ...] = ()
    rejected: tuple[tuple[str, str, str], ...] = ()

    def plain(self) -> dict[str, Any]:
        return asdict(self)


def of_plain(said: Mapping[str, Any]) -> Result:
    """The result that `plain` wrote, with nothing in it that a ledger cannot hold.

    Raises KeyError, TypeError, ValueError for anything else.
    """
    rows = tuple(
        (storable(code), _one_of(LEVELS, level), storable(path), _count(line), storable(message))
        for code, level, path, line, message in said["findings"]
    )
    return Result(
        head=storable(said["head"]),
        rules=storable(said["rules"]),
        cause=_one_of(("", *CAUSES), said["cause"]),
        error=storable(said["error"]),
        seconds=min(max(0.0, float(said["seconds"])), LONGEST),  # NaN is 0, too
        files=_count(said["files"]),
        unread=_count(said["unread"]),
        unchanged=bool(said["unchanged"]),
        findings=rows,
        rejected=tuple((storable(code), storable(place), storable(why)) for code, place, why in said["rejected"]),
    )


def storable(value: object) -> str:
    """A text as a ledger can hold it: the name of a file may be no UTF-8, and must not end a campaign. Raises TypeError."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value.encode("utf-8", "backslashreplace").decode()


def _one_of(known: Collection[str], value: object) -> str:
    if value not in known:
        raise ValueError(f"unknown: {value!r}"[:80])
    return str(value)


def _count(value: object) -> int:
    if not isinstance(value, int) or not 0 <= value <= MOST:
        raise ValueError(f"{value!r} is no number of things"[:80])
    return value
