"""A helper that prints by itself where it is handed no object: whoever hands one over never comes there."""

from __future__ import annotations

import pytest

from codemods.api.findings import Finding
from codemods.ranks.unguarded_print import UnguardedPrint
from ddpfix.testing import findings_of

HELPER = """\
import sys


def print_message(text, fabric=None):
    if {test}:
        {first}
    else:
        {second}


def flush():
    sys.stdout.flush()
"""
PROGRAM = """\
from helpers import flush, print_message
from lightning.fabric import Fabric


def main({signature}):
    {start}
    fabric.launch()
    if fabric.global_rank == 0:
        print("it starts")
    for step in range(3):
        print_message("a step", {given})
        flush()


if __name__ == "__main__":
    main({made})
"""


def found(*, test: str = "fabric is not None", given: str = "fabric", signature: str = "") -> list[Finding]:
    quiet, loud = "fabric.print(text)", "print(text)"
    first, second = (loud, quiet) if test in ("fabric is None", "not fabric") else (quiet, loud)
    made = "pass" if signature else "fabric = Fabric(devices=2)"
    program = PROGRAM.format(given=given, signature=signature, start=made, made="Fabric(devices=2)" if signature else "")
    helper = HELPER.format(test=test, first=first, second=second)
    return findings_of(UnguardedPrint, program, files={"helpers.py": helper}, path="train.py")


@pytest.mark.parametrize("test", ["fabric is not None", "fabric", "fabric is None", "not fabric"])
@pytest.mark.parametrize("given", ["fabric", "fabric=fabric"])
def test_the_object_is_there(test: str, given: str) -> None:
    assert not found(test=test, given=given)


def test_a_parameter_of_the_class() -> None:
    assert not found(signature="fabric: Fabric")


@pytest.mark.parametrize("given", ["None", "fabric=None"])
def test_nothing_is_handed_over(given: str) -> None:
    assert found(given=given)
