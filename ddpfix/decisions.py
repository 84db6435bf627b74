"""`ddpfix-decisions.json`: what a person decided over each finding of a dry run; one file for every way to decide.

    {"version": 1, "base": "<commit>", "decisions": {"<finding id>": "accept" | "reject" | {"verdict": …, "reason": …}}}

`base` is the commit that was looked at; it may be left out. A finding without a decision is not applied. An accepted fix that
was edited by hand holds its lines: `{"verdict": "accept", "edited": [{"path", "line", "before", "after"}]}`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from codemods.engine.fix_source import Chosen
from codemods.engine.user_edits import EditedLines
from codemods.runtime.record import field, record

FILE = "ddpfix-decisions.json"
VERSION = 1
_ID = re.compile(r"[0-9a-f]{12}")
_BASE = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})?")
Verdict = Literal["accept", "reject"]


class BadDecisions(Exception):
    """A decisions file that cannot be used: what, why, what to do, a line each."""

    def __init__(self, what: str, why: str, todo: str = "") -> None:
        self.what, self.why, self.todo = what, why, todo or "repair it, or begin a new one with `ddpfix review`"
        super().__init__(what, why, self.todo)

    def __str__(self) -> str:
        return f"{self.what}: {self.why}; {self.todo}"


@record
class Decision:
    """What is to be done with a finding. reason: why it is rejected. edited: in place of the fix that was offered."""

    verdict: Verdict
    reason: str = ""
    edited: tuple[EditedLines, ...] = ()


@record
class Decisions:
    """Decisions by finding id, and the commit that they were made on ("" where nothing is known of it)."""

    base: str = ""
    of: Mapping[str, Decision] = field(default_factory=dict)

    def verdict(self, finding: str) -> Verdict | None:
        decision = self.of.get(finding)
        return decision.verdict if decision else None

    def chosen(self) -> Chosen:
        """What is accepted, as the core takes it."""
        edited = {key: d.edited for key, d in self.of.items() if d.edited}
        return Chosen(frozenset(self.accepted()), frozenset(self.rejected()), edited)

    def accepted(self) -> tuple[str, ...]:
        return tuple(key for key, d in self.of.items() if d.verdict == "accept")

    def rejected(self) -> tuple[str, ...]:
        return tuple(key for key, d in self.of.items() if d.verdict == "reject")


def to_json(decisions: Decisions) -> str:
    """The file's text: the same decisions give the same bytes, sorted by id."""
    document: dict[str, Any] = {"version": VERSION}
    if decisions.base:
        document["base"] = decisions.base
    document["decisions"] = {key: _shown(decisions.of[key]) for key in sorted(decisions.of)}
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def _shown(decision: Decision) -> str | dict[str, Any]:
    if not (decision.reason or decision.edited):
        return decision.verdict
    out: dict[str, Any] = {"verdict": decision.verdict}
    if decision.reason:
        out["reason"] = decision.reason
    if decision.edited:
        out["edited"] = [{"path": e.path, "line": e.line, "before": e.before, "after": e.after} for e in decision.edited]
    return out


def from_json(text: str, name: str = FILE) -> Decisions:
    """The decisions in a file's text. Raises BadDecisions, which names the first thing that is wrong with it."""
    try:
        document = json.loads(text, object_pairs_hook=lambda pairs: _object(pairs, name))
    except (json.JSONDecodeError, RecursionError) as error:
        raise BadDecisions(f"{name} is no decisions file", f"it is not JSON ({error})") from None
    if not isinstance(document, dict) or "decisions" not in document:
        raise BadDecisions(f"{name} is no decisions file", 'it has no "decisions"')
    version = document.get("version")
    if version != VERSION or isinstance(version, bool):
        todo = "use the ddpfix that wrote it, or begin a new one with `ddpfix review`"
        raise BadDecisions(f"{name} cannot be read", f'its "version" is {_cited(version)}, this ddpfix knows {VERSION}', todo)
    if unknown := sorted(set(document) - {"version", "base", "decisions"}):
        raise BadDecisions(f"{name} cannot be read", f"it has an unknown key {_cited(unknown[0])}")
    base = document.get("base", "")
    if not isinstance(base, str) or not _BASE.fullmatch(base):
        raise BadDecisions(f"{name} cannot be read", f'its "base" is {_cited(base)}, not the whole id of a commit')
    found = document["decisions"]
    if not isinstance(found, dict):
        raise BadDecisions(f"{name} cannot be read", '"decisions" is no object of finding ids')
    return Decisions(base, {key: _decision(key, value, name) for key, value in found.items()})


