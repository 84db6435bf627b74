"""Every folder of fixtures/proofs: what its expect.toml says is what two real processes do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from codemods.api.findings import Finding
from tests.proofs import differential, expectation, harness
from tests.proofs.expectation import Edit, Naive, Proof, Refused, Run

Running = dict[str, Future[list[str]]]
pytestmark = pytest.mark.proof


@pytest.fixture(scope="module")
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """All selected proofs, three at a time: two ranks that mostly wait for each other need less than a core."""
    base = tmp_path_factory.mktemp("proofs")
    chosen = [f for item in request.session.items if (f := _folder(item))]
    pool = ThreadPoolExecutor(3)
    yield {folder.name: pool.submit(shown, folder, base / folder.name) for folder in chosen}
    pool.shutdown(cancel_futures=True)


def _folder(item: pytest.Item) -> Path | None:
    """The folder that an item of this file is about."""
    spec = getattr(item, "callspec", None)
    return spec.params.get("folder") if spec and item.nodeid.partition("::")[0].endswith("test_proofs.py") else None


@pytest.mark.parametrize("folder", harness.folders(), ids=lambda p: p.name)
def test_proof(folder: Path, running: Running) -> None:
    wrong = running[folder.name].result()
    assert not wrong, "\n\n".join(wrong)


def shown(folder: Path, work: Path) -> list[str]:
    """What is not as the proof says; raises Skipped where a package is missing."""
    proof = expectation.load(folder)
    if absent := harness.missing(proof):
        pytest.skip(f"needs {', '.join(absent)}")
    before = harness.copied(proof, work / "before")
    return _trap(proof, before, work) if proof.refused else _repair(proof, before, work)


def _repair(proof: Proof, before: Path, work: Path) -> list[str]:
    assert proof.before and proof.after
    after = harness.copied(proof, work / "after")
    if not harness.fixed(proof, after):
        return [f"{proof.code} fixes nothing here at level {proof.level}: {harness.findings(after)}"]
    changes = proof.changes or expectation.Changes()
    out: list[str] = []
    one, two = (_seen(p.name, proof, p, wanted, out) for p, wanted in ((before, proof.before), (after, proof.after)))
    out += [f"introduced by the fix: {text}" for text in differential.introduced(one, two, changes)]
    single = proof.single or expectation.Single()
    if single.run:
        one, two = (harness.run(proof, p, work / f"{p.name}-alone", world_size=0) for p in (before, after))
        wrong = harness.differing(one, two, single.same, stdout=single.stdout)
        out += [f"alone: {text}" for text in wrong or differential.changed_alone(one, two, changes)]
    return out + (_naively(proof, proof.naive, before, work) if proof.naive else [])


def _trap(proof: Proof, before: Path, work: Path) -> list[str]:
    assert proof.refused
    out = _said(proof.refused, before)
    if proof.before:
        out += _ran("before", proof, before, proof.before)
    if proof.naive:
        out += _naively(proof, proof.naive, before, work)
    if proof.repaired:
        program = work / "repaired"
        out += _edited("repaired", proof, proof.repaired.replace, work) or _ran("repaired", proof, program, proof.repaired.run)
        still = [f for f in harness.findings(program) if f.code == proof.refused.code]
        out += [f"repaired: ddpfix still says {f.path}:{f.span.line} {f.code} {f.message}" for f in still]
    return out


def _naively(proof: Proof, naive: Naive, before: Path, work: Path) -> list[str]:
    out = _edited("naive", proof, naive.replace, work) or _ran("naive", proof, work / "naive", naive.run, alone=naive.alone)
    return out + (_ran("before", proof, before, expectation.Run(), alone=True) if naive.alone else [])


def _said(refused: Refused, folder: Path) -> list[str]:
    """What ddpfix does not say of a folder as it should."""
    found = harness.findings(folder, refused.code)
    if refused.silent:
        return [f"ddpfix should say nothing: {[(f.code, f.message) for f in found]}"] if found else []
    ours = [f for f in found if f.code == refused.code]
    out = []
    right = [f for f in ours if refused.reason in f"{f.message} {f.reason}" and _stands(f, folder, refused.at)]
    if not any(not harness.has_fix(f) for f in right):
        reasons = [(f.code, f.path, f.span.line, f.message, f.reason) for f in found]
        out.append(f"no {refused.code} without a fix says {refused.reason!r} at {refused.at!r}: {reasons}")
    if any(harness.has_fix(f) for f in ours):
        out.append(f"{refused.code} has a fix here")
    return out


def _stands(finding: Finding, folder: Path, at: str) -> bool:
    file, _, text = at.partition(": ")
    return not at or (finding.path == file and text in (folder / file).read_text().splitlines()[finding.span.line - 1])


def _edited(name: str, proof: Proof, edits: Sequence[Edit], work: Path) -> list[str]:
    """Make `work / name` of the program by edits; the first that cannot be made."""
    program = harness.copied(proof, work / name)
    for edit in edits:
        text = (program / edit.file).read_text()
        if edit.old not in text:
            return [f"{name}: {edit.old!r} does not stand in {edit.file}"]
        (program / edit.file).write_text(text.replace(edit.old, edit.new))
    return []


def _ran(name: str, proof: Proof, program: Path, wanted: Run, *, alone: bool = False) -> list[str]:
    out: list[str] = []
    _seen(name, proof, program, wanted, out, alone=alone)
    return out


def _seen(name: str, proof: Proof, program: Path, wanted: Run, out: list[str], *, alone: bool = False) -> harness.Seen:
    """Run the program; what is not as wanted goes into `out`."""
    place = program.with_name(f"{program.name}-{'alone' if alone else 'ranks'}")
    size = 0 if alone else harness.RANKS
    seen = harness.run(proof, program, place, world_size=size)
    if harness.wrong(seen, wanted) and harness.ended_by_gloo(seen):
        seen = harness.run(proof, program, place.with_name(f"{place.name}-again"), world_size=size)
    text = harness.told(harness.wrong(seen, wanted), seen)
    out += [f"{name}{', alone' if alone else ''}: {text}"] if text else []
    return seen
