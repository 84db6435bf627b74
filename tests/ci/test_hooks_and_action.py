"""The hooks run by pre-commit itself, and the steps of the action run by bash as Actions runs them; both install this project."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.ci.conftest import BASE, DERIVED, ROOT
from tests.gitrepos import make, put, sh
from tests.programs import FIXED, MODULE

INSTALLED = ("ddpfix", "codemods", "pyproject.toml", "README.md", "LICENSE", "action.yml", ".pre-commit-hooks.yaml")


def program(name: str) -> str:
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if not found:
        pytest.skip(f"{name} is not here")
    return found


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This project as it is now, committed in a repository of its own."""
    files = [p for name in INSTALLED for p in ([ROOT / name] if (ROOT / name).is_file() else (ROOT / name).rglob("*"))]
    kept = [p for p in files if p.is_file() and "__pycache__" not in p.parts]
    return make(tmp_path_factory.mktemp("project"), {p.relative_to(ROOT).as_posix(): p.read_bytes() for p in kept}, name="ddpfix")


def test_the_files_are_valid_by_their_schemas() -> None:
    check = [program("check-jsonschema"), "--builtin-schema", "vendor.github-actions", str(ROOT / "action.yml")]
    assert subprocess.run(check, capture_output=True, check=False).returncode == 0
    hooks = [program("pre-commit"), "validate-manifest", str(ROOT / ".pre-commit-hooks.yaml")]
    assert subprocess.run(hooks, capture_output=True, check=False).returncode == 0


# pre-commit


def configuration(project: Path, *hooks: str) -> dict[str, bytes]:
    rows = "".join(f"    - id: {hook}\n" for hook in hooks)
    text = f"repos:\n- repo: {project}\n  rev: {sh(project, 'rev-parse', 'HEAD')}\n  hooks:\n{rows}"
    return {".pre-commit-config.yaml": text.encode()}


def environment(home: Path) -> dict[str, str]:
    found = {**os.environ, "PRE_COMMIT_HOME": str(home), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    found.pop("PYTHONPATH", None)
    return found


@pytest.fixture(scope="session")
def pre_commit_home(tmp_path_factory: pytest.TempPathFactory, project: Path) -> Path:
    """Where pre-commit keeps what it installs: this project with all that it needs, by pip from its folder, once."""
    home = tmp_path_factory.mktemp("pre-commit")
    repo = make(home, configuration(project, "ddpfix", "ddpfix-fix"))
    command = [program("pre-commit"), "install-hooks"]
    done = subprocess.run(command, cwd=repo, env=environment(home), capture_output=True, text=True, check=False)
    if done.returncode and re.search("No matching distribution|Connection", done.stdout + done.stderr):
        pytest.skip("pip cannot install what the program needs here")
    assert done.returncode == 0, done.stdout + done.stderr
    return home


def committing(repo: Path, project: Path, home: Path, *hooks: str) -> subprocess.CompletedProcess[str]:
    """`git commit` with these hooks installed, as a user has them; what they say is on its stderr."""
    put(repo, configuration(project, *hooks))
    sh(repo, "add", ".pre-commit-config.yaml")
    subprocess.run([program("pre-commit"), "install"], cwd=repo, env=environment(home), capture_output=True, check=True)
    command = ["git", "commit", "-m", "work"]
    return subprocess.run(command, cwd=repo, env=environment(home), capture_output=True, text=True, check=False)


def test_the_report_hook_reads_the_whole_project_and_stops_the_commit(
    tmp_path: Path, project: Path, pre_commit_home: Path
) -> None:
    repo = make(tmp_path, {"pkg/__init__.py": b"", "pkg/base.py": BASE, "ddpfix.toml": b'exclude = ["old/*"]\n'})
    put(repo, {"pkg/model.py": DERIVED, "old/model.py": MODULE})
    sh(repo, "add", "pkg", "old")
    done = committing(repo, project, pre_commit_home, "ddpfix")
    said = done.stdout + done.stderr
    assert done.returncode == 1, said
    found = re.findall(r"^(\S+?):(\d+):\d+: (DDP\d+)", said, re.M)
    assert found == [("pkg/model.py", "15", "DDP101"), ("pkg/model.py", "16", "DDP103")]
    assert sh(repo, "log", "--format=%s") == "first"


def test_the_fix_hook_mends_what_is_staged_and_lets_the_next_commit_through(
    tmp_path: Path, project: Path, pre_commit_home: Path
) -> None:
    repo = make(tmp_path, {"README.md": b"hi\n"})
    put(repo, {"model.py": MODULE})
    sh(repo, "add", "model.py")
    first = committing(repo, project, pre_commit_home, "ddpfix-fix", "ddpfix")
    assert first.returncode == 1 and "files were modified by this hook" in first.stdout + first.stderr
    assert (repo / "model.py").read_bytes() == FIXED
    assert sh(repo, "status", "--short", "model.py") == "AM model.py"
    sh(repo, "add", "model.py")
    second = committing(repo, project, pre_commit_home, "ddpfix-fix", "ddpfix")
    assert second.returncode == 0, second.stdout + second.stderr
    assert sh(repo, "log", "--format=%s") == "work\nfirst"
    assert sh(repo, "show", "--stat", "--format=", "HEAD").count("|") == 2  # the model and the configuration, no summary


# The action


def evaluated(text: str, known: Mapping[str, str]) -> str:
    return re.sub(r"\$\{\{ (.+?) \}\}", lambda m: known[m[1]], text)


@pytest.fixture
def runner(tmp_path: Path, pre_commit_home: Path) -> Path:
    """A runner's temporary folder, with the program on its path."""
    (installed,) = pre_commit_home.glob("repo*/py_env-*/bin/ddpfix")
    folder = tmp_path / "runner"
    folder.mkdir()
    (folder / "GITHUB_PATH").write_text(f"{installed.parent}\n")
    return folder


def test_the_first_step_installs_the_action_itself(tmp_path: Path, project: Path) -> None:
    bare = tmp_path / "action"
    shutil.copytree(project, bare, ignore=shutil.ignore_patterns(".git"))
    about = (bare / "pyproject.toml").read_text()
    without, count = re.subn(r"^dependencies = \[.*?^\]", "dependencies = []", about, flags=re.M | re.S)
    assert count == 1
    (bare / "pyproject.toml").write_text(without)  # what it needs besides is installed for the hooks
    done = step(tmp_path, bare, tmp_path, 0, {"python": sys.executable})
    if done.returncode and re.search("No matching distribution|Connection", done.stderr):
        pytest.skip("pip cannot install what builds the program here")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "GITHUB_PATH").read_text() == f"{tmp_path}/ddpfix/bin\n"
    assert os.access(tmp_path / "ddpfix/bin/ddpfix", os.X_OK)


