"""`ddpfix init`: what it writes is used as it stands; and the schema of the settings says what the program takes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from ddpfix import settings
from ddpfix.first_files import GITHUB, GITLAB, HOOKS, SETTINGS, first_files
from ddpfix.settings_schema import schema
from tests.gitrepos import make, visible
from tests.programs import ddpfix

ROOT = Path(__file__).parent.parent
OTHER = "repos:\n{0}- repo: local\n{0}  hooks:\n{0}    - {{id: x, name: x, entry: x, language: system}}\n"


def offered(root: Path, *, gitlab: bool = False) -> dict[str, str]:
    return {file.path: file.text for file in first_files(root, gitlab=gitlab) if not file.left}


def test_it_writes_three_files_and_undo_takes_them_back(tmp_path: Path) -> None:
    repo = make(tmp_path, {"train.py": b"x = 1\n"})
    before = visible(repo)
    refused = ddpfix(repo, "init")
    assert (refused.returncode, visible(repo)) == (2, before)
    assert b"Say --yes" in refused.stderr
    done = ddpfix(repo, "init", "--yes")
    assert (done.returncode, done.stdout.decode().split()) == (0, [SETTINGS, HOOKS, GITHUB])
    assert settings.load(repo) == settings.Settings()
    assert ddpfix(repo, "check", ".").returncode == 0
    again = ddpfix(repo, "init", "--yes")
    assert (again.returncode, again.stdout) == (0, b"")
    assert ddpfix(repo, "undo").returncode == 0
    assert not any((repo / name).exists() for name in (SETTINGS, HOOKS, GITHUB))


def test_the_job_and_the_hook_run_commands_that_there_are(tmp_path: Path) -> None:
    files = offered(tmp_path)
    (hook,) = yaml.safe_load(files[HOOKS])["repos"][0]["hooks"]
    ours = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())[0]
    assert (hook["entry"], hook["types_or"]) == (ours["entry"], ours["types_or"])
    run = yaml.safe_load(files[GITHUB])["jobs"]["ddpfix"]["steps"][-1]["run"]
    (tmp_path / "a.py").write_text("x = 1\n")
    assert ddpfix(tmp_path, *run.split()[1:]).returncode == 0


@pytest.mark.parametrize("indent", ["", "  ", "    "])
def test_hooks_that_are_there_stay_as_they_are(tmp_path: Path, indent: str) -> None:
    before = OTHER.format(indent)
    (tmp_path / HOOKS).write_text(before)
    text = offered(tmp_path)[HOOKS]
    assert text.startswith(before)
    assert [repo["hooks"][0]["id"] for repo in yaml.safe_load(text)["repos"]] == ["x", "ddpfix"]


@pytest.mark.parametrize("text", [OTHER.format("  ") + "ci: {skip: [x]}\n", "repos: []\n", "[1", "- ddpfix\n"])
def test_hooks_that_cannot_be_added_to_are_left_alone(tmp_path: Path, text: str) -> None:
    (tmp_path / HOOKS).write_text(text)
    assert HOOKS not in offered(tmp_path)


def test_what_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.ddpfix]\nfail-on = 'safe'\n")
    (tmp_path / GITHUB).parent.mkdir(parents=True)
    (tmp_path / GITHUB).write_text("name: ours\n")
    left = {file.path: file.left for file in first_files(tmp_path, gitlab=False)}
    assert left == {SETTINGS: "pyproject.toml has them", HOOKS: "", GITHUB: "it is there already"}


def test_a_job_of_gitlab_stands_beside_the_others(tmp_path: Path) -> None:
    assert list(yaml.safe_load(offered(tmp_path, gitlab=True)[GITLAB])) == ["ddpfix"]
    (tmp_path / GITLAB).write_text("test:\n  script: [make test]\n")
    assert list(yaml.safe_load(offered(tmp_path, gitlab=True)[GITLAB])) == ["test", "ddpfix"]
    (tmp_path / GITLAB).write_text("test:\n  script: !reference [a, b]\n")
    assert GITLAB not in offered(tmp_path, gitlab=True)


# The schema


def example() -> dict[str, Any]:
    text = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```toml\n(.*?)```", text, re.S)
    table: dict[str, Any] = settings.toml(block.encode())["tool"]["ddpfix"]
    return table


def test_every_setting_is_in_the_documentation_and_in_the_schema(tmp_path: Path) -> None:
    known = {name.replace("_", "-") for name in settings.IN_FILES}
    assert set(example()) == set(schema()["properties"]) == known
    jsonschema.Draft7Validator.check_schema(schema())
    printed = ddpfix(tmp_path, "init", "--schema")
    assert json.loads(printed.stdout) == schema() == json.loads((ROOT / "docs" / "settings.schema.json").read_text())


@pytest.mark.parametrize(
    "table",
    [
        example(),
        {},
        {"target-lightning": ""},
        {"fail-on": "error"},
        {"select": "DDP1"},
        {"ignore": [1]},
        {"per-file-ignores": {"a": "DDP1"}},
        {"bot": "no"},
        {"branch": 1},
        {"target-lightning": "two"},
        {"rewrites": {"names": {}}},
        {"rewrites": {"functions": {"a": 1}}},
        {"allow-plugins": True},
        {"selekt": []},
    ],
)
def test_the_schema_takes_what_the_program_takes(table: dict[str, Any]) -> None:
    try:
        settings.parse(table, "here")
        taken = True
    except settings.SettingsError:
        taken = False
    assert jsonschema.Draft7Validator(schema()).is_valid(table) is taken
