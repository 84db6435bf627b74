"""A campaign over everything that an owner has, and repositories that stand as they stood: many in one request, and no clone."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ddpfix.bot.client import Pace
from ddpfix.bot.gitlab import GitLab
from ddpfix.bot.graphql import ask
from ddpfix.bot.login import FixedToken
from ddpfix.fleet.forges import Place, place
from tests.bot.conftest import FILES, TOKEN, clock, forge
from tests.bot.githost import import_commit
from tests.bot.github_forge import Clock, GitHubForge
from tests.bot.gitlab_forge import GitLabForge
from tests.fleet.conftest import Fleet
from tests.fleet.test_run import rows
from tests.programs import forked_python

__all__ = ["clock", "forge"]
Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def command(fleet: Fleet) -> Command:
    """`ddpfix fleet` with a token that may read."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "DDPFIX_READ_TOKEN_127_0_0_1": TOKEN}
        ran = [forked_python(env), *fleet.command(*arguments)[1:]]
        return subprocess.run(ran, cwd=fleet.folder, capture_output=True, text=True, timeout=300, env=env, check=False)

    return run


@pytest.fixture(scope="module")
def gitlab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitLabForge]:
    host = GitLabForge(tmp_path_factory.mktemp("gitlab"))
    host.tokens[TOKEN] = "ddpfix-bot"
    yield host
    host.close()


def test_all_of_an_organization_is_asked_but_for_what_nobody_wants_there(forge: GitHubForge, command: Command) -> None:
    for number in range(5):
        forge.add(f"lab/r{number}", FILES)
    forge.repos["lab/r1"].about = {"archived": True}
    forge.repos["lab/r2"].about = {"fork": True}
    forge.repos["lab/r3"].about = {"topics": ["no-ddpfix"]}
    planned = command("plan", "--org", "lab", "--server", forge.url, "--name", "all")
    assert planned.stdout == "all: 2 repositories, 2 of them new, in ddpfix-fleet.sqlite\n", planned.stderr
    assert planned.stderr.splitlines() == [
        f"ddpfix fleet: 1 left out: {why}" for why in ("archived", "forks", "with the topic no-ddpfix")
    ]
    with_forks = command("plan", "--org", "lab", "--server", forge.url, "--name", "all", "--forks")
    assert "3 repositories, 1 of them new" in with_forks.stdout
    assert "cannot be listed" in command("plan", "--org", "nobody", "--server", forge.url).stderr
    forge.people.add("lab")
    assert "2 repositories, 0 of them new" in command("plan", "--org", "lab", "--server", forge.url).stdout, "a person"
    assert "there is nothing to plan" in command("plan").stderr


def test_without_a_token_nothing_is_listed(fleet: Fleet, forge: GitHubForge) -> None:
    done = fleet("plan", "--org", "lab", "--server", forge.url)
    assert done.returncode == 2 and "there is no token" in done.stderr


def test_a_group_of_gitlab_with_the_groups_in_it(gitlab: GitLabForge, command: Command, fleet: Fleet) -> None:
    for name in ("ml/one", "ml/deep/two", "web/three"):
        gitlab.add(name, FILES)
    planned = command("plan", "--group", "ml", "--server", gitlab.url)
    assert "2 repositories" in planned.stdout, planned.stderr
    done = command("run", "--workers", "1")
    assert sorted(json.loads(line)["repository"] for line in done.stdout.splitlines()) == ["ml/deep/two", "ml/one"], done.stderr
    assert done.returncode == 0, done.stdout
    before = len(gitlab.log)
    again = command("run", "--again")
    assert {row["unchanged"] for row in rows(again.stdout).values()} == {True}, again.stderr
    assert gitlab.log[before:] == [("POST", "/api/graphql")], "one request for both, and no git"


def test_what_stands_as_it_stood_costs_one_request_for_a_hundred(forge: GitHubForge, command: Command, fleet: Fleet) -> None:
    names = [f"many/r{number}" for number in range(3)]
    for name in names:
        forge.add(name, FILES)
    (fleet.folder / "repos.txt").write_text("".join(f"{name}\n" for name in names))
    command("plan", "repos.txt", "--server", forge.url)
    assert command("run", "--workers", "1").returncode == 0
    before = len(forge.log)
    again = command("run", "--again")
    assert [row["unchanged"] for row in rows(again.stdout).values()] == [True] * 3, again.stderr
    assert forge.log[before:] == [("POST", "/api/graphql")]
    import_commit(forge.repository("many/r1"), "main", {"b.py": b"x = 1\n"}, "more", parent="refs/heads/main^0")
    del forge.repos["many/r2"]  # git still has it: what the forge does not tell is asked of git
    changed = rows(command("run", "--again").stdout)
    assert {name: row["unchanged"] for name, row in changed.items()} == {"r0": True, "r1": False, "r2": True}
    # a forge that does not answer costs requests to git, and nothing else
    forge.accounts[TOKEN].until, until = 0.0, forge.accounts[TOKEN].until
    try:
        lost = command("run", "--again")
    finally:
        forge.accounts[TOKEN].until = until
    assert "was not asked about many at once" in lost.stderr and len(lost.stdout.splitlines()) == 3


def test_two_hundred_and_fifty_are_three_requests(forge: GitHubForge, clock: Clock) -> None:
    from ddpfix.bot.github import GitHub

    forge.add("many/known", FILES)
    hub = GitHub(FixedToken(TOKEN), clock=clock, api_url=forge.api)
    before = len(forge.log)
    heads = hub.heads([f"many/x{number}" for number in range(249)] + ["many/known"])
    assert heads == {"many/known": forge.tip("many/known", "refs/heads/main")}
    assert len(forge.log) - before == 3 and clock.slept == [], "questions are no writes, between which one waits"


def test_what_is_too_complex_is_asked_in_halves(gitlab: GitLabForge, clock: Clock) -> None:
    gitlab.complexity = 12
    gitlab.add("ml/known", FILES)
    lab = GitLab(FixedToken(TOKEN), clock=clock, api_url=gitlab.api, pace=Pace(gap=0.0))
    heads = lab.heads([*(f"ml/x{number}" for number in range(40)), "ml/known"])
    gitlab.complexity = 1000
    assert heads == {"ml/known": gitlab.tip("ml/known", "refs/heads/main")}


def test_an_answer_without_data_is_an_error_that_says_why(clock: Clock, tmp_path: Path, gitlab: GitLabForge) -> None:
    from ddpfix.bot.client import Client, ForgeError

    client = Client(f"{gitlab.url}/api", lambda renew: {"Authorization": f"Bearer {TOKEN}"}, clock=clock)
    with pytest.raises(ForgeError, match="Parse error"):
        ask(client, ["nonsense"], at_once=10)


@pytest.mark.parametrize(
    ("kind", "server", "wanted"),
    [
        ("github", "", "https://api.github.com"), ("github", "https://git.example/", "https://git.example/api/v3"),
        ("gitlab", "", "https://gitlab.com/api/v4"), ("gitea", "https://git.example", "https://git.example/api/v1"),
    ],
)  # fmt: skip
def test_where_the_interface_of_a_server_lies(kind: str, server: str, wanted: str) -> None:
    assert place(kind, server).api_url == wanted
    assert place(kind, server, "https://other/api") == Place(kind, place(kind, server).server, "https://other/api")
