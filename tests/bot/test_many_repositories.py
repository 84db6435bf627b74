"""`ddpfix bot run` over several repositories as the process that it is, with its children: hostile ones cost only themselves."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.bot.conftest import FILES, FIXED, IDENTITY, MODULE, TOKEN, World
from tests.bot.githost import git, import_commit
from tests.bot.test_strangers import children, push_tree, review, tree_of_a_billion_paths

HOSTILE = {"ddpfix.toml": b"[" * 100_000, "b\x1b[2Jad.py": b"x = (" * 5_000, "model.py": b"\xff\xfe\x00"}


def run(world: World, folder: Path, *slugs: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "ddpfix.cli", "bot", "run", *slugs, "--topics", "safe"]
    command += ["--api-url", world.forge.api, "--author", f"{IDENTITY[0]} <{IDENTITY[1]}>"]
    env = {**os.environ, "DDPFIX_TOKEN": TOKEN, "DDPFIX_APP_ID": "", "TMPDIR": str(folder)}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False)



def test_hostile_repositories_cost_only_themselves(world: World, tmp_path: Path) -> None:
    before, settings, after = (f"{world.slug}-{name}" for name in ("before", "settings", "after"))
    for slug in (before, settings, after):
        world.forge.add(slug, FILES)
    push_tree(world, tree_of_a_billion_paths(world.git), "main")
    import_commit(world.forge.repository(settings), "main", HOSTILE, "by hand", parent="refs/heads/main^0")
    (tmp_path / "run").mkdir()
    done = run(world, tmp_path / "run", before, world.slug, settings, after)
    first, second, third, last = done.stdout.splitlines()
    assert first.startswith(f"{before} safe: created http")
    assert second.startswith(f"{world.slug}: refused (") and "more than 200000 files" in second
    assert third.startswith(f"{settings}: failed (") and "ddpfix.toml" in third and third.isprintable()
    assert last.startswith(f"{after} safe: created http")
    assert (done.returncode, done.stderr) == (2, "")
    for slug in (before, after):
        assert [pull["state"] for pull in world.forge.repos[slug].pulls.values()] == ["open"]
        fixed = git(world.forge.repository(slug), "cat-file", "blob", "refs/heads/ddpfix/safe:model.py")
        assert fixed.encode() + b"\n" == FIXED
    assert world.repo.pulls == world.forge.repos[settings].pulls == {}
    assert list((tmp_path / "run").iterdir()) == []  # no clone is left
    assert not children()


def test_a_name_that_is_no_utf_8_ends_neither_a_run_nor_a_review(world: World) -> None:
    name = os.fsdecode(b"bad\xff.py")
    world.commit({name: MODULE})
    assert world.safe(confined=True).action == "created"
    assert git(world.git, "diff", "--name-only", "main", "ddpfix/safe").split() == ['"bad\\377.py"', "model.py"]
    assert "bad\ufffd.py" in world.pull()["body"]
    git(world.git, "update-ref", "refs/heads/mine", world.tip("main"))
    world.commit({name: MODULE + b"\n", "new.py": MODULE}, branch="mine")
    number = world.forge.open_by_hand(world.slug, "mine")
    assert review(world, number).action == "reviewed"
