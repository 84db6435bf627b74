"""docs/ci.md and the how-tos beside it: commands run, workflow, pipeline and hooks are valid and name what there is."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from ddpfix.outputs import formats
from tests.ci.conftest import ROOT
from tests.ci.test_hooks_and_action import program
from tests.gitrepos import make, put, sh
from tests.programs import MODULE

PAGES = ("ci.md", "how-to/github.md", "how-to/gitlab.md", "how-to/pre-commit.md")
PAGE = "\n".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in PAGES)
BLOCKS = re.findall(r"```console\n(.*?)```", PAGE, re.S)
COMMANDS = [line for block in BLOCKS for line in block.splitlines() if line.startswith("ddpfix ")]  # `$ ddpfix`: tests/site
FILES = {m[1]: m[0] for m in re.findall(r"```yaml\n(# (\S+)\n.*?)```", PAGE, re.S)}
SCHEMAS = {".github/workflows/ddpfix.yml": "vendor.github-workflows", ".gitlab-ci.yml": "vendor.gitlab-ci"}


def shell(repo: Path, command: str) -> subprocess.CompletedProcess[str]:
    """A command of the page, with `ddpfix` as the program of this checkout."""
    words = re.sub(r"^ddpfix\b", f"{sys.executable} -P -m ddpfix.cli", command)
    return subprocess.run(words, shell=True, cwd=repo, capture_output=True, text=True, check=False, env=os.environ.copy())


def test_the_commands_do_what_the_page_says(tmp_path: Path) -> None:
    """In their order, in an old repository with findings, on a branch that adds one more."""
    repo = make(tmp_path, {"model.py": MODULE, "train.py": b"print(1)\n", "pyproject.toml": b"[project]\nname = 'x'\n"})
    sh(tmp_path, "clone", "-q", "--bare", str(repo), str(tmp_path / "origin.git"))
    sh(repo, "remote", "add", "origin", str(tmp_path / "origin.git"))
    sh(repo, "fetch", "-q", "origin")
    done = {command: shell(repo, command) for command in COMMANDS}
    assert {c: d.returncode for c, d in done.items() if d.returncode} == {
        "ddpfix check --output-format github --output sarif=ddpfix.sarif .": 1  # the old findings; all others were kept quiet
    }
    assert all("defect" not in d.stderr for d in done.values())
    assert json.loads((repo / "ddpfix.sarif").read_text())["version"] == "2.1.0" and (repo / "reports/ddpfix.xml").is_file()
    put(repo, {"new.py": MODULE})
    against_baseline, changed = COMMANDS[1:3]
    assert [shell(repo, c).stdout.count("new.py") for c in (against_baseline, changed)] == [2, 2]


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_examples_are_valid_by_their_schemas(tmp_path: Path, name: str) -> None:
    (tmp_path / "file.yml").write_text(FILES[name])
    command = [program("check-jsonschema"), "--builtin-schema", SCHEMAS[name], str(tmp_path / "file.yml")]
    words = [*command, "--data-transform", "gitlab-ci"] if "gitlab" in name else command
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_workflow_gives_inputs_and_reads_outputs_that_there_are() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    steps = yaml.safe_load(FILES[".github/workflows/ddpfix.yml"])["jobs"]["ddpfix"]["steps"]
    (ours,) = [s for s in steps if s.get("id") == "ddpfix"]
    assert set(ours["with"]) <= set(action["inputs"])
    read = re.findall(r"steps\.ddpfix\.outputs\.([\w-]+)", FILES[".github/workflows/ddpfix.yml"])
    assert read and set(read) <= set(action["outputs"])


def test_the_pipeline_writes_the_reports_that_it_hands_over(tmp_path: Path) -> None:
    repo = make(tmp_path, {"model.py": MODULE})
    job = yaml.safe_load(FILES[".gitlab-ci.yml"])["ddpfix"]
    install, check = job["script"]
    assert install.startswith("pip install")
    assert shell(repo, check).returncode == 1
    assert all((repo / report).is_file() for report in job["artifacts"]["reports"].values())


def test_the_hooks_are_those_that_there_are(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(FILES[".pre-commit-config.yaml"])
    done = subprocess.run([program("pre-commit"), "validate-config", str(tmp_path / "config.yaml")], check=False)
    assert done.returncode == 0
    known = {hook["id"] for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    assert {h["id"] for r in yaml.safe_load(FILES[".pre-commit-config.yaml"])["repos"] for h in r["hooks"]} == known


def test_the_page_names_every_format() -> None:
    table = PAGE.partition("## The formats")[2].partition("\n\n`--output`")[0]
    assert set(re.findall(r"`([a-z-]+)`", "".join(line.split("|")[1] for line in table.splitlines()[4:]))) == set(formats.names())
