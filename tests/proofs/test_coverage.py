"""No codemod that changes code is without a proof; no folder says what cannot be read. Needs no torch."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from codemods.api.codemod import DdpCodemod
from ddpfix.catalog import all_codemods
from tests.proofs import expectation, harness

PROOFS = [expectation.load(folder) for folder in harness.folders()]
PROVEN = {proof.code for proof in PROOFS if proof.after}
TOLD = {proof.refused.code for proof in PROOFS if proof.refused and proof.before}
FIXING = [c for c in all_codemods() if not c.sections()["Safety"].startswith(("There is no fix", "Told only"))]
TELLING = [c for c in all_codemods() if c.sections()["Safety"].startswith("Told only")]


@pytest.mark.parametrize("codemod", FIXING, ids=lambda c: c.code)
def test_a_codemod_that_fixes_has_a_proof(codemod: DdpCodemod) -> None:
    assert codemod.code in PROVEN, f"write fixtures/proofs/{codemod.code.lower()}-…/ with an expect.toml"


@pytest.mark.parametrize("codemod", TELLING, ids=lambda c: c.code)
def test_a_codemod_that_only_tells_has_a_program_that_fails(codemod: DdpCodemod) -> None:
    assert codemod.code in TOLD, f"write fixtures/proofs/{codemod.code.lower()}-…/ with [before], [refused] and [repaired]"


@pytest.mark.parametrize("folder", harness.folders(), ids=lambda p: p.name)
def test_a_folder_is_named_after_its_code(folder: Path) -> None:
    proof = expectation.load(folder)
    assert folder.name.startswith(proof.prefix)
    assert proof.why


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('code = "DDP101"\nwhy = "x"\n', "it needs either [after] or [refused]"),
        ('code = "DDP101"\nwhy = "x"\n[before]\noutcom = "hang"\n[after]\n', "outcom is not known"),
        ('code = "DDP101"\nwhy = "x"\nlevle = "safe"\n[after]\n', "levle is not known"),
        ('code = "DDP101"\nwhy = "x"\n[before]\noutcome = "maybe"\n[after]\n', "one of completes, hang, error"),
        ('why = "x"\n[refused]\ncode = "DDP203"\n', "needs `code` and `reason`"),
        ('why = "x"\n[refused]\nsilent = true\n[naive]\n', "[naive] needs `replace`"),
        ('why = "x"\n[refused]\nsilent = true\n[repaired]\nreplace = [{file = "a", old = "b", new = "c"}]\n', "[repaired] needs"),
    ],
)
def test_an_expectation_that_means_nothing_is_an_error(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "train.py").write_text("")
    (tmp_path / "expect.toml").write_text(text)
    with pytest.raises(expectation.BadExpectation, match=why.replace("[", r"\[")):
        expectation.load(tmp_path)


def test_no_program_counts_on_a_port() -> None:
    """Another run on this machine may hold it. The one that does is about a port that another job holds."""
    fixed = re.compile(r"""MASTER_PORT["'], ["'][1-9]|(?:tcp://|port=).*\d{4}""")
    found = {p.parent.name for p in harness.FOLDER.glob("*/*.py") if fixed.search(p.read_text())}
    assert found == {"ddp709-address-that-is-compared"}
