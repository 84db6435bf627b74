"""What was seen of a run, in its log or by a probe: plain rows that a `Project` carries to the codemods beside the source.

A row is one observation, never a verdict: which level it gives a finding is for the codemod to say. Rows travel to another
machine as JSON (`to_json`, `from_json`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from codemods.api.findings import Evidence
from codemods.runtime.record import field, record

FORMAT, VERSION = "ddpfix evidence", 1


class BadEvidence(ValueError):
    """A text that holds no rows of this format. The message says what is wrong with it."""


@record
class Observed:
    """One observation of a run.

    kind: `log` or `probe`. file, line: the log or evidence file as the user named it, and the line of it (0: the whole).
    message: the id of a message in the table of messages (`T02`, `L01`); "" for a probe. text: what was seen, in one line.
    rank: whose output it was, None where that is not known. parameters: names of parameters without a gradient; indices: the
    same by number, counted over those that require one, in the order of `named_parameters()`.
    places: (path in the repository, line) the observation points at: frames of a traceback, the line of a wrap.

    Of a probe: framework and model: who wraps and the class that is wrapped. steps: how many were watched. never, sometimes:
    parameters that reached the loss in none, or not in all of them; in `counts` how often each was missing. outputs: what the
    model returned and the loss did not use. flag, static_graph: as the wrap had them (None: not seen). missed: (p, chance)
    that a branch taken in a share p of the steps was not seen at all, `(1 - p) ** steps`. reentrant: a reentrant checkpoint
    hid the graph, so that the gradients were looked at instead.
    """

    kind: str
    file: str
    line: int = 0
    message: str = ""
    text: str = ""
    rank: int | None = None
    parameters: tuple[str, ...] = ()
    indices: tuple[int, ...] = ()
    places: tuple[tuple[str, int], ...] = ()
    framework: str = ""
    model: str = ""
    steps: int = 0
    never: tuple[str, ...] = ()
    sometimes: tuple[str, ...] = ()
    counts: tuple[tuple[str, int], ...] = ()
    outputs: tuple[str, ...] = ()
    flag: bool | None = None
    static_graph: bool | None = None
    missed: tuple[tuple[float, float], ...] = ()
    reentrant: bool = False

    def row(self) -> Evidence:
        """The same as a reason in a finding. Its file is no file of the project, and so stands in the text."""
        at = f"{self.file}:{self.line}" if self.line else self.file
        return Evidence(self.kind, f"{at}: {self.text}" if at else self.text)


@record
class EvidenceFile:
    """Rows, and how they came about: the command that ran, the versions of what it ran with, the commit it ran on."""

    observed: tuple[Observed, ...]
    command: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    base: str = ""


def to_json(evidence: EvidenceFile) -> str:
    """One JSON document. Fields that say nothing are left out of the rows."""
    import json
    from dataclasses import asdict, fields

    empty = {f.name: f.default for f in fields(Observed)}
    rows = [{k: v for k, v in asdict(row).items() if v != empty[k]} for row in evidence.observed]
    document = {
        "format": FORMAT,
        "version": VERSION,
        "command": evidence.command,
        "versions": dict(evidence.versions),
        "base": evidence.base,
        "observed": rows,
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def from_json(text: str, *, file: str = "") -> EvidenceFile:
    """The rows of a document that `to_json` wrote; `file` is the name under which they are shown. Raises BadEvidence."""
    import json

    try:
        document = json.loads(text)
    except ValueError as error:
        raise BadEvidence(f"no JSON: {error}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise BadEvidence(f"no document of the format {FORMAT!r}")
    if document.get("version") != VERSION:
        raise BadEvidence(f"version {document.get('version')!r} of the format; this program reads version {VERSION}")
    rows = document.get("observed")
    if not isinstance(rows, list):
        raise BadEvidence("no list of observations")
    versions = document.get("versions")
    return EvidenceFile(
        tuple(_observed(row, file) for row in rows),
        str(document.get("command", "")),
        {str(k): str(v) for k, v in versions.items()} if isinstance(versions, dict) else {},
        str(document.get("base", "")),
    )


def _observed(row: object, file: str) -> Observed:
    from dataclasses import fields

    known = {f.name: f for f in fields(Observed)}
    if not isinstance(row, dict) or not {"kind"} <= set(row) <= set(known):
        raise BadEvidence(f"an observation that is not understood: {row!r:.100}")
    values: dict[str, Any] = {k: _frozen(v) for k, v in row.items()}
    kinds = {k: f.default for k, f in known.items() if k in values and isinstance(f.default, (str, int, float, tuple))}
    for name, default in kinds.items():
        wanted: type | tuple[type, ...] = (int, float) if isinstance(default, float) else type(default)
        if not isinstance(values[name], wanted):
            raise BadEvidence(f"{name} is {values[name]!r:.100}")
    return Observed(**{**values, **({"file": file} if file or "file" not in values else {})})


def _frozen(value: object) -> object:
    return tuple(_frozen(v) for v in value) if isinstance(value, list) else value


def named(observed: Iterable[Observed], *messages: str) -> tuple[Observed, ...]:
    """The rows that stem from one of these messages of a log."""
    return tuple(o for o in observed if o.message in messages)
