"""What the bot does to a repository, seen from outside: branches, pull requests, comments, and what it leaves alone."""

from __future__ import annotations

from tests.bot.conftest import FIXED, World
from tests.bot.githost import git


def test_fixes_come_as_a_pull_request(world: World) -> None:
    assert world.actions() == {"safe": "created", "unsafe": "nothing"}
    pull = world.pull()
    assert pull["title"] == "ddpfix: 1 safe fix in 1 file"
    assert not pull["draft"]
    assert world.file("model.py") == FIXED
    for words in ("DDP101", "<details><summary><code>model.py</code></summary>", "/ddpfix rebuild", "enabled = false"):
        assert words in pull["body"]
    assert git(world.git, "log", "-1", "--format=%an <%ae>|%cn", "ddpfix/safe").startswith("mender[bot] <4711+")
    trailers = git(world.git, "log", "-1", "--format=%(trailers:only)", "ddpfix/safe")
    assert "ddpfix-rules: DDP101" in trailers
    assert "ddpfix-run: " in trailers


def test_a_second_run_writes_nothing(world: World) -> None:
    world.run()
    before = len(world.forge.writes(world.slug))
    assert world.actions() == {"safe": "unchanged", "unsafe": "nothing"}
    assert world.forge.writes(world.slug)[before:] == []
