"""A proof as a table for a terminal, and as JSON."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ddpfix.prove.launchers import of_rank
from ddpfix.prove.proof import Proof
from ddpfix.prove.seen import Seen, Wrong

VERSION = 1


def rows(proof: Proof) -> list[tuple[str, str, str]]:
    """(what, before, after) for everything that was seen; cells may have several lines."""
    pairs: list[tuple[str, str, str]] = []
    for label, cell in _CELLS:
        before, after = cell(proof.before), cell(proof.after) if proof.after else ""
        if before or after:
            pairs.append((label, before, after))
    return pairs


_CELLS: tuple[tuple[str, Any], ...] = (
    ("ended", lambda s: s.ended),
    ("error", lambda s: s.error),
    ("ranks", lambda s: "\n".join(s.stood)),
    ("collectives", lambda s: "\n".join(s.order) or (f"the same {s.collectives[0]} on all ranks" if any(s.collectives) else "")),
    ("weights", lambda s: s.weights),
    ("logged metrics", lambda s: s.metrics),
    ("parameters", lambda s: "\n".join(s.unused)),
    ("samples", lambda s: "\n".join(s.samples)),
    ("steps, seconds", lambda s: f"{s.steps}, {s.seconds:.1f}"),
)


def text(proof: Proof, *, width: int = 120) -> str:
    """The table, what was swapped, and the verdict."""
    out = [_title(proof)]
    if proof.training.launcher:
        own = of_rank(proof.training.command, "N")
        each = "each rank" if own == proof.training.command else "rank N"
        out.append(f"{proof.training.launcher} is left out: {each} runs {shlex.join(own)}")
    out += [f"note: {n}" for n in dict.fromkeys((*proof.before.notes, *(proof.after.notes if proof.after else ())))]
    if proof.impossible:
        return "\n".join([*out, "", f"This program cannot run {proof.impossible}.", "Nothing was shown.", ""])
    heads = ("", "before", f"after {', '.join(proof.codes)}") if proof.after else ("", "as it is")
    table = [heads, *(row if proof.after else row[:2] for row in rows(proof))]
    out += ["", *_columns(table, width), "", verdict(proof), ""]
    return "\n".join(out)


def _title(proof: Proof) -> str:
    bound = f", stopped after {proof.bounds.steps} optimizer steps" if proof.bounds.steps else ""
    return f"{shlex.join(proof.command)}: {proof.bounds.nproc} processes on the CPU over gloo{bound}"


def verdict(proof: Proof) -> str:
    """One sentence: what the proof comes to."""
    if proof.impossible:
        return f"This program cannot run {proof.impossible}."
    before, after = proof.before, proof.after
    if after is None:
        said = f"ddpfix changes nothing here; {_state(before, 'nothing was seen to be wrong')}"
    elif proof.introduced:
        still = [wrong for wrong in after.wrong if wrong not in proof.introduced]
        said = f"Introduced by the fixes: {_list(proof.introduced)}" + (f"; still wrong: {_list(still)}" if still else "")
    elif after.right and not after.observed:
        said = f"After the fixes nothing was observed: {_NOTHING}"
    elif after.right:
        said = f"After the fixes nothing is wrong (before: {_state(before, 'nothing was seen to be wrong either')})"
    else:
        said = f"After the fixes something is still wrong: {_list(after.wrong)}"
    return " ".join(said.split()) + "."


_NOTHING = "the ranks issued no collective, wrapped no model and logged no metric"


def _list(wrong: Sequence[Wrong]) -> str:
    return "; ".join(map(str, wrong))


def _state(seen: Seen, right: str) -> str:
    if not seen.right:
        return _list(seen.wrong)
    return right if seen.observed else f"nothing was observed: {_NOTHING}"


def _columns(table: Sequence[Sequence[str]], width: int) -> list[str]:
    import textwrap

    first = max(len(row[0]) for row in table)
    each = max((width - first - 2 * (len(table[0]) - 1)) // (len(table[0]) - 1), 30)
    out = []
    for row in table:
        cells = [[row[0]]]
        for cell in row[1:]:
            lines = [part for line in cell.split("\n") for part in textwrap.wrap(line, each, subsequent_indent="  ") or [""]]
            cells.append(lines)
        for i in range(max(map(len, cells))):
            parts = [cells[0][i] if i < len(cells[0]) else ""]
            parts += [c[i] if i < len(c) else "" for c in cells[1:]]
            padded = [parts[0].ljust(first), *(p.ljust(each) for p in parts[1:])]
            out.append("  ".join(padded).rstrip())
    return out


# JSON


def to_json(proof: Proof) -> str:
    """The proof with its version; `ddpfix.summary.proofs` reads it for the summary."""
    seen = {name: _plain(s) if s else None for name, s in (("before", proof.before), ("after", proof.after))}
    return (
        json.dumps(
            {
                "version": VERSION,
                "command": list(proof.command),
                "ran": list(proof.training.command),
                "launcher": proof.training.launcher,
                **asdict(proof.bounds),
                "base": proof.base,
                "uncommitted": proof.uncommitted,
                "codes": list(proof.codes),
                "digest": proof.digest,
                "impossible": proof.impossible,
                "right": proof.right,
                "verdict": verdict(proof),
                "introduced": [str(wrong) for wrong in proof.introduced],
                "rows": [list(r) for r in rows(proof)],
                **seen,
            },
            indent=2,
        )
        + "\n"
    )


def _plain(seen: Seen) -> dict[str, Any]:
    return asdict(seen) | {"right": seen.right, "wrong": [str(wrong) for wrong in seen.wrong]}
