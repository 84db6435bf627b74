"""Waves of pull requests against a forge that remembers, through the bot."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.bot.conftest import FILES, IDENTITY, TOKEN, clock, forge
from tests.bot.githost import git
from tests.bot.github_forge import GitHubForge
from tests.fleet.conftest import Fleet
from tests.fleet.test_run import rows
from tests.gitrepos import own_settings
from tests.programs import forked_python

__all__ = ["clock", "forge"]
SLUGS = [f"team/model-{number}" for number in range(5)]


class Campaign:
    """A fleet whose repositories lie on the forge."""

    def __init__(self, fleet: Fleet, forge: GitHubForge) -> None:
        self.fleet, self.forge = fleet, forge
        for slug in SLUGS:
            forge.repos.pop(slug, None)
            forge.add(slug, FILES if slug != SLUGS[1] else {"model.py": b"x = 1\n"})
        (fleet.folder / "repos.txt").write_text("".join(f"{slug}\n" for slug in SLUGS))

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "DDPFIX_TOKEN": TOKEN, "DDPFIX_READ_TOKEN_127_0_0_1": TOKEN}
        command = [forked_python(env), "-P", "-m", "ddpfix.cli", "fleet", *arguments]
        return subprocess.run(command, cwd=self.fleet.folder, capture_output=True, text=True, timeout=300, env=env, check=False)

    def publish(self, *options: str) -> subprocess.CompletedProcess[str]:
        who = f"{IDENTITY[0]} <{IDENTITY[1]}>"
        return self("publish", "--waves", "1,2", "--api-url", self.forge.api, "--author", who, *options)

    def open(self) -> list[str]:
        return [slug for slug in SLUGS if any(pull["state"] == "open" for pull in self.forge.repos[slug].pulls.values())]


@pytest.fixture(scope="module")
def ran(forge: GitHubForge, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a campaign that has looked at its repositories, and the state of that."""
    folder = tmp_path_factory.mktemp("ran")
    (folder / "fleet").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        own_settings(patch, folder / "home")
        patch.setenv("DDPFIX_STATE", str(folder / "state"))
        made = Campaign(Fleet(folder / "fleet"), forge)
        (made.fleet.folder / "cover.md").write_text("Why we ask: see the handbook, or @ada.\n")
        done = made("plan", "repos.txt", "--server", forge.url, "--select", "DDP101", "--name", "metrics", "--cover", "cover.md")
        assert done.returncode == 0, done.stderr
        done = made("run")
    assert {name: row["safe"] for name, row in rows(done.stdout).items()} == {
        slug.partition("/")[2]: int(slug != SLUGS[1]) for slug in SLUGS
    }, done.stdout
    return folder


@pytest.fixture
def campaign(fleet: Fleet, forge: GitHubForge, tmp_path: Path, ran: Path) -> Campaign:
    """The same in folders of its own; the repositories on the forge are made again, with the same commits."""
    for name in ("fleet", "state"):
        if (ran / name).exists():
            shutil.copytree(ran / name, tmp_path / name, dirs_exist_ok=True)
    return Campaign(fleet, forge)


def test_waves_hold_what_they_say_and_stop_where_people_refuse(campaign: Campaign) -> None:
    assert campaign.publish("--dry-run").stdout == f"{SLUGS[0]}\n" and campaign.open() == []
    first = campaign.publish()
    assert first.returncode == 0 and first.stdout.startswith(f"{SLUGS[0]} DDP101: created http"), first.stderr
    assert campaign.open() == [SLUGS[0]]
    body = campaign.forge.repos[SLUGS[0]].pulls[1]["body"]
    assert body.startswith("**metrics**\n\nWhy we ask: see the handbook, or `@ada`.\n\n"), "and nobody is called"
    second = campaign.publish()
    assert [line.split()[0] for line in second.stdout.splitlines()] == SLUGS[2:4]
    campaign.forge.say(SLUGS[0], 1, "ada", "we log on rank 0 only")
    campaign.forge.close_pull(SLUGS[0], 1)
    third = campaign.publish()
    assert third.returncode == 1 and third.stdout == "" and "1 of the 1 pull requests" in third.stderr
    assert campaign.open() == SLUGS[2:4]
    assert campaign.fleet.status()["pulls"] == {"closed": 1, "open": 2}
    for slug in SLUGS[2:4]:
        campaign.forge.merge(slug, 1)
    assert campaign.publish("--most-closed", "40%").stdout.startswith(f"{SLUGS[4]} DDP101: created http")
    assert campaign.fleet.status()["pulls"] == {"closed": 1, "merged": 2, "open": 1}
    report = campaign("report").stdout
    assert "People refuse DDP101 most: 1 closed unmerged, 33% of those decided." in report
    assert "| DDP101 | 4 | 2 | 1 |" in report and f"| `{SLUGS[0]}` | DDP101 |" in report
    assert "Half of the 2 merged pull requests were merged within 2.5 days." in report
    assert "| `#1` | we log on rank 0 only | comment |" in report


