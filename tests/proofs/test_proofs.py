"""Every folder of fixtures/proofs: what its expect.toml says is what two real processes do."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.proofs import expectation, harness
from tests.proofs.expectation import Proof

pytestmark = pytest.mark.proof


@pytest.fixture(scope="module")
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Future[list[str]]]:
    """All selected proofs, two at a time: a proof of two ranks that mostly wait needs one core."""
    base = tmp_path_factory.mktemp("proofs")
    chosen = [item.callspec.params["folder"] for item in request.session.items if "folder" in _parameters(item)]
    pool = ThreadPoolExecutor(2)
    request.addfinalizer(lambda: pool.shutdown(cancel_futures=True))
    return {folder.name: pool.submit(shown, folder, base / folder.name) for folder in chosen}


def _parameters(item: pytest.Item) -> dict[str, object]:
    spec = getattr(item, "callspec", None)
    ours = item.nodeid.partition("::")[0].endswith("test_proofs.py")
    return spec.params if spec and ours else {}


@pytest.mark.parametrize("folder", harness.folders(), ids=lambda p: p.name)
def test_proof(folder: Path, running: dict[str, Future[list[str]]]) -> None:
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
        alone = [harness.run(proof, p, work / f"{p.name}-alone", world_size=0) for p in (before, after)]
        out += [f"alone: {text}" for text in harness.differing(*alone, single.same, stdout=single.stdout)]
    return out


def _trap(proof: Proof, before: Path, work: Path) -> list[str]:
    assert proof.refused
    found = harness.findings(before)
    out = []
    if proof.refused.silent and found:
        out.append(f"ddpfix should say nothing: {[(f.code, f.message) for f in found]}")
    elif not proof.refused.silent:
        ours = [f for f in found if f.code == proof.refused.code]
        if not any(proof.refused.reason in f"{f.message} {f.reason}" and not harness.has_fix(f) for f in ours):
            out.append(f"no {proof.refused.code} without a fix says {proof.refused.reason!r}: {[(f.code, f.reason) for f in found]}")
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
        seen = harness.run(proof, naive, work / "naive-ranks", world_size=harness.RANKS)
        if text := harness.told(harness.wrong(seen, proof.naive.run), seen):
            out.append(f"naive: {text}")
    return out