def read(path: Path) -> Decisions:
    """The decisions in a file. Raises BadDecisions."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BadDecisions(f"{path} does not exist", "no decisions were saved there", "make one with `ddpfix review`") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadDecisions(f"{path} cannot be read", " ".join(str(error).split())) from None
    return from_json(text, str(path))


def write(path: Path, decisions: Decisions) -> None:
    """Save decisions whole: what stood there is replaced at once, never half. Raises OSError."""
    from ddpfix.git.journal import passing_folder
    from ddpfix.git.whole_files import replace_file

    replace_file(path, to_json(decisions).encode(), None, by=passing_folder(path))


class Keeper:
    """A decisions file while one decides: what another view of the review wrote meanwhile is kept.

    `known`: the decisions that the file comes to, as this view begins.
    """

    def __init__(self, path: Path, known: Decisions) -> None:
        self.path, self._known = path, known
        self._at_first = self._now()

    def save(self, made: Decisions) -> None:
        """Bring what is decided since the last time into the file. Raises OSError."""
        of = dict(self._in_file().of)
        for key in {*self._known.of, *made.of}:
            decision = made.of.get(key)
            if decision == self._known.of.get(key):
                continue
            if decision is None:
                of.pop(key, None)
            else:
                of[key] = decision
        write(self.path, Decisions(made.base, of))
        self._known = made

    def _in_file(self) -> Decisions:
        text = self._now()
        if text == self._at_first:  # what it comes to was worked out then
            return self._known
        try:
            return from_json(text)
        except BadDecisions:
            return self._known

    def _now(self) -> str:
        try:
            return self.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return ""


def _object(pairs: list[tuple[str, Any]], name: str) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in pairs:
        if key in out:
            raise BadDecisions(f"{name} cannot be read", f"{_cited(key)} is in it twice")
        out[key] = value
    return out


def _decision(key: str, value: object, name: str) -> Decision:
    if not _ID.fullmatch(key):
        raise BadDecisions(f"{name} cannot be read", f"{_cited(key)} is not the id of a finding")
    if isinstance(value, str):
        value = {"verdict": value}
    if not isinstance(value, dict):
        raise BadDecisions(f"{name} cannot be read", f'{key} is {_cited(value)}, not "accept", "reject" or an object')
    if unknown := sorted(set(value) - {"verdict", "reason", "edited"}):
        raise BadDecisions(f"{name} cannot be read", f"{key} has an unknown key {_cited(unknown[0])}")
    verdict, reason, edited = value.get("verdict"), value.get("reason", ""), value.get("edited", [])
    if verdict not in ("accept", "reject"):
        raise BadDecisions(f"{name} cannot be read", f'the verdict of {key} is {_cited(verdict)}, not "accept" or "reject"')
    if not isinstance(reason, str):
        raise BadDecisions(f"{name} cannot be read", f"the reason of {key} is {_cited(reason)}, not a text")
    if not isinstance(edited, list) or (edited and verdict != "accept"):
        raise BadDecisions(f"{name} cannot be read", f"the edited lines of {key} are no list, or not of an accepted fix")
    return Decision(verdict, " ".join(reason.split()), tuple(_edited(key, row, name) for row in edited))


def _edited(key: str, row: object, name: str) -> EditedLines:
    kinds: dict[str, type] = {"path": str, "line": int, "before": str, "after": str}
    if not isinstance(row, dict) or set(row) != set(kinds) or any(type(row[k]) is not kind for k, kind in kinds.items()):
        raise BadDecisions(f"{name} cannot be read", f"edited lines of {key} are not path, line, before and after")
    if row["line"] < 1:
        raise BadDecisions(f"{name} cannot be read", f"edited lines of {key} begin at line {row['line']}")
    return EditedLines(row["path"], row["line"], row["before"], row["after"])


def _cited(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."