def step(
    folder: Path, project: Path, repo: Path, number: int, inputs: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """One step of action.yml, as Actions runs it: bash -eo pipefail, inputs by `env`, the files of the workflow commands."""
    action: dict[str, Any] = yaml.safe_load((project / "action.yml").read_text())
    assert set(inputs) <= set(action["inputs"])
    known = {f"inputs.{name}": str(inputs.get(name, row["default"])) for name, row in action["inputs"].items()}
    known["github.action_path"] = str(project)
    row = action["runs"]["steps"][number]
    assert "${{" not in row["run"], "what a user gives is never pasted into a script"
    files = {name: str(folder / name) for name in ("GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY")}
    for name in files.values():
        Path(name).touch()
    env = {**os.environ, **files, "RUNNER_TEMP": str(folder), "DDPFIX_CACHE_DIR": str(folder / "cache")}
    env.pop("PYTHONPATH", None)
    env |= {name: evaluated(value, known) for name, value in row["env"].items()}
    env["PATH"] = os.pathsep.join([*Path(files["GITHUB_PATH"]).read_text().split(), env["PATH"]])
    where = repo / evaluated(row.get("working-directory", "."), known)
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", row["run"]]
    return subprocess.run(command, cwd=where, env=env, capture_output=True, text=True, check=False)


def test_the_action_annotates_writes_sarif_and_its_page_and_fails(tmp_path: Path, project: Path, runner: Path) -> None:
    repo = make(tmp_path, {"src/model.py": MODULE})
    done = step(runner, project, repo, 1, {})
    assert done.returncode == 1, done.stderr
    assert [line.split(",")[:2] for line in done.stdout.splitlines()] == [
        ["::error file=src/model.py", "line=15"], ["::warning file=src/model.py", "line=16"],
    ]  # fmt: skip
    assert (runner / "GITHUB_OUTPUT").read_text() == "findings=2\nsarif-file=ddpfix.sarif\n"
    assert "| error | src/model.py:15 |" in (runner / "GITHUB_STEP_SUMMARY").read_text()
    assert len(json.loads((repo / "ddpfix.sarif").read_text())["runs"][0]["results"]) == 2


@pytest.mark.parametrize(
    ("inputs", "status", "count"),
    [
        ({"fail-on": "never"}, 0, 2),
        ({"fail-on": "safe", "paths": "other.py"}, 0, 0),
        ({"args": "--select DDP101\n --exclude x*"}, 1, 1),
        ({"changed-since": "HEAD", "working-directory": "src"}, 0, 0),
        ({"baseline": "known.json"}, 0, 0),
        ({"args": "--select $(touch${IFS}evil) * `touch evil`"}, 2, None),
        ({"paths": "$(touch${IFS}evil);touch evil"}, 2, None),
    ],
)
def test_the_inputs_of_the_action(
    tmp_path: Path, project: Path, runner: Path, inputs: dict[str, str], status: int, count: int | None
) -> None:
    repo = make(tmp_path, {"src/model.py": MODULE, "other.py": b"x = 1\n"})
    if "baseline" in inputs:
        step(runner, project, repo, 1, {"args": "--baseline known.json --write-baseline"})
        (runner / "GITHUB_OUTPUT").unlink()
    done = step(runner, project, repo, 1, inputs)
    assert done.returncode == status, done.stderr
    said = (runner / "GITHUB_OUTPUT").read_text()
    assert said == ("" if count is None else f"findings={count}\nsarif-file=ddpfix.sarif\n")
    assert not (repo / "evil").exists()
