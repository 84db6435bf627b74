"""What a proof's `expect.toml` says, read strictly: a key that is not known is an error, not a silent hole."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

OUTCOMES = ("completes", "hang", "error")


@dataclass(frozen=True, slots=True)
class FileCheck:
    """A file under OUT. rows_whole: every line has as many commas as the first and ends with a line end."""

    exists: bool = True
    lines: int | None = None
    text: str = ""
    rows_whole: bool = False


@dataclass(frozen=True, slots=True)
class CallCount:
    """How many collectives of a kind rank 0 issued."""

    least: int = 0
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """How a program ends on two processes. printed: lines of all ranks' output that hold a text -> how many."""

    outcome: Literal["completes", "hang", "error"] = "completes"
    error: str = ""
    stands_at: tuple[str, ...] = ()
    differ: tuple[str, ...] = ()
    agree: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    printed: Mapping[str, int] = field(default_factory=dict)
    files: Mapping[str, FileCheck] = field(default_factory=dict)
    collectives: Mapping[str, CallCount] = field(default_factory=dict)
    weights: Literal["agree", "differ", ""] = ""
    unused: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Single:
    """What must be the same before and after on one process. run = false: the program cannot run alone, `why` says why."""

    same: tuple[str, ...] = ()
    stdout: bool = True
    run: bool = True
    why: str = ""


@dataclass(frozen=True, slots=True)
class Changes:
    """What the fix changes besides the error, and why that is meant: patterns of printed lines, and of files below OUT."""

    lines: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """What ddpfix says of a trap: a finding without a fix, or nothing. at: the line it stands in, "train.py: loss.backward()"."""

    code: str = ""
    reason: str = ""
    at: str = ""
    silent: bool = False


@dataclass(frozen=True, slots=True)
class Edit:
    file: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Naive:
    """The edit of a naive tool, and what comes of it. alone: it is one process, without a launcher, that it breaks."""

    replace: tuple[Edit, ...]
    run: Run
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Repaired:
    """The repair that a finding without a fix names, made by hand: it runs as said, and ddpfix no longer tells `refused.code`."""

    replace: tuple[Edit, ...]
    run: Run


@dataclass(frozen=True, slots=True)
class Proof:
    """A folder of fixtures/proofs. Either `after`; or `refused`, with `repaired` where it is only told. Both may have `naive`."""

    folder: Path
    why: str
    code: str = ""
    entry: str = "train.py"
    arguments: tuple[str, ...] = ()
    level: Literal["safe", "unsafe"] = "safe"
    needs: tuple[str, ...] = ("torch",)
    versions: Mapping[str, str] = field(default_factory=dict)  # distribution -> what of it the outcome holds for: ">=2"
    launch_timeout: float = 300
    env: Mapping[str, str] = field(default_factory=dict)
    own_hashes: bool = False  # the ranks hash texts with seeds of their own, as processes do that are started one by one
    imports_itself: tuple[str, ...] = ()  # of needs: what reads the rank when it is imported, so each rank imports it afresh
    probe: int = 0  # steps that `ddpfix probe` watches before the fix, which then weighs what it saw
    before: Run | None = None
    after: Run | None = None
    single: Single | None = None
    changes: Changes | None = None
    refused: Refused | None = None
    naive: Naive | None = None
    repaired: Repaired | None = None

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def prefix(self) -> str:
        """What the folder's name begins with."""
        if self.refused is None:
            return f"{self.code.lower()}-"
        return f"{self.refused.code.lower()}-" if self.repaired else "trap-"


class BadExpectation(Exception):
    """A key or value in an expect.toml that means nothing."""


def load(folder: Path) -> Proof:
    """The proof in `folder`. Raises BadExpectation."""
    path = folder / "expect.toml"
    data = tomllib.loads(path.read_text())
    try:
        return _proof(folder, data)
    except (BadExpectation, TypeError, KeyError, ValueError) as error:
        raise BadExpectation(f"{path}: {error}") from error


