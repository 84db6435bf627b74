"""The commands of docs/bot.md, as they stand there, against the stand-ins."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.bot.conftest import TOKEN, World
from tests.bot.githost import git
from tests.bot.shell import Shell
from tests.bot.test_gitea import TOKEN as TEA_TOKEN
from tests.bot.test_gitea import Tea, gitea, tea  # noqa: F401
from tests.bot.test_gitlab import TOKEN as LAB_TOKEN
from tests.bot.test_gitlab import Lab, gitlab, lab  # noqa: F401

PAGE = (Path(__file__).parents[2] / "docs" / "bot.md").read_text(encoding="utf-8")
COMMANDS = [
    shlex.split(re.sub(r"\s#.*", "", line))[1:]
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.S)
    for line in block.splitlines()
    if line.startswith("ddpfix bot")
]


def test_the_page_has_commands_for_both_forges_and_the_service() -> None:
    assert {tuple(c[:2]) for c in COMMANDS} == {("bot", "run"), ("bot", "review"), ("bot", "serve")}
    assert sum("gitlab" in c for c in COMMANDS) == 2


def test_the_commands_for_github_work(world: World, shell: Shell) -> None:
    git(world.git, "update-ref", "refs/heads/mine", world.commit({"mine.py": b"x = 1\n"}))
    git(world.git, "update-ref", "refs/heads/main", "main~1")
    world.forge.open_by_hand(world.slug, "mine")
    said = []
    for command in COMMANDS:
        if not {"gitlab", "gitea"} & set(command) and command[1] != "serve":
            own = [part.replace("OWNER/NAME", world.slug) for part in command]
            done = shell.ddpfix(*own, "--api-url", world.forge.api, DDPFIX_TOKEN=TOKEN)
            assert done.status == 0, done.err
            said.append(done.out)
    assert "would be: create" in said[0]
    assert "safe: created" in said[1]
    assert "reviewed" in said[2]
    assert '"action": "unchanged"' in said[3]


def test_the_commands_for_gitlab_work(lab: Lab, shell: Shell) -> None:  # noqa: F811
    for command in COMMANDS:
        if "gitlab" in command:
            own = [part.replace("GROUP/NAME", lab.project.slug) for part in command]
            done = shell.ddpfix(*own, "--api-url", lab.forge.api, GITLAB_TOKEN=LAB_TOKEN)
            assert done.status == 0, done.err
    assert lab.project.merges[1]["state"] == "opened"


def test_the_commands_for_gitea_work(tea: Tea, shell: Shell) -> None:  # noqa: F811
    (command,) = (c for c in COMMANDS if "gitea" in c and c[1] == "run")
    own = [part.replace("OWNER/NAME", tea.repo.slug) for part in command]
    done = shell.ddpfix(*own, "--api-url", tea.host.api, GITEA_TOKEN=TEA_TOKEN)
    assert done.status == 0 and tea.repo.pulls[1]["state"] == "open", done.err


@pytest.mark.parametrize("key", ["enabled", "topics", "max-open", "draft", "labels", "ignored-authors", "signed", "dashboard"])
def test_the_settings_on_the_page_are_those_there_are(key: str) -> None:
    from ddpfix.bot.preferences import read

    (block,) = re.findall(r"```toml\n(.*?)```", PAGE, re.S)
    assert re.search(rf"^{key} = ", block, re.M)
    read({".github/ddpfix.toml": block.encode()}.get)