def test_a_campaign_is_called_off_with_a_word_in_each(campaign: Campaign) -> None:
    git(campaign.forge.repository(SLUGS[0]), "update-ref", "-d", "refs/heads/ddpfix/DDP101")  # of another test
    first = campaign.publish("--dashboard", "--signed")
    assert [line.split()[1:3] for line in first.stdout.splitlines()] == [["DDP101:", "created"], ["dashboard:", "created"]]
    assert campaign.fleet.status()["pulls"] == {"open": 1} and len(campaign.forge.repos[SLUGS[0]].issues) == 1
    assert git(campaign.forge.repository(SLUGS[0]), "log", "-1", "--format=%cn", "ddpfix/DDP101") == "GitHub"
    # the forge is the one that was planned
    assert campaign("refresh").stdout == "0 pull requests are no longer open\n"
    done = campaign("close", "--api-url", campaign.forge.api, "--why", "We train on one GPU now.")
    assert done.stdout == "1 pull requests closed\n", done.stderr
    pull = campaign.forge.repos[SLUGS[0]].pulls[1]
    assert pull["state"] == "closed" and campaign.open() == []
    assert campaign.fleet.status()["pulls"] == {"withdrawn": 1}
    assert campaign("close", "--api-url", campaign.forge.api).stdout == "0 pull requests closed\n"
    # what was withdrawn by ourselves stops no later wave
    assert campaign.publish().returncode == 0


def test_a_repository_that_was_deleted_stops_no_other(campaign: Campaign) -> None:
    campaign.publish("--waves", "2")
    assert campaign.open() == [SLUGS[0], SLUGS[2]]
    del campaign.forge.repos[SLUGS[0]], campaign.forge.repos[SLUGS[3]]  # before its turn, too
    done = campaign.publish("--waves", "2")
    assert done.returncode == 0, done.stderr
    assert [line.split(": ")[:2] for line in done.stdout.splitlines()] == [
        [f"{SLUGS[0]} DDP101", "gone (the forge no longer has it)"], [SLUGS[3], "failed (GET /repos/team/model-3"],
        [f"{SLUGS[4]} DDP101", f"created {campaign.forge.url}/{SLUGS[4]}/pull/1"],
    ]  # fmt: skip
    assert campaign.fleet.status()["pulls"] == {"gone": 1, "open": 2}
    # what is wrong with all of them is told once
    (campaign.fleet.folder / "token").write_text("wrong")
    wrong = campaign("close", "--api-url", campaign.forge.api, "--token-file", "token")
    assert wrong.returncode == 2 and wrong.stderr.count("\n") == 1 and ": 401: " in wrong.stderr
    assert "defect" not in wrong.stderr
    closed = campaign("close", "--api-url", campaign.forge.api)
    assert (closed.returncode, closed.stdout) == (0, "2 pull requests closed\n"), closed.stderr


def test_a_wave_that_was_cut_short_is_the_next_one_again(campaign: Campaign) -> None:
    first = campaign.publish("--waves", "3", "--per-hour", "2")
    assert [line.split()[2] for line in first.stdout.splitlines()] == ["created", "created", "deferred"]
    assert campaign.publish("--waves", "3", "--per-hour", "3", "--dry-run").stdout == f"{SLUGS[3]}\n"
    again = campaign.publish("--waves", "3", "--per-hour", "3")
    assert [line.split()[0] for line in again.stdout.splitlines()] == [SLUGS[3]]
    assert campaign.publish("--waves", "3", "--dry-run").stdout == f"{SLUGS[4]}\n"


@pytest.mark.parametrize("options", [("--waves", "0"), ("--waves", "ten"), ("--most-closed", "150%"), ("--most-closed", "few")])
def test_waves_that_cannot_be(fleet: Fleet, options: tuple[str, str]) -> None:
    fleet.add("one")
    fleet.plan("one")
    assert fleet("publish", *options, "--dry-run").returncode == 2
