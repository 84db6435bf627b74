"""What a run came to: frozen, picklable values that the outputs and the summary read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from codemods.api.findings import Applicability, Finding
from codemods.runtime.record import field, record


@record
class Failure:
    """A file that could not be read, and why, in one line. left_alone: nobody tried to, so nothing is wrong with the run."""

    path: str
    error: str
    left_alone: bool = False


@record
class Judged:
    """What came of a file. broken: why it cannot be parsed, or what failed on it. parsed: how many Python files were.

    left_out: how many findings are of programs that nothing starts on several processes.
    """

    findings: tuple[Finding, ...] = ()
    broken: tuple[Failure, ...] = ()
    parsed: int = 0
    left_out: int = 0


@record
class Report:
    """Findings of one project. Paths are relative to `root`; `scanned` counts Python files, `parsed` those of them read whole.

    left_out: how many more there are in programs that nothing starts on several processes.
    """

    root: Path
    findings: tuple[Finding, ...]
    scanned: int
    parsed: int
    failed: tuple[Failure, ...]
    elapsed: float = 0.0
    left_out: int = 0

    @property
    def unread(self) -> tuple[Failure, ...]:
        """What should have been read, and could not be."""
        return tuple(f for f in self.failed if not f.left_alone)

    def at(self, level: Applicability) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.applicability is level)


@record
class Fixed:
    """What fixing one project came to. before, after: path -> bytes of the changed files.

    first: all that was found before anything was fixed. origins: id of a finding -> the id under which it was among those.
    """

    report: Report
    before: Mapping[str, bytes]
    after: Mapping[str, bytes]
    fixed: tuple[Finding, ...]
    left: tuple[Finding, ...]
    withdrawn: tuple[tuple[Finding, str], ...]
    first: tuple[Finding, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)
