"""Every folder of fixtures/proofs: what its expect.toml says is what two real processes do."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.proofs import expectation, harness
from tests.proofs.expectation import Proof

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
    out = []
    for name, program, wanted in (("before", before, proof.before), ("after", after, proof.after)):
        seen = harness.run(proof, program, work / f"{name}-ranks", world_size=harness.RANKS)
        if text := harness.told(harness.wrong(seen, wanted), seen):
            out.append(f"{name}: {text}")
    single = proof.single or expectation.Single()
    if single.run:
        one, two = (harness.run(proof, p, work / f"{p.name}-alone", world_size=0) for p in (before, after))
        out += [f"alone: {text}" for text in harness.differing(one, two, single.same, stdout=single.stdout)]
    return out


def _trap(proof: Proof, before: Path, work: Path) -> list[str]:
    assert proof.refused
    found = harness.findings(before, proof.refused.code)
    out = []
    if proof.refused.silent and found:
        out.append(f"ddpfix should say nothing: {[(f.code, f.message) for f in found]}")
    elif not proof.refused.silent:
        ours = [f for f in found if f.code == proof.refused.code]
        if not any(proof.refused.reason in f"{f.message} {f.reason}" and not harness.has_fix(f) for f in ours):
            reasons = [(f.code, f.reason) for f in found]
            out.append(f"no {proof.refused.code} without a fix says {proof.refused.reason!r}: {reasons}")
        if any(harness.has_fix(f) for f in ours):
            out.append(f"{proof.refused.code} has a fix here")
    if proof.before:
        seen = harness.run(proof, before, work / "before-ranks", world_size=harness.RANKS)
        if text := harness.told(harness.wrong(seen, proof.before), seen):
            out.append(f"before: {text}")
    if proof.naive:
        naive = harness.copied(proof, work / "naive")
        for edit in proof.naive.replace:
            text = (naive / edit.file).read_text()
            if edit.old not in text:
                return [*out, f"naive: {edit.old!r} does not stand in {edit.file}"]
            (naive / edit.file).write_text(text.replace(edit.old, edit.new))
        alone = proof.naive.alone
        seen = harness.run(proof, naive, work / "naive-ranks", world_size=0 if alone else harness.RANKS)
        if text := harness.told(harness.wrong(seen, proof.naive.run), seen):
            out.append(f"naive: {text}")
        if alone:
            seen = harness.run(proof, before, work / "before-alone", world_size=0)
            if text := harness.told(harness.wrong(seen, expectation.Run()), seen):
                out.append(f"before, alone: {text}")
    return out