def _proof(folder: Path, data: dict[str, Any]) -> Proof:
    _known(data, Proof, "the top level", without=("folder",))
    parts: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items()}
    for name, read in READERS.items():
        if name in data:
            parts[name] = read(data[name], name)
    proof = Proof(folder=folder, **parts)
    if (proof.after is None) == (proof.refused is None):
        raise BadExpectation("it needs either [after] or [refused]")
    if proof.after is not None and (proof.before is None or not proof.code):
        raise BadExpectation("a proof of a codemod needs `code` and [before]")
    if proof.repaired and not (proof.refused and proof.refused.code and proof.before):
        raise BadExpectation("[repaired] needs [before] and a `code` in [refused]")
    if proof.level not in ("safe", "unsafe"):
        raise BadExpectation(f"level = {proof.level!r}: safe or unsafe")
    if not (folder / proof.entry).is_file():
        raise BadExpectation(f"there is no {proof.entry}")
    return proof


def _run(data: dict[str, Any], where: str) -> Run:
    _known(data, Run, where)
    out: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items()}
    if isinstance(out.get("stands_at"), str):
        out["stands_at"] = (out["stands_at"],)
    if out.get("outcome", "completes") not in OUTCOMES:
        raise BadExpectation(f"[{where}] outcome = {out['outcome']!r}: one of {', '.join(OUTCOMES)}")
    out["files"] = {name: _file(check, f"{where}.files") for name, check in data.get("files", {}).items()}
    out["collectives"] = {name: _count(n, f"{where}.collectives") for name, n in data.get("collectives", {}).items()}
    return Run(**out)


def _file(data: dict[str, Any], where: str) -> FileCheck:
    _known(data, FileCheck, where)
    return FileCheck(**data)


def _count(data: int | dict[str, int], where: str) -> CallCount:
    if isinstance(data, int):
        return CallCount(data, data)
    _known(data, CallCount, where)
    return CallCount(**data)


def _single(data: dict[str, Any], where: str) -> Single:
    _known(data, Single, where)
    parts: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items()}
    single = Single(**parts)
    if not single.run and not single.why:
        raise BadExpectation("[single] run = false needs `why`")
    return single


def _changes(data: dict[str, Any], where: str) -> Changes:
    _known(data, Changes, where)
    parts: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items()}
    changes = Changes(**parts)
    if not changes.why or not (changes.lines or changes.files):
        raise BadExpectation("[changes] needs `why`, and `lines` or `files`")
    return changes


def _refused(data: dict[str, Any], where: str) -> Refused:
    _known(data, Refused, where)
    refused = Refused(**data)
    if refused.silent == bool(refused.code and refused.reason):
        raise BadExpectation("[refused] needs `code` and `reason`, or silent = true")
    return refused


def _naive(data: dict[str, Any], where: str) -> Naive:
    run = _run({k: v for k, v in data.items() if k not in ("replace", "alone")}, where)
    return Naive(_edits(data, where), run, bool(data.get("alone", False)))


def _repaired(data: dict[str, Any], where: str) -> Repaired:
    return Repaired(_edits(data, where), _run({k: v for k, v in data.items() if k != "replace"}, where))


def _edits(data: dict[str, Any], where: str) -> tuple[Edit, ...]:
    edits: Sequence[dict[str, str]] = data.get("replace", ())
    if not edits:
        raise BadExpectation(f"[{where}] needs `replace`")
    for edit in edits:
        _known(edit, Edit, f"{where}.replace")
    return tuple(Edit(**e) for e in edits)


READERS: Mapping[str, Callable[[dict[str, Any], str], Any]] = {
    "before": _run,
    "after": _run,
    "single": _single,
    "changes": _changes,
    "refused": _refused,
    "naive": _naive,
    "repaired": _repaired,
}


def _known(data: Mapping[str, Any], cls: type[Any], where: str, without: Sequence[str] = ()) -> None:
    names = {f.name for f in fields(cls)} - set(without)
    if unknown := sorted(set(data) - names):
        raise BadExpectation(f"{where}: {', '.join(unknown)} is not known; known are {', '.join(sorted(names))}")
