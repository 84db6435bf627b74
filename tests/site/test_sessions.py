"""Every command in the documentation is run: here, or by the test that a table names; a page shows what is really printed."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.notebooks import LAUNCH, SETUP, TRAIN, code, jupyter, notebook, text
from tests.proofs.harness import TORCH, warm_python
from tests.site import shell

# pages whose commands need set-up of their own, and the test that runs them
ELSEWHERE = {
    "bot.md": "tests/bot/test_docs.py",
    "ci.md": "tests/ci/test_ci_page.py",
    "plugins.md": "tests/test_how_tos.py",
    "review-page.md": "tests/review/test_page_commands.py",
    "review.md": "tests/review/test_howto.py",
    "rewrites.md": "tests/test_how_tos.py",
}
# the other pages, and the project that their commands are typed in: lines of shell before the first
TUTORIAL = (
    'cp -R fixtures/tutorial ~/project && cd ~/project && git init --quiet --initial-branch=main && git add --all',
    'git commit --quiet --message first && git init --quiet --bare ~/origin.git && git remote add origin ~/origin.git',
    f"cp '{shell.ROOT}/fixtures/tutorial.log' train.log",
)  # fmt: skip
NOTEBOOK = (text("Training"), code(SETUP), code("size = 3"), code(TRAIN), code(LAUNCH))
JOBS = ("cp -R fixtures/examples/hf-finetune/before ~/project && cd ~/project && git init --quiet && git add --all",
        "git commit --quiet --message first")  # fmt: skip
MANY = (*TUTORIAL, "printf '%s\\n' ~/project > REPOS.txt")
HERE: Mapping[str, Sequence[str]] = {
    "diagnose.md": TUTORIAL, "fleet.md": MANY, "how-to/github.md": TUTORIAL, "how-to/gitlab.md": TUTORIAL,
    "how-to/own-machine.md": TUTORIAL, "how-to/pre-commit.md": TUTORIAL, "how-to/slurm.md": TUTORIAL, "notebooks.md": ("cd ~",),
    "probe.md": (), "proofs.md": (), "prove.md": (), "review-page.md": TUTORIAL, "settings.md": TUTORIAL, "start.md": (),
    "tune.md": JOBS, "tutorial.md": (),
}  # fmt: skip
# What these sessions need is not there in a test that reads pages; each says so above its commands. What runs the same:
NOT_RUN = {
    ("diagnose.md", "needs a GPU"): "tests/diagnosis/test_command.py",
    ("fleet.md", "needs GitHub"): "tests/fleet/test_publish.py",
    ("fleet.md", "needs SLURM"): "tests/fleet/test_shards.py",
    ("how-to/github.md", "needs GitHub"): "",
    ("how-to/gitlab.md", "needs GitLab"): "",
    ("how-to/own-machine.md", "needs a second machine"): "",
    ("how-to/own-machine.md", "needs PyTorch"): "tests/site/test_sessions.py",
    ("how-to/own-machine.md", "needs a GPU"): "",
    ("how-to/pre-commit.md", "needs the network"): "tests/ci/test_hooks_and_action.py",
    ("how-to/slurm.md", "needs PyTorch"): "tests/site/test_sessions.py",
    ("how-to/slurm.md", "needs SLURM"): "",
    ("probe.md", "needs PyTorch"): "tests/diagnosis/test_probe.py",
    ("proofs.md", "needs PyTorch"): "tests/proofs/test_proofs.py",
    ("prove.md", "needs PyTorch"): "tests/prove/test_prove.py",
    ("review-page.md", "needs a browser"): "tests/review/test_page_commands.py",
    ("review-page.md", "needs a second machine"): "",
    ("start.md", "needs the network"): "tests/test_wheel.py",
    ("tune.md", "needs PyTorch"): "tests/prove/test_measured_tuning.py",
    ("tutorial.md", "needs GitHub"): "tests/bot/test_docs.py",
    ("tutorial.md", "needs PyTorch"): "tests/site/test_sessions.py",
}
LOG = {"needs PyTorch": f"cp '{shell.ROOT}/fixtures/tutorial.log' train.log"}
MISSING = [m for m in TORCH if importlib.util.find_spec(m) is None]


def pages_with_commands() -> set[str]:
    names = [p.relative_to(shell.DOCS).as_posix() for p in shell.DOCS.rglob("*.md")]
    return {name for name in names if any(fence.is_session for fence in shell.fences(name))}


README = ("make demo", "make test", "pip install .", "ddpfix check", "ddpfix diff", "ddpfix apply", "ddpfix undo")


def test_the_readme_has_commands_that_other_pages_run() -> None:
    """All of them are typed above, but `make` and `pip`: the demo is run for its picture (test_site.py), `make test` is this."""
    assert [one.command for fence in shell.fences("../README.md") for one in fence.typed if fence.is_session] == list(README)
    typed = {one.command for page in HERE for fence in shell.fences(page) for one in fence.typed if fence.is_session}
    assert {command for command in README if command.startswith("ddpfix ")} <= typed


def check(ended: Sequence[shell.Ended]) -> None:
    """Each command printed what its page shows; the whole output of those that did not."""
    if wrong := [str(one) for one in ended if not one.is_as_shown]:
        pytest.fail("\n".join(wrong), pytrace=False)


def test_every_page_with_commands_is_run_by_a_test() -> None:
    assert pages_with_commands() == {*ELSEWHERE, *HERE}


@pytest.mark.parametrize("page", ELSEWHERE)
def test_the_test_that_is_named_reads_the_page(page: str) -> None:
    assert f'"{page}"' in (shell.ROOT / ELSEWHERE[page]).read_text(encoding="utf-8")


def test_what_is_not_run_is_marked_on_its_page_and_listed() -> None:
    found = {(page, fence.needs) for page in HERE for fence in shell.fences(page) if fence.needs}
    assert found == set(NOT_RUN)
    assert [test for test in NOT_RUN.values() if not (shell.ROOT / test).exists()] == []


def test_commands_stand_in_no_other_kind_of_block() -> None:
    """A block of another kind would not be found, and not be run."""
    typed = re.compile(r"^(\$ )?ddpfix (?!-)\w+|^\$ ", re.M)
    names = [p.relative_to(shell.DOCS).as_posix() for p in shell.DOCS.rglob("*.md")]
    fences = [(name, fence) for name in names for fence in shell.fences(name) if not fence.is_session]
    assert [(name, f.text) for name, f in fences if f.language != "bash" and typed.search(f.text)] == []


@pytest.mark.parametrize("page", [page for page in HERE if any(f.is_session and not f.needs for f in shell.fences(page))])
def test_a_page_prints_what_it_shows(page: str, tmp_path: Path) -> None:
    if page == "notebooks.md":
        (tmp_path / "train.ipynb").write_bytes(jupyter(notebook(*NOTEBOOK)))
    check(shell.run(page, tmp_path, before=HERE[page], instead=LOG if page == "tutorial.md" else {}))


@pytest.mark.torch
@pytest.mark.proof
@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
def test_the_tutorial_as_two_processes(tmp_path: Path) -> None:
    """The hang, the proof, and the run that ends; Python has torch imported, for torchrun and for what it starts."""
    watched, python = warm_python("_ddpfix_tracer", *TORCH), warm_python("", *TORCH)
    before = [
        f'export PATH="{Path(watched).parent}:$PATH" PYTHON_EXEC="{python}"',
        f'torchrun() {{ "{python}" -m torch.distributed.run --standalone --local-addr 127.0.0.1 "$@"; }}',
    ]
    ended = [one for one in shell.run("tutorial.md", tmp_path, before=before, needed=["needs PyTorch"]) if one.typed.needs]
    assert len(ended) == 3
    check(ended)
