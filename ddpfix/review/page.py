"""A review as one HTML file: nothing is loaded from anywhere, and nothing of the repository is in it but the lines of findings.

The page is drawn by its script out of one island of JSON, by text nodes alone: no text of a repository is ever read as HTML. The
same input gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codemods.api.findings import Evidence, Finding
from codemods.files.source import Unreadable, decode
from codemods.files.text_file import NOTEBOOK
from ddpfix import __version__, decisions
from ddpfix.decisions import Decisions
from ddpfix.review import diffs
from ddpfix.review.items import Review, ReviewItem
from ddpfix.review.rank_flow import picture
from ddpfix.summary.checks import ALWAYS, KINDS, question
from ddpfix.summary.markdown import parts
from ddpfix.summary.places import codemod_of
from ddpfix.summary.rank_flow import flow_of

if TYPE_CHECKING:
    from jinja2 import Environment

HERE = Path(__file__).parent / "static"
SCRIPTS = ("data.js", "decisions.js", "cards.js", "lists.js", "keys.js", "deliver.js")
AROUND = 3  # lines about a place that is only told
BY = {
    "static": "source", "safe": "source", "way": "source", "log": "a log", "probe": "a probed run", "version": "a pin",
    "text": "text",
}  # fmt: skip
LEVELS = {"safe": "safe", "unsafe": "unsafe", "display": "reported"}
Read = Callable[[str], bytes | None]


@dataclass(frozen=True, slots=True)
class Served:
    """What a served page knows beside: the token it must show, the nonce of its style and script, the branch it applies to."""

    token: str
    nonce: str
    branch: str


def page(
    review: Review, *, read: Read, name: str = "", decided: Decisions | None = None, served: Served | None = None
) -> str:
    """The page of a review. read: the bytes of a file of it, for the lines about a finding that changes nothing.

    name: of the project, its folder's unless given. decided: what was decided before.
    """
    style, script = (HERE / "review.css").read_text(encoding="utf-8"), _script()
    template = _environment().get_template("page.html.j2")
    return template.render(
        name=name or review.root.name,
        version=__version__,
        base=review.base,
        served=served,
        style=style,
        script=script,
        policy=policy(served.nonce if served else "", style, script, served is not None),
        data=island(_data(review, read, decided or Decisions(review.base), served)),
        kinds=_kinds(review.items),
        counts={level: sum(_level(i) == level for i in review.items) for level in LEVELS.values()},
        pictures=[(item.id, picture(flow)) for item in review.items if (flow := flow_of(item.finding))],
        failed=review.failed,
        plain=[_plain(item) for item in review.items],
    )


def policy(nonce: str, style: str, script: str, served: bool) -> str:
    """The page's own rules for the browser: this style, this script, and no request but those to its server."""
    by = [f"'nonce-{nonce}'"] * 2 if nonce else [f"'sha256-{_digest(text)}'" for text in (style, script)]
    reach = "'self'" if served else "'none'"
    return (
        f"default-src 'none'; style-src {by[0]}; script-src {by[1]}; connect-src {reach}; img-src data:; base-uri 'none'; "
        "form-action 'none'; require-trusted-types-for 'script'"
    )


def _digest(text: str) -> str:
    return b64encode(hashlib.sha256(text.encode()).digest()).decode()


def island(data: Mapping[str, Any]) -> str:
    """JSON that can stand inside a script element: nothing in it ends the element, or begins a comment."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    # half a surrogate pair (a file name that is no text) cannot be written as UTF-8
    return "".join(f"\\u{ord(c):04x}" if 0xD800 <= ord(c) <= 0xDFFF else c for c in text) if not text.isascii() else text


@cache
def _script() -> str:
    texts = [(HERE / name).read_text(encoding="utf-8") for name in SCRIPTS]
    return "(() => {\n'use strict';\n" + "\n".join(texts) + "})();\n"


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(HERE)
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


# What is in the island


def _data(review: Review, read: Read, decided: Decisions, served: Served | None) -> dict[str, Any]:
    sources = _Sources(read)
    codes = sorted({item.finding.code for item in review.items})
    return {
        "base": review.base,
        "file": decisions.FILE,
        # without a commit, what is remembered belongs to these very findings
        "key": f"ddpfix-review:{review.base or _digest(' '.join(sorted(i.id for i in review.items)))}",
        "served": {"token": served.token, "branch": served.branch} if served else None,
        "codes": {code: _codemod(code, review.items) for code in codes},
        "questions": list(ALWAYS),
        **_shown(decided, review),
        "items": [_item(item, sources) for item in review.items],
    }


def _shown(decided: Decisions, review: Review) -> dict[str, Any]:
    """Decisions over the findings of the page, and those beside them: a file of decisions may hold those of other paths."""
    shown: Mapping[str, Any] = json.loads(decisions.to_json(decided))["decisions"]
    known = review.by_id
    every = {key: {"verdict": value} if isinstance(value, str) else value for key, value in shown.items()}
    return {
        "decisions": {key: value for key, value in every.items() if key in known},
        "beside": {key: value for key, value in every.items() if key not in known},
    }


def _codemod(code: str, items: Sequence[ReviewItem]) -> dict[str, Any]:
    codemod = codemod_of(code)
    name = next(item.finding.name for item in items if item.finding.code == code)
    says = _flat(codemod.summary() if codemod else "")
    return {"name": name, "says": says, "flags": bool(codemod and codemod.topic() == "flags")}


def _level(item: ReviewItem) -> str:
    return LEVELS[item.level] if item.acceptable else "reported"


def _item(item: ReviewItem, sources: _Sources) -> dict[str, Any]:
    finding = item.finding
    return {
        "id": item.id,
        "code": finding.code,
        "level": _level(item),
        "path": finding.path,
        "line": finding.span.line,
        "where": finding.where,
        "spot": finding.where if finding.cell else f"line {finding.span.line}",
        "symbol": finding.symbol,
        "says": _flat(finding.message),
        "why": _flat(item.reason if item.acceptable else item.why_not),
        "mates": list(item.mates),
        "checks": [_check(e) for e in finding.evidence],
        "diff": _diff(item, sources) or _place(finding, sources),
    }


def _plain(item: ReviewItem) -> dict[str, Any]:
    """A finding in plain words, for a browser that runs no script."""
    finding = item.finding
    shown: dict[str, Any] = {
        "level": _level(item),
        "code": finding.code,
        "name": finding.name,
        "place": finding.place,
        "symbol": finding.symbol,
        "says": finding.message,
        "why": item.reason if item.acceptable else item.why_not,
        "patch": "".join(hunk.text for hunk in item.hunks) if len({h.path for h in item.hunks}) < 2 else item.patch,
    }
    rows = [f"{e.text} ({e.place})" if e.path else e.text for e in finding.evidence]
    return {**{key: _writable(value) for key, value in shown.items()}, "evidence": [_writable(row) for row in rows]}


def _writable(text: str) -> str:
    """Without halves of surrogate pairs (a file name that is no text), which UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode()


