"""What came of one repository: plain values that travel as JSON between machines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
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
    "defect": "a defect of ddpfix",
}
Row = tuple[str, str, str, int, str]  # code, level, path, line, message


@dataclass(frozen=True, slots=True)
class Result:
    """head: the commit that was looked at, "" for an empty repository. rules: of the version that looked (`work.rules`).

    cause: one of `CAUSES` where it failed, else "". unchanged: head and rules are those of the last result, which stands.
    files, unread: those looked at, and those that could not be read.
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

    def plain(self) -> dict[str, Any]:
        return asdict(self)


def of_plain(said: Mapping[str, Any]) -> Result:
    """The result that `plain` wrote. Raises KeyError, TypeError, ValueError for anything else."""
    known = {field.name: said[field.name] for field in fields(Result)}
    rows = tuple((str(c), str(v), str(p), int(n), str(m)) for c, v, p, n, m in known.pop("findings"))
    if known["cause"] and known["cause"] not in CAUSES:
        raise ValueError(f"unknown cause {known['cause']!r}")
    return Result(**known, findings=rows)
