"""Where the bot does not work, and what a repository may ask of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ddpfix.bot.preferences import read
from ddpfix.settings import Settings, SettingsError
from tests.bot.conftest import FILES, World


@pytest.mark.parametrize(
    ("about", "options", "why"),
    [
        ({"archived": True}, {}, "archived"),
        ({"disabled": True}, {}, "archived"),
        ({"fork": True}, {}, "a fork"),
        ({"topics": ["ml", "no-ddpfix"]}, {}, "no-ddpfix"),
        ({"permissions": {"push": False}}, {}, "may not push"),
        ({"has_pull_requests": False}, {}, "no pull requests"),
        ({"default_branch": "ddpfix/safe"}, {}, "default branch"),
        ({}, {"blocked": ("ACME",)}, "left alone"),
    ],
)
def test_it_is_left_alone(world: World, about: dict[str, Any], options: dict[str, Any], why: str) -> None:
    world.repo.about = about
    (outcome,) = world.run(**options)
    assert outcome.action == "skipped"
    assert why in outcome.why
    assert world.forge.writes(world.slug) == []


def test_a_fork_is_worked_on_where_that_is_asked_for(world: World) -> None:
    world.repo.about = {"fork": True}
    assert world.safe(forks=True).action == "created"


def test_an_empty_repository_is_left_alone(world: World) -> None:
    world.forge.add("acme/empty", {})
    (outcome,) = world.bot().repository("acme/empty")
    assert (outcome.action, outcome.why) == ("skipped", "it is empty")


@pytest.mark.parametrize(
    "files",
    [
        {".github/ddpfix.toml": b"enabled = false\n"},
        {"pyproject.toml": b"[tool.ddpfix]\nbot = false\n"},
        {"ddpfix.toml": b"bot = false\n"},
    ],
    ids=["bot-settings", "pyproject", "ddpfix-toml"],
)
def test_a_file_turns_the_bot_off(world: World, files: dict[str, bytes]) -> None:
    world.commit(files)
    (outcome,) = world.run()
    assert (outcome.action, outcome.why) == ("skipped", "its settings turn the bot off")


def test_settings_that_cannot_be_read_are_told_and_nothing_is_done(world: World) -> None:
    world.commit({".github/ddpfix.toml": b"max-opne = 3\n"})
    (outcome,) = world.run()
    assert outcome.action == "failed"
    assert "did you mean 'max-open'?" in outcome.why
    assert world.forge.writes(world.slug) == []


def test_a_failure_of_one_repository_stops_no_other(world: World) -> None:
    told: list[str] = []
    world.bot(topics=("safe",)).run(["acme/missing", world.slug], lambda outcome: told.append(outcome.action))
    assert told == ["failed", "created"]


def test_what_names_code_is_not_taken_from_a_repository(world: World, tmp_path: Path) -> None:
    witness = tmp_path / "ran"
    world.commit(
        {
            "pyproject.toml": f'[tool.ddpfix]\nformat-command = "touch {witness}"\nplugins = ["evil.py"]\n'.encode(),
            "evil.py": f"open({str(witness)!r}, 'w')\n".encode(),
            ".gitattributes": b"*.py filter=evil\n",
            "setup.py": f"open({str(witness)!r}, 'w')\n".encode(),
            "conftest.py": f"open({str(witness)!r}, 'w')\n".encode(),
        }
    )
    assert world.safe().action == "created"
    assert not witness.exists()
    assert world.pull()["branch"] == "ddpfix/safe"


def test_only_data_is_taken_over() -> None:
    text = b'ignore = ["DDP1"]\nexclude = ["x/*"]\nformat-command = "rm -rf /"\nbranch = "main"\n'
    settings, _ = read({"ddpfix.toml": text + b'plugins = ["evil.py"]\n'}.get)
    assert settings == Settings(ignore=("DDP1",), exclude=("x/*",))


def test_a_teams_own_renames_are_data(world: World) -> None:
    world.commit(
        {
            "ddpfix.toml": b'[rewrites]\nfunctions = { is_main = "is_rank_zero" }\n',
            "dist.py": b"def is_main():\n    return True\n",
            "more.py": b"from dist import is_main\n\nif is_main():\n    pass\n",
        }
    )
    assert world.safe(topics=("unsafe",)).action == "created"
    assert b"if is_rank_zero():" in world.file("more.py", "ddpfix/unsafe")
    assert "PRJ001" in world.pull()["body"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"enabled = 1\n", "enabled is true or false"),
        (b"max-open = true\n", "max-open is a number"),
        (b"max-open = -1\n", "max-open is a number from 0 on, not -1$"),
        (b'topics = "safe"\n', "topics is a list of texts"),
        (b"not toml", "ddpfix.toml"),
    ],
)
def test_a_wrong_kind_of_value_is_named(text: bytes, why: str) -> None:
    with pytest.raises(SettingsError, match=why):
        read({".github/ddpfix.toml": text}.get)


def test_a_topic_that_nobody_knows_is_named(world: World) -> None:
    world.commit({".github/ddpfix.toml": b'topics = ["sfae"]\n'})
    (outcome,) = world.run()
    assert "'sfae' is not safe" in outcome.why


def test_links_and_submodules_are_left_alone(world: World) -> None:
    from tests.bot.githost import git

    target = git(world.git, "hash-object", "-w", "--stdin", data=b"/etc/passwd")
    rows = git(world.git, "ls-tree", "main").encode()
    rows += f"\n120000 blob {target}\tddpfix.toml\n160000 commit {'1' * 40}\tsub\n".encode()
    tree = git(world.git, "mktree", "--missing", data=rows)
    git(world.git, "update-ref", "refs/heads/main", git(world.git, "commit-tree", tree, "-p", "main", "-m", "links"))
    assert world.safe().action == "created"
    assert git(world.git, "diff", "--name-only", "main", "ddpfix/safe") == "model.py"
    assert sorted(FILES) == ["model.py", "requirements.txt"]
