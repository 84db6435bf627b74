"""What a project already knows of: findings written down by their ids, which keep quiet until their code changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from codemods.api.findings import Finding
from codemods.runtime.record import names, record, replace
from ddpfix.discovery import Tree
from ddpfix.results import Report

VERSION = 1


class BaselineError(Exception):
    """A baseline that cannot be used: what, why and what to do."""

    def __init__(self, what: str, why: str, todo: str = "make one with --write-baseline") -> None:
        self.what, self.why, self.todo = what, why, todo
        super().__init__(f"{what}: {why}; {todo}")


@record
class Entry:
    """A known finding, matched by its id; where its file is gone, by all but the id and the path."""

    id: str
    code: str
    path: str
    symbol: str
    message: str


@record
class Compared:
    """report: without the known findings. known: how many those are. gone: entries that nothing answers to any more."""

    report: Report
    known: int
    gone: tuple[Entry, ...]


def read(file: Path) -> tuple[Entry, ...]:
    """The entries of a file. Raises BaselineError."""
    import json

    what = f"{file} cannot be used as a baseline"
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        if data["version"] != VERSION:
            raise BaselineError(what, f"its version is {data['version']!r}, this program reads {VERSION}")
        return tuple(Entry(*(str(row[name]) for name in names(Entry))) for row in data["findings"])
    except OSError as error:
        raise BaselineError(what, error.strerror or str(error)) from error
    except (ValueError, KeyError, TypeError) as error:
        raise BaselineError(what, f"it holds something else ({type(error).__name__}: {error})") from error


def compare(report: Report, entries: Iterable[Entry], tree: Tree, codes: Collection[str]) -> Compared:
    """The report without what is known. codes: those that were looked for.

    A file that was renamed takes its known findings along: an entry whose file is no more stands for one finding elsewhere
    that says the same of the same function or class.
    """
    known = {entry.id: entry for entry in entries}
    there = {finding.id for finding in report.findings}
    absent = [e for e in known.values() if e.id not in there and was_asked(e, tree, codes)]
    # git goes on listing a file that was deleted and not committed yet
    orphans = {e.id: e for e in absent if not (tree.root / e.path).exists()}
    moved = Counter(map(_said, orphans.values()))
    new: list[Finding] = []
    for finding in report.findings:
        if finding.id in known:
            continue
        if moved[_said(finding)]:
            moved[_said(finding)] -= 1
        else:
            new.append(finding)
    taken = Counter(map(_said, orphans.values())) - moved
    gone: list[Entry] = []
    for entry in absent:
        if entry.id in orphans and taken[_said(entry)]:
            taken[_said(entry)] -= 1
        else:
            gone.append(entry)
    return Compared(replace(report, findings=tuple(new)), len(report.findings) - len(new), tuple(gone))


def _said(of: Entry | Finding) -> tuple[str, str, str]:
    return of.code, of.symbol, " ".join(of.message.split())


def was_asked(entry: Entry, tree: Tree, codes: Collection[str]) -> bool:
    """True if the finding would have been seen: its codemod ran, on a file that was looked at or is no more."""
    return entry.code in codes and (entry.path in tree.chosen or entry.path not in tree.files)


def text_of(findings: Iterable[Finding], kept: Iterable[Entry] = ()) -> str:
    """The text of a file for these findings and entries, in an order that does not hang on line numbers."""
    import json

    made = [Entry(f.id, f.code, f.path, f.symbol, " ".join(f.message.split())) for f in findings]
    rows: Mapping[str, Entry] = {e.id: e for e in (*kept, *made)}
    ordered = sorted(rows.values(), key=lambda e: (e.path, e.code, e.symbol, e.id))
    body = [{name: getattr(e, name) for name in names(Entry)} for e in ordered]
    return json.dumps({"version": VERSION, "findings": body}, indent=1) + "\n"
