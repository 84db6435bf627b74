"""Notebooks through every command, from outside: a repository with one of Jupyter's, one of Colab's and one of Kaggle's."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from tests.gitrepos import make, own_settings, sh, visible
from tests.notebooks import (
    GUARDED,
    LAUNCH,
    SETUP,
    TRAIN,
    TRAINING,
    code,
    colab,
    escaped,
    jupyter,
    kaggle,
    notebook,
    sources,
    text,
    without_sources,
)
from tests.programs import PLAIN, ddpfix

MADE = {
    "a.ipynb": jupyter(TRAINING),
    "b colab.ipynb": colab(TRAINING),
    "d.ipynb": escaped(TRAINING),
    "kaggle/c.ipynb": kaggle(TRAINING),
}
BROKEN = {
    "half.ipynb": b'{"cells": ["torch"',
    "old.ipynb": b'{"nbformat": 3, "worksheets": [{"cells": [{"input": ["import torch"]}]}]}',
}


@pytest.fixture(autouse=True)
def _own_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own_settings(monkeypatch, tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make(tmp_path, {**MADE, "other.py": PLAIN})


def test_check_names_the_cell_and_its_line(repo: Path) -> None:
    done = ddpfix(repo, "check", "--select", "DDP203,DDP501")
    assert done.returncode == 1
    places = [line.split(": ")[0] for line in done.stdout.decode().splitlines()]
    # the worst first: the lost checkpoints before the printed lines
    assert places == [f"{path}:cell 4:{at}" for at in ("line 7:5", "line 6:9") for path in sorted(MADE)]
    assert done.stderr.decode().strip().endswith("in 5 Python files: 8 fixable, 0 with --unsafe-fixes, 0 reported.")


def test_a_broken_notebook_is_named_and_the_run_goes_on(repo: Path) -> None:
    for name, data in BROKEN.items():
        (repo / name).write_bytes(data)
    done = ddpfix(repo, "check", "--select", "DDP203")
    assert len(done.stdout.decode().splitlines()) == 4
    said = done.stderr.decode()
    assert "old.ipynb: not read: nbformat 3, which no tool of today writes" in said
    assert "half.ipynb: not read: line 1: this is no JSON" in said
    assert "2 files could not be read" in said


def test_apply_writes_into_the_cells_alone_and_undo_takes_it_back(repo: Path) -> None:
    before = visible(repo)
    done = ddpfix(repo, "apply", ".")
    assert done.returncode == 0, done.stderr
    assert len(sh(repo, "log", "--format=%s", "main..").splitlines()) == 3
    for path, data in MADE.items():
        after = (repo / path).read_bytes()
        assert sources(after) == [GUARDED if s == TRAIN else s for s in sources(data)]
        assert without_sources(after) == without_sources(data)
    again = ddpfix(repo, "apply", ".")
    assert "No safe fix" in again.stdout.decode()
    assert ddpfix(repo, "undo").returncode == 0
    assert visible(repo) == before


def test_only_the_lines_of_the_fix_are_in_the_diff(repo: Path) -> None:
    ddpfix(repo, "apply", ".", "--no-summary-commit")
    for path in ("a.ipynb", "b colab.ipynb", "d.ipynb"):
        rows = sh(repo, "diff", "--numstat", "main..ddpfix/fixes", "--", path).split()
        assert rows[:2] == ["4", "2"]


def test_diff_is_a_patch_that_git_takes(repo: Path) -> None:
    patch = ddpfix(repo, "diff").stdout
    (repo / ".git" / "x.patch").write_bytes(patch)
    sh(repo, "apply", ".git/x.patch")
    assert sources((repo / "a.ipynb").read_bytes())[3] == GUARDED
    assert sources((repo / "kaggle/c.ipynb").read_bytes())[3] == GUARDED


def test_in_place_and_back_outside_of_git(tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    (folder / "a.ipynb").write_bytes(MADE["a.ipynb"])
    env = {"DDPFIX_CACHE_DIR": str(tmp_path / "cache")}
    assert ddpfix(folder, "apply", "--in-place", ".", env=env).returncode == 0
    assert sources((folder / "a.ipynb").read_bytes())[3] == GUARDED
    assert ddpfix(folder, "undo", env=env).returncode == 0
    assert (folder / "a.ipynb").read_bytes() == MADE["a.ipynb"]


def test_the_summary_and_the_commits_name_cells(repo: Path) -> None:
    ddpfix(repo, "apply", ".")
    summary = (repo / "DDPFIX_SUMMARY.md").read_text(encoding="utf-8")
    assert "- `a.ipynb:cell 4:line 6`: every rank prints in train" in summary
    assert '+            print("epoch", epoch)\n' in summary  # the code, not the strings of the file
    assert "(`a.ipynb` cell 4:line 6; " in summary
    test = summary.split("## How to test")[1].split("\n## ")[0]
    assert "`a.ipynb` and 3 more notebooks: restart the kernel and run all cells on two processes." in test
    assert "torchrun" not in test
    assert "- a.ipynb:cell 4:line 6: every rank prints" in " ".join(sh(repo, "log", "--format=%B", "main..").split())


# Formats


def rows_of(repo: Path, name: str) -> str:
    return ddpfix(repo, "check", "--select", "DDP501", "--output-format", name).stdout.decode()


def line_of(repo: Path, path: str, needle: str) -> int:
    """The line of the file that holds the text."""
    return next(n for n, line in enumerate((repo / path).read_text(encoding="utf-8").splitlines(), 1) if needle in line)


def test_machine_formats_give_the_line_of_the_file(repo: Path) -> None:
    wanted = {path: line_of(repo, path, "torch.save") for path in MADE}
    assert wanted["kaggle/c.ipynb"] == 1
    found = {f["path"]: f for f in json.loads(rows_of(repo, "json"))["findings"]}
    assert {path: f["line"] for path, f in found.items()} == wanted
    assert {(f["cell"], f["cell_line"]) for f in found.values()} == {(4, 7)}
    for path, f in found.items():
        line = (repo / path).read_text(encoding="utf-8").splitlines()[f["line"] - 1]
        assert line[f["column"] - 1 : f["end_column"] - 1].startswith("torch.save(model.state_dict(), ")
    gitlab = json.loads(rows_of(repo, "gitlab"))
    assert {row["location"]["path"]: row["location"]["lines"]["begin"] for row in gitlab} == wanted
    github = re.findall(r"^::\w+ file=([^,]+),line=(\d+),", rows_of(repo, "github"), re.M)
    assert {path: int(line) for path, line in github} == wanted
    rdjson = [d["location"] for d in json.loads(rows_of(repo, "rdjson"))["diagnostics"]]
    assert {at["path"]: at["range"]["start"]["line"] for at in rdjson} == wanted
    assert "a.ipynb:cell 4:line 7:5" in rows_of(repo, "junit")
    assert "a.ipynb:cell 4:line 7:5: DDP501" in rows_of(repo, "concise")


def test_the_fix_in_sarif_is_one_of_the_file(repo: Path) -> None:
    results = json.loads(rows_of(repo, "sarif"))["runs"][0]["results"]
    assert len(results) == 4
    for result in results:
        (change,) = result["fixes"][0]["artifactChanges"]
        path = change["artifactLocation"]["uri"].replace("%20", " ")
        lines = (repo / path).read_bytes().decode().splitlines(keepends=True)
        for row in reversed(change["replacements"]):
            region = row["deletedRegion"]
            bottom = region["endLine"] - (region["endColumn"] == 1)
            lines[region["startLine"] - 1 : bottom] = [row.get("insertedContent", {}).get("text", "")]
        fixed = TRAIN.replace("    torch.save(", "    if rank == 0:\n        torch.save(")
        assert sources("".join(lines).encode())[3] == fixed


def test_with_changed_since_the_lines_of_the_file_count(repo: Path) -> None:
    for path in ("a.ipynb", "kaggle/c.ipynb"):
        (repo / path).write_bytes((repo / path).read_bytes().replace(b"range(3)", b"range(4)"))
    rows = ddpfix(repo, "check", "--select", "DDP501", "--changed-since", "HEAD").stdout.decode().splitlines()
    assert [row.split(":")[0] for row in rows] == ["a.ipynb", "kaggle/c.ipynb"]


def test_why_not_reads_a_line_of_a_notebook(repo: Path) -> None:
    line = line_of(repo, "a.ipynb", "        print(")
    said = ddpfix(repo, "check", "--why-not", f"a.ipynb:{line}").stdout.decode()
    assert 'print("epoch", epoch)' in said
    assert "DDP203" in said


# Review


def test_a_decision_in_review_holds_and_a_comment_in_the_cell_silences(repo: Path) -> None:
    asked = ("check", "--select", "DDP203,DDP501", "a.ipynb")
    found = json.loads(ddpfix(repo, *asked, "--output-format", "json").stdout)["findings"]
    first, second = (f["id"] for f in found)
    decisions = {"version": 1, "base": "", "decisions": {first: {"verdict": "reject", "reason": "wanted"}, second: "accept"}}
    (repo / "ddpfix-decisions.json").write_text(json.dumps(decisions), encoding="utf-8")
    done = ddpfix(repo, "apply", "--decisions", "ddpfix-decisions.json", "--write-suppressions", "a.ipynb")
    assert done.returncode == 0, done.stderr
    cell = sources((repo / "a.ipynb").read_bytes())[3]
    assert "        # ddpfix: ignore[DDP203] wanted\n        print(" in cell
    assert "    if rank == 0:\n        torch.save(" in cell
    assert ddpfix(repo, *asked).stdout == b""


def test_a_suppression_that_silences_nothing_is_named_by_its_cell(tmp_path: Path) -> None:
    quiet = TRAIN.replace("        print", "        # ddpfix: ignore[DDP203] one line\n        print")
    made = notebook(code(SETUP), code(quiet), code(LAUNCH + "\nx = 1  # ddpfix: ignore[DDP501]"))
    repo = make(tmp_path, {"a.ipynb": jupyter(made)})
    rows = ddpfix(repo, "check", "--select", "DDP000,DDP203,DDP501").stdout.decode().splitlines()
    assert [row.split(": ")[0] for row in rows] == ["a.ipynb:cell 2:line 8:5", "a.ipynb:cell 3:line 4:8"]
    assert "DDP203" not in "".join(rows)


def test_the_review_page_shows_the_code_of_the_cells(repo: Path) -> None:
    assert ddpfix(repo, "review", "--html", ".git/page.html").returncode == 0
    page = (repo / ".git" / "page.html").read_text(encoding="utf-8")
    data = json.loads(re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.S)[1])  # type: ignore[index]
    item = next(i for i in data["items"] if i["path"] == "a.ipynb" and i["code"] == "DDP203")
    assert item["where"] == "cell 4:line 6"
    shown = json.dumps(item["diff"])
    assert "epoch" in shown
    assert "\\\\n" not in shown  # the strings of the file are not what is read
    assert "a.ipynb:cell 4:line 6" in page


# What is said of a notebook, and what not


def findings(tmp_path: Path, *cells: str, select: str = "ALL") -> list[tuple[str, str]]:
    repo = make(tmp_path, {"a.ipynb": jupyter(notebook(text("# x"), *map(code, cells)))})
    rows = ddpfix(repo, "check", "--unsafe-fixes", *([] if select == "ALL" else ["--select", select])).stdout.decode()
    return re.findall(r"^a\.ipynb:(.*?):\d+: (DDP\d+)", rows, re.M)


IMPORTS = "import torch\nimport torch.distributed as dist\nfrom accelerate import Accelerator, notebook_launcher"
ACCELERATED = """\
def main():
    accelerator = Accelerator()
    model = accelerator.prepare(torch.nn.Linear(3, 3))
    for step in range(3):
        accelerator.backward(model(torch.rand(3)).sum())
    print("done")
    torch.save(model.state_dict(), "m.pt")"""


def test_what_notebook_launcher_starts_is_run_by_every_rank(tmp_path: Path) -> None:
    launch = 'print("start")\nnotebook_launcher(main, num_processes=2)\ntorch.save(1, "x.pt")'
    found = findings(tmp_path, IMPORTS, ACCELERATED, launch, select="DDP203,DDP501")
    assert found == [("cell 3:line 7", "DDP501")]


def test_the_kernel_alone_runs_what_no_launcher_is_given(tmp_path: Path) -> None:
    assert findings(tmp_path, IMPORTS, ACCELERATED, "main()\nprint('end')\ntorch.save(1, 'x.pt')", select="DDP2,DDP5") == []


def test_a_notebook_for_one_gpu_has_nothing_to_fix(tmp_path: Path) -> None:
    lines = "model = torch.nn.Linear(3, 3).cuda()\nfor epoch in range(3):\n    print(epoch)\ntorch.save(model, 'm.pt')"
    assert findings(tmp_path, "import torch", lines) == []


# Speed


def test_megabytes_of_outputs_cost_little(tmp_path: Path) -> None:
    picture = {"output_type": "display_data", "metadata": {}, "data": {"image/png": "iVBORw0KGgo" * 2_000_000}}
    cells = [code(SETUP), code(TRAIN, outputs=[picture]), code(LAUNCH)]
    repo = make(tmp_path, {"a.ipynb": jupyter(notebook(*cells))})
    assert (repo / "a.ipynb").stat().st_size > 20_000_000
    started = time.perf_counter()
    done = ddpfix(repo, "check", "--no-cache", "--select", "DDP203")
    assert b"cell 2:line 6" in done.stdout
    assert time.perf_counter() - started < 10  # 0.6 s on an idle machine, of which 0.4 is the start
