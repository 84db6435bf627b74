"""Programs that train, made of a skeleton and a fault or its right twin: the fault is told at its statement, the twin is not.

A sample by a seed; `DDPFIX_GENERATED=all` takes every shape of every spelling (`make generated`). What is missed stands in MISSED
with the reason; what is found by now has to go.
"""

from __future__ import annotations

import os

import pytest

from codemods.api.codemod import built_in
from tests.generated.every import FAULTS, MISSED
from tests.generated.records import Fault
from tests.generated.told import SHAPES, Case, cases, failure, findings, made

_ALL = os.environ.get("DDPFIX_GENERATED") == "all"
_SEED = int(os.environ.get("DDPFIX_GENERATED_SEED", "1"))
_MOST = None if _ALL else 2
_BARE = SHAPES if _ALL else SHAPES[:: len(SHAPES) // 12]


def _is_missed(case: Case) -> bool:
    return case.wrong and (case.fault.codes[0], case.fault.frames[0], case.nth) in MISSED


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f"{f.codes[0]}-{f.frames[0]}")
def test_a_fault_is_told_at_its_place_and_its_twin_is_not(fault: Fault) -> None:
    failed = {str(c): why for c in cases(fault, _SEED, _MOST) if not _is_missed(c) and (why := failure(c)) is not None}
    assert not failed, "\n".join(f"{name}: {why}" for name, why in failed.items())


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f"{f.codes[0]}-{f.frames[0]}")
def test_what_is_missed_is_missed(fault: Fault) -> None:
    still = {c.nth for c in cases(fault, _SEED, _MOST or 20) if _is_missed(c) and failure(c) is not None}
    listed = {nth for code, frame, nth in MISSED if (code, frame) == (fault.codes[0], fault.frames[0])}
    assert still == listed, f"told by now, take it out of MISSED: {sorted(listed - still)}"


def test_nothing_is_told_of_a_program_without_a_fault() -> None:
    codemods = tuple(c() for c in built_in() if not c.opt_in)
    told = {str(shape): [f"{f.code} {f.path}:{f.span.line}" for f in findings(made(shape, {}), codemods)] for shape in _BARE}
    assert not {name: found for name, found in told.items() if found}


def test_each_fault_names_a_codemod_and_its_twins() -> None:
    known = {c.code for c in built_in()}
    assert all(set(f.codes) <= known and f.wrong and f.right for f in FAULTS)
    assert all(MISSED.values()) and all(all(f.not_in.values()) for f in FAULTS)