def _flat(text: str) -> list[str]:
    """Prose and code by turns, prose first."""
    out = [""]
    for is_code, part in parts(text):
        if is_code == (len(out) % 2 == 0):
            out[-1] += part
        else:
            out.append(part)
    return out


def _check(evidence: Evidence) -> list[Any]:
    asked = question(evidence)
    kind = BY.get(evidence.kind, evidence.kind) + (", weak" if evidence.strength == "weak" else "")
    return [asked if asked in (*ALWAYS, *KINDS.values()) else "", _flat(evidence.text), evidence.place, kind]


def _diff(item: ReviewItem, sources: _Sources) -> list[list[Any]]:
    """[path, header, rows] of each hunk."""
    return [[hunk.path, hunk.header, _rows(diffs.pairs(hunk, sources[hunk.path]))] for hunk in item.hunks]


def _place(finding: Finding, sources: _Sources) -> list[list[Any]]:
    """The lines about a finding without a change."""
    first, last = finding.span.line, min(finding.span.end_line, finding.span.line + 2 * AROUND)
    rows = diffs.excerpt(sources[finding.path], first - AROUND, last + AROUND)
    return [[finding.path, "", _rows(rows), [first, last]]] if rows else []


def _rows(pairs: Sequence[diffs.Pair]) -> list[list[Any]]:
    """[old, runs, new] of a line that stays, [old, runs, new, runs] of one that does not; 0 and no runs where there is none."""
    out: list[list[Any]] = []
    for pair in pairs:
        old, new = pair.old or diffs.Side(0, ()), pair.new or diffs.Side(0, ())
        row = [old.number, _runs(old), new.number]
        out.append(row if pair.same else [*row, _runs(new)])
    return out


def _runs(side: diffs.Side) -> list[str]:
    return [word for run in side.runs for word in run]


class _Sources(dict[str, diffs.Source]):
    """The files that findings stand in, each read once."""

    def __init__(self, read: Read) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, path: str) -> diffs.Source:
        data = self._read(path) or b""
        if path.endswith(NOTEBOOK):
            from codemods.files.notebook import python_of

            data = python_of(path, data)
        try:
            text = decode(path, data)[0]
        except Unreadable:
            text = data.decode("utf-8", "replace")
        self[path] = diffs.Source(path, text)
        return self[path]


@dataclass(frozen=True, slots=True)
class Kind:
    """How many findings of each level a codemod has, for the bars."""

    code: str
    name: str
    says: str
    counts: tuple[tuple[str, int], ...]
    most: int

    @property
    def total(self) -> int:
        return sum(count for _, count in self.counts)

    def bars(self, width: int) -> list[tuple[str, float, float]]:
        """(level, x, width) of the parts of a bar, on the scale of the longest."""
        out, x = [], 0.0
        for level, count in self.counts:
            long = round(width * count / self.most, 1)
            out.append((level, round(x, 1), long))
            x += long
        return out


def _kinds(items: Sequence[ReviewItem]) -> list[Kind]:
    """One a codemod, the most frequent first."""
    found: dict[str, list[ReviewItem]] = {}
    for item in items:
        found.setdefault(item.finding.code, []).append(item)
    most = max(map(len, found.values()), default=1)
    kinds = []
    for code, here in found.items():
        counts = tuple((level, n) for level in LEVELS.values() if (n := sum(_level(i) == level for i in here)))
        codemod = codemod_of(code)
        kinds.append(Kind(code, here[0].finding.name, codemod.summary().replace("`", "") if codemod else "", counts, most))
    return sorted(kinds, key=lambda k: (-k.total, k.code))

