"""docs/proofs.md: a row a proof, made from what the suite asserts of two real processes: it cannot be out of date and pass."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ddpfix.catalog import all_codemods
from ddpfix.summary.markdown import code, plural, prose, table
from tests.proofs import expectation, harness
from tests.proofs.expectation import CallCount, FileCheck, Proof, Run

HEAD = """\
# Proofs

Each program below was run on two CPU processes over gloo before and after the fix that ddpfix makes of it, and on one process,
where both must give the same output and the same files. `make proofs` runs them all; a row's program is the folder of that name
in `fixtures/proofs`, and its `expect.toml` is what the suite asserts. One of them again:

```console title="needs PyTorch"
.venv/bin/python -m pytest tests/proofs -k NAME
```
"""
TOLD = """\
## Reported only

Programs that fail and for which ddpfix has no fix, only a finding that names the repair. The repair was made by hand: the program
then runs as said, and ddpfix no longer reports that code. In `expect.toml` these are `[refused]` and `[repaired]`, of which the
`replace` lists the edits.
"""
TRAPS = """\
## Traps

Programs in which the edit that suggests itself is wrong. ddpfix leaves them, and the naive edit is run to show why.
"""


def page() -> str:
    """The page as the folders say it."""
    proofs = [expectation.load(folder) for folder in harness.folders()]
    names = {c.code: c.rule_name() for c in all_codemods()}
    out = [HEAD, f"Versions: {', '.join(_versions())}.", ""]
    for key in sorted({p.code for p in proofs if p.after}):
        rows = [
            (code(p.name), prose(p.why), "<br>".join(described(p.before)), "<br>".join(described(p.after)), _level(p))
            for p in proofs
            if p.code == key and p.before and p.after
        ]
        out += [f"## {key} {names.get(key, '')}", "", *table(("Program", "Without", "Before", "After", "Level"), rows), ""]
    told = [
        (code(p.name), prose(p.why), "<br>".join(described(p.before)), _refused(p), "<br>".join(described(p.repaired.run)))
        for p in proofs
        if p.before and p.repaired
    ]
    if told:
        out += [TOLD, *table(("Program", "Without", "Before", "ddpfix says", "Repaired by hand"), told), ""]
    traps = [(code(p.name), prose(p.why), _refused(p), _naive(p)) for p in proofs if p.refused and not p.repaired]
    if traps:
        out += [TRAPS, *table(("Program", "Why", "ddpfix says", "The naive edit"), traps), ""]
    return "\n".join(out).rstrip() + "\n"


def _level(proof: Proof) -> str:
    return f"{proof.level}, after a probe of {proof.probe} steps" if proof.probe else proof.level


def _versions() -> list[str]:
    lines = (Path(__file__).parents[1] / "requirements-torch.txt").read_text().splitlines()
    return ["torch 2.13.0", *(line.replace("==", " ") for line in lines if "==" in line)]


def described(run: Run) -> list[str]:
    """What is asserted of a run, a phrase each, as Markdown."""
    ends = {"completes": "completes", "hang": "hangs", "error": "fails"}[run.outcome]
    out = [f"{ends}: {code(run.error)}" if run.error else ends]
    out += [f"a rank stands at {code(place)}" for place in run.stands_at]
    out += _listed("differs between the ranks: ", run.differ)
    out += _listed("the same on all ranks: ", run.agree)
    out += [f"{code(key)} is {code(str(value))} on all ranks" for key, value in run.values.items()]
    out += [f"{code(text)} stands in {plural(count, 'line')}" for text, count in run.printed.items()]
    out += [f"{code(name)}: {_file(check)}" for name, check in run.files.items()]
    out += [f"{code(op)}: {_count(count)}" for op, count in run.collectives.items()]
    out += [f"weights {run.weights}"] if run.weights else []
    if run.unused is not None:
        out += _listed("without gradient: ", run.unused) or ["every parameter has a gradient"]
    return out


def _listed(label: str, names: Sequence[str]) -> list[str]:
    return [label + ", ".join(code(n) for n in names)] if names else []


def _file(check: FileCheck) -> str:
    if not check.exists:
        return "not there"
    parts = [plural(check.lines, "line")] if check.lines is not None else []
    parts += [f"holds {code(check.text)}"] if check.text else []
    parts += ["whole rows"] if check.rows_whole else []
    return ", ".join(parts) or "there"


def _count(count: CallCount) -> str:
    if count.most == count.least:
        return plural(count.least, "call")
    return f"{count.least} calls or more" if count.most is None else f"{count.least} to {count.most} calls"


def _refused(proof: Proof) -> str:
    assert proof.refused
    return "nothing" if proof.refused.silent else f"{proof.refused.code}, no fix: {prose(proof.refused.reason)}"


def _naive(proof: Proof) -> str:
    return "<br>".join(described(proof.naive.run)) if proof.naive else ""
