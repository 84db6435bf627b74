"""What a log says of the flag and the parameters, as rows that a project carries to the codemods."""

from __future__ import annotations

from codemods.api.evidence import Observed
from ddpfix.diagnosis.cause import Diagnosis
from ddpfix.diagnosis.places import places

# Of the wrapper, its flags and its parameters; what other messages say is for the reader.
WEIGHED = ("T01", "T02", "T03", "T04", "T05", "T06", "T10", "T12", "L01")


def observed(diagnosis: Diagnosis, files: tuple[str, ...] = ()) -> tuple[Observed, ...]:
    """One row for each such message in the log. files: of the repository, for the places that the traceback names."""
    log = diagnosis.log
    at = tuple(dict.fromkeys((p.path, p.line) for p in places(diagnosis, files)))
    rows: dict[str, Observed] = {}
    for hit in log.hits:
        if hit.message.id in WEIGHED and hit.message.id not in rows:
            fails = diagnosis.cause is not None and diagnosis.cause.message is hit.message
            rows[hit.message.id] = Observed(
                kind="log",
                file=f"{log.file}/{hit.file}" if hit.file else log.file,
                line=hit.line,
                message=hit.message.id,
                text=" ".join(hit.text.split())[:200],
                rank=hit.rank,
                parameters=diagnosis.parameters if fails else (),
                indices=diagnosis.indices if fails else (),
                places=at if fails else (),
            )
    return tuple(rows.values())
