"""What `ddpfix prove` saw, as a section of the summary: read from its JSON, and only for the very fixes it ran."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from ddpfix.summary.markdown import code, fence, prose, table

NOT_RUN_BESIDES = ("Beyond the proof nothing was run: no full training, no evaluation, no GPU, no NCCL.",)


@dataclass(frozen=True, slots=True)
class ShownProof:
    """A proof as the summary tells it. base: the commit it ran on. digest: of the fixed files. rows: what, before, after."""

    base: str
    digest: str
    command: tuple[str, ...]
    nproc: int
    steps: int
    verdict: str
    rows: tuple[tuple[str, str, str], ...]
    uncommitted: bool = False


def read(text: str) -> ShownProof:
    """The proof in the JSON of `ddpfix prove --output-format json`. Raises ValueError for what is none."""
    try:
        data = json.loads(text)
        rows = tuple((str(a), str(b), str(c)) for a, b, c in data["rows"] if a != "steps, seconds")
        command = tuple(map(str, data["command"]))
        return ShownProof(data["base"], data["digest"], command, data["nproc"], data["steps"], data["verdict"], rows,
                          bool(data["uncommitted"]))  # fmt: skip
    except (KeyError, TypeError) as error:
        raise ValueError(f"it is no proof that ddpfix has written ({error})") from error


def digest(files: Mapping[str, bytes]) -> str:
    """A digest of files by their paths: two sets of fixes with the same one are the same."""
    total = hashlib.sha256()
    for path in sorted(files):
        total.update(f"{path}\0{len(files[path])}\0".encode() + files[path])
    return total.hexdigest()


def section(proof: ShownProof) -> list[str]:
    """The table before and after, with the command that made it."""
    import shlex

    bound = f"--steps {proof.steps} " if proof.steps != 20 else ""
    size = f"--nproc {proof.nproc} " if proof.nproc != 2 else ""
    rows = [(prose(what), _cell(before), _cell(after)) for what, before, after in proof.rows]
    out = ["## Proof", "", f"Run on {proof.nproc} processes of one machine's CPU over gloo, before and after these fixes:", ""]
    out += [*fence([f"ddpfix prove {size}{bound}-- {shlex.join(proof.command)}"], "sh"), ""]
    out += [*table(("", "Before", "After"), rows), "", prose(proof.verdict)]
    if proof.uncommitted:
        out += ["", "Uncommitted changes of the checkout took part in both runs."]
    return [*out, ""]


def _cell(text: str) -> str:
    return "<br>".join(code(line) if "`" in line else prose(line) for line in text.split("\n")) if text else ""
