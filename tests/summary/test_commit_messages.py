"""What `git log` shows."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import pytest

from codemods.api.codemod import DdpCodemod
from ddpfix import catalog
from ddpfix.summary import SUMMARY_COMMIT, commit_message
from ddpfix.summary.commit_messages import subject
from tests.summary.made import CLASSIFIER, MODEL, STEP, in_memory, on_disk

LOGGED = catalog.lookup("DDP101")


def test_what_why_and_files() -> None:
    fixed = on_disk(CLASSIFIER)
    text = commit_message(LOGGED, [f for f in fixed.fixed if f.code == "DDP101"])
    first, blank, *_ = text.splitlines()
    assert (first, blank) == ("Reduce epoch metrics over the ranks in classifier/resnet.py (DDP101)", "")
    assert "The codemod finds" not in text  # what it does elsewhere
    assert "- classifier/resnet.py:52: 'val/loss' is logged at epoch level" in " ".join(text.split())
    assert "Since Lightning 1.7 an epoch value" not in text  # what is so in general
    assert text.count("classifier/resnet.py") == 3 and "classifier/resnet.py 69." in text  # in the subject, too


def test_the_assumption_of_an_unsafe_fix_is_in_the_message() -> None:
    fixed = in_memory({"m.py": STEP}, unsafe=True).fixed
    text = " ".join(commit_message(LOGGED, fixed).split())
    assert f"1 fix rests on an assumption: {fixed[0].reason}" in text


@pytest.mark.parametrize("codemod", catalog.all_codemods(), ids=lambda c: c.code)
def test_every_codemod_has_a_message_of_proper_width(codemod: object) -> None:
    lines = commit_message(codemod, ()).splitlines()  # type: ignore[arg-type]
    assert len(lines[0]) <= 72
    assert not lines[0].endswith(".")
    assert lines[1] == ""
    assert all(len(line) <= 72 or " " not in line.strip() for line in lines)
    assert not any(line.startswith("#") for line in lines)


@pytest.mark.parametrize("codemod", catalog.all_codemods(), ids=lambda c: c.code)
def test_every_codemod_that_mends_something_has_a_subject_of_its_own(codemod: DdpCodemod) -> None:
    assert (codemod.subject and codemod.printed is not None) or "There is no fix" in (codemod.__doc__ or "")


@pytest.mark.parametrize("code", [c.code for c in catalog.all_codemods() if c.subject])
def test_the_subjects_are_short_and_carry_the_code(code: str) -> None:
    text = subject(code, "some-name")
    assert len(text) <= 72
    assert text.endswith(f" ({code})")
    assert text[0].isupper()
    assert "…" not in text


def test_an_unknown_code_is_named_by_its_rule() -> None:
    assert subject("ABC1", "my-rule") == "Fix my-rule (ABC1)"
    assert len(subject("ABC1", "my-" + "long-" * 40 + "rule")) <= 72


def test_nothing_in_a_message_is_a_trailer() -> None:
    fixed = in_memory({"Makefile-like": "", "setup.py": MODEL, "train.py": MODEL})
    for text in (commit_message(LOGGED, fixed.fixed), SUMMARY_COMMIT):
        done = subprocess.run(["git", "interpret-trailers", "--parse"], input=text, capture_output=True, text=True, check=True)
        assert done.stdout == ""


def test_a_message_of_several_places_is_said_once() -> None:
    told = [f for f in in_memory({f"m{n}.py": MODEL for n in range(3)}).fixed if f.code == "DDP101"]
    text = " ".join(commit_message(LOGGED, told).split())
    assert text.count("is logged at epoch level") == 1
    assert f"m0.py:{told[0].span.line}: " in text and "The same: m1.py 9; m2.py 9." in text


def test_of_messages_that_differ_in_names_one_is_said() -> None:
    (told,) = [f for f in in_memory({"m.py": MODEL}).fixed if f.code == "DDP101"]
    many = [replace(told, message=told.message.replace("val/loss", f"val/loss{n}")) for n in range(5)]
    text = " ".join(commit_message(LOGGED, many).split())
    assert text.count("is logged at epoch level") == 1
    assert "'val/loss0'" in text and "'val/loss1'" not in text and "The same with other names: m.py 9." in text


def test_many_files_are_counted() -> None:
    fixed = in_memory({f"m{n}.py": MODEL for n in range(60)})
    assert "and 47 more files." in " ".join(commit_message(LOGGED, fixed.fixed).split())


def test_the_one_file_that_is_changed_is_named_where_there_is_room() -> None:
    (told,) = in_memory({"model.py": MODEL}).fixed
    assert subject("DDP101", "n", [told]) == "Reduce epoch metrics over the ranks in model.py (DDP101)"
    deep = replace(told, path="a/very/long/way/down/to/model.py", fix=None)
    assert subject("DDP101", "n", [deep]) == "Reduce epoch metrics over the ranks in model.py (DDP101)"
    assert subject("DDP101", "n", [told, replace(told, path="b.py")]) == "Reduce epoch metrics over the ranks (DDP101)"
