"""Why a fix may be made at its place: what was seen there, and no list of cases."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from codemods.api.findings import Applicability, Evidence, Finding, Fix, InsertAfter
from ddpfix import catalog
from ddpfix.summary import commit_message, render, safe_here
from tests.summary.made import CLASSIFIER, block, context, in_memory, on_disk

GROUP = """
import torch
import torch.distributed as dist


def main():
    dist.init_process_group("nccl")
    fit()


def fit():
    print("trained")


if __name__ == "__main__":
    main()
"""
CASES = re.compile(r"\bwhere\b|\bor\b|as far as|target-lightning")


@pytest.mark.parametrize("code", [c.code for c in catalog.all_codemods() if safe_here.everywhere(c.code)])
def test_a_sentence_that_is_told_of_each_place_lists_no_cases(code: str) -> None:
    assert not CASES.search(safe_here.everywhere(code))


def test_a_list_of_cases_is_told_of_no_place() -> None:
    said = {c.code: c.sections().get("Safety", "") for c in catalog.all_codemods()}
    listed = [code for code, text in said.items() if text.startswith(("Safe where", "Safe in", "Safe on"))]
    assert listed and not any(safe_here.everywhere(code) for code in listed)


@pytest.mark.parametrize("code", sorted({f.code for f in on_disk(CLASSIFIER).fixed if not catalog.lookup(f.code).opt_in}))
def test_each_fix_gives_its_reason_in_the_summary_and_in_its_commit(code: str) -> None:
    fixed = on_disk(CLASSIFIER)
    mine = [f for f in fixed.fixed if f.code == code]
    assert any(f.applicability is Applicability.SAFE for f in mine)
    assert re.search(r"^- Safe( here)?: ", block(render(fixed, context()), code), re.M)
    assert re.search(r"^Safe( here)?: ", commit_message(catalog.lookup(code), mine), re.M)


def test_what_was_seen_at_the_place_is_its_reason() -> None:
    fixed = in_memory({"train.py": GROUP}, codemods=[catalog.lookup("DDP304")])
    text = render(fixed, context())
    assert "ddpfix explain DDP304" not in text and "Safe where" not in text
    part = block(text, "DDP304")
    assert "everything else is done; it stands behind the last statement of `main` (`train.py` 7); each run" in part
    message = " ".join(commit_message(catalog.lookup("DDP304"), fixed.fixed).split())
    assert "Safe: it runs when everything else is done; it stands behind the last statement of `main`; " in message


def test_a_group_that_is_not_always_started_is_asked_for() -> None:
    start = 'dist.init_process_group("nccl")'
    some = GROUP.replace(f"    {start}", f"    if torch.cuda.device_count() > 1:\n        {start}")
    (found,) = in_memory({"train.py": some}, codemods=[catalog.lookup("DDP304")]).fixed
    (asked,) = [e.text for e in found.evidence if e.text.startswith("not every run starts a group")]
    assert "is asked first" in asked and not any(e.text.startswith("each run that comes there") for e in found.evidence)


def made(code: str, level: Applicability, *evidence: Evidence) -> Finding:
    (found,) = in_memory({"train.py": GROUP}, codemods=[catalog.lookup("DDP304")]).fixed
    edit = InsertAfter("train.py", found.span, "pass")
    return replace(found, code=code, evidence=evidence, fix=Fix(level, (edit,)))


def test_an_unsafe_fix_has_no_reason_of_that_kind() -> None:
    seen = Evidence("safe", "nobody reads it", "train.py", 3)
    safe, unsafe = (made("DDP101", level, seen) for level in (Applicability.SAFE, Applicability.UNSAFE))
    assert safe_here.in_words("DDP101", [safe]) == "Safe here: nobody reads it."
    assert safe_here.in_words("DDP101", [unsafe]) == ""


def test_that_processes_are_meant_is_no_reason() -> None:
    shown = made("DDP101", Applicability.SAFE, Evidence("several", "the file imports torch.distributed"))
    assert safe_here.in_words("DDP101", [shown]) == ""
