"""Logging in, as an App or with a token; and no secret anywhere it could be seen."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from ddpfix.bot.client import ForgeError, Pace
from ddpfix.bot.connect import Given, connect
from ddpfix.bot.events import Job
from ddpfix.bot.github import GitHub
from ddpfix.bot.login import PERMISSIONS, READING, AppLogin, FixedToken, NoLogin, hidden
from ddpfix.bot.repositories import Bot, BotOptions
from ddpfix.bot.worker import do
from ddpfix.git import Access, Clone, Pushed
from tests.bot.conftest import MODULE, STATE, TOKEN, World
from tests.bot.githost import git
from tests.bot.github_forge import Clock, Fault, GitHubForge
from tests.bot.shell import Shell


@pytest.fixture(scope="session")
def app_key(forge: GitHubForge) -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    forge.app_key = key.public_key()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def app_bot(world: World, key: str) -> Bot:
    login = AppLogin("4242", key, api_url=world.forge.api, clock=world.clock, pace=Pace(gap=0.0))
    forge = GitHub(login, clock=world.clock, api_url=world.forge.api, pace=Pace(gap=0.0))
    return Bot(forge, BotOptions(topics=("safe",), confined=False), world.clock, STATE)


def made_tokens(world: World) -> list[str]:
    return [t for t, account in world.forge.accounts.items() if world.slug in account.slugs]


def test_an_app_works_with_a_token_for_one_repository_and_the_least_permissions(world: World, app_key: str) -> None:
    begun = len(world.forge.asked)
    bot = app_bot(world, app_key)
    assert bot.repository(world.slug)[0].action == "created"
    asked = [body for _, path, body in world.forge.asked[begun:] if path.endswith("/access_tokens")]
    # the second is for what reads the repository's files
    name = world.slug.partition("/")[2]
    assert asked == [{"repositories": [name], "permissions": dict(given)} for given in (PERMISSIONS, READING)]
    assert "administration" not in PERMISSIONS
    assert world.pull()["author"] == "mender[bot]"
    assert bot.forge.identity() == ("mender[bot]", "4711+mender[bot]@users.noreply.127.0.0.1")
    assert [(o.action, o.why) for o in bot.repository(world.slug)] == [("unchanged", "")]
    assert len(made_tokens(world)) == 2  # good for an hour


def test_a_review_holds_no_token_that_can_write_contents(world: World, app_key: str) -> None:
    world.commit({"other.py": b"x = 1\n"}, branch="main")
    git(world.git, "update-ref", "refs/heads/mine", world.tip("main"))
    world.commit({"new.py": MODULE}, branch="mine")
    number = world.forge.open_by_hand(world.slug, "mine", source="eve/fork")
    begun = len(world.forge.asked)
    (outcome,) = do(app_bot(world, app_key), Job(world.slug, number))
    assert outcome.action == "reviewed", outcome
    asked = [body for _, path, body in world.forge.asked[begun:] if path.endswith("/access_tokens")]
    assert [body["permissions"] for body in asked] == [{"contents": "read", "pull_requests": "write", "metadata": "read"}]


def test_a_token_that_ends_in_mid_run_is_renewed(world: World, app_key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    push = Clone.push

    def late(clone: Clone, branch: str, commit: str, tip: str | None, *, force: bool = True) -> Pushed:
        world.clock.time += 4000  # an hour goes by between reading and pushing
        return push(clone, branch, commit, tip, force=force)

    monkeypatch.setattr(Clone, "push", late)
    assert app_bot(world, app_key).repository(world.slug)[0].action == "created"
    assert len(made_tokens(world)) == 3


def test_a_token_that_the_forge_takes_back_is_renewed(world: World, app_key: str) -> None:
    bot = app_bot(world, app_key)
    bot.repository(world.slug)
    for token in made_tokens(world):
        del world.forge.accounts[token]
    assert bot.forge.pull(world.slug, 1).state == "open"
    assert len(made_tokens(world)) == 1


@pytest.mark.parametrize("status", [404, 422])
def test_an_app_that_was_installed_anew_is_found_under_its_new_number(world: World, app_key: str, status: int) -> None:
    bot = app_bot(world, app_key)
    assert bot.repository(world.slug)[0].action == "created"
    world.forge.installation += 1
    for token in made_tokens(world):  # GitHub ends them with the old installation
        del world.forge.accounts[token]
    if status == 422:
        world.forge.faults.append(Fault("POST", r"/access_tokens$", 422))
    assert [(o.action, o.why) for o in bot.repository(world.slug)] == [("unchanged", "")]


def test_an_app_follows_a_repository_that_was_renamed(world: World, app_key: str) -> None:
    begun = len(world.forge.asked)
    world.forge.moved["acme/of-an-old-name"] = f"{world.forge.api}/repos/{world.slug}"
    bot = app_bot(world, app_key)
    (outcome,) = bot.repository("acme/of-an-old-name")
    assert (outcome.slug, outcome.action) == (world.slug, "created")
    assert bot.repository("acme/of-an-old-name")[0].action == "unchanged"
    given = [body["permissions"] for _, path, body in world.forge.asked[begun:] if path.endswith("/access_tokens")]
    wider = [p for p in given if not p.items() <= PERMISSIONS.items() and p != READING]
    assert not wider and {"metadata": "read"} in given


def test_a_repository_that_the_app_never_had_is_told(world: World, app_key: str) -> None:
    outcome = app_bot(world, app_key).repository("acme/nowhere")[0]
    assert outcome.action == "failed"
    assert "404" in outcome.why


def test_a_wrong_token_is_told_once_and_not_tried_for_ever(world: World) -> None:
    outcome = world.safe(token="ghp_wrong")
    assert outcome.action == "failed"
    assert "401" in outcome.why
    assert world.clock.slept == []


def test_a_key_that_is_none_is_named(world: World) -> None:
    outcome = app_bot(world, "not a key").repository(world.slug)[0]
    assert outcome.action == "failed"
    assert "no RSA key" in outcome.why


def test_the_claim_of_an_app_ends_within_ten_minutes(clock: Clock, app_key: str) -> None:
    login = AppLogin("4242", app_key, api_url="http://127.0.0.1:9", clock=clock)
    claim = login._as_app(False)["Authorization"].removeprefix("Bearer ")
    said = jwt.decode(claim, options={"verify_signature": False})
    assert said == {"iat": int(clock.now()) - 60, "exp": int(clock.now()) + 540, "iss": "4242"}


def test_no_secret_is_in_an_argument_a_file_or_an_outcome(world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every command line that the run starts, and every file of its clone while it pushes, is looked through."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    commands: list[str] = []
    files: list[bytes] = []
    start, push = subprocess.Popen.__init__, Clone.push

    def watched(self: object, args: object, *rest: object, **named: object) -> None:
        if threading.current_thread() is threading.main_thread():  # the forge's own threads are not the bot
            commands.append(repr(args))
        start(self, args, *rest, **named)  # type: ignore[call-overload]

    def looked(clone: Clone, branch: str, commit: str, tip: str | None, *, force: bool = True) -> Pushed:
        done = push(clone, branch, commit, tip, force=force)
        files.extend(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file() and "objects" not in p.parts)
        return done

    monkeypatch.setattr(subprocess.Popen, "__init__", watched)
    monkeypatch.setattr(Clone, "push", looked)
    bot = world.bot(topics=("safe",))
    assert bot.repository(world.slug)[0].action == "created"
    secrets = [TOKEN, *bot.forge.secrets()]
    assert any("push" in command for command in commands)
    assert any(b"[remote" in data for data in files)
    for secret in secrets:
        assert not [c for c in commands if secret in c]
        assert not [f for f in files if secret.encode() in f]
        assert secret not in world.pull()["body"]


def test_what_is_shown_of_a_login_is_not_its_secret() -> None:
    assert TOKEN not in repr(FixedToken(TOKEN))
    assert "Basic" not in repr(Access("https://example.test/a.git", "Authorization: Basic abc"))
    assert hidden(f"fatal: {TOKEN}!", FixedToken(TOKEN).secrets()) == "fatal: ***!"


def test_a_token_does_not_travel_unencrypted(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DDPFIX_TOKEN", TOKEN)
    for url in ("http://forge.example.test/api/v3", "ftp://127.0.0.1/", "forge.example.test"):
        with pytest.raises(NoLogin, match="unencrypted"):
            connect(Given(api_url=url), clock)
    assert connect(Given(api_url="https://forge.example.test/api/v3"), clock).name == "GitHub"


def test_a_password_in_the_address_is_refused_and_not_repeated(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DDPFIX_TOKEN", TOKEN)
    with pytest.raises(NoLogin) as refused:
        connect(Given(api_url="https://me:hunter2@forge.example/api/v3"), clock)
    assert "hunter2" not in str(refused.value)


def test_a_token_is_not_carried_to_another_host(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world.forge, "page_size", 1)
    world.safe()
    for n in range(2):
        world.forge.say(world.slug, 1, "ada", str(n))
    bot = world.bot()
    monkeypatch.setattr(world.forge, "url", "http://127.0.0.1:1")  # what its Link headers say
    with pytest.raises(ForgeError, match="another host"):
        bot.forge.comments(world.slug, 1)


# From the command line


def test_the_command_line_runs_and_reviews(world: World, shell: Shell) -> None:
    own = ("--api-url", world.forge.api)
    done = shell.ddpfix("bot", "run", world.slug, "--topics", "safe", *own, DDPFIX_TOKEN=TOKEN)
    assert (done.status, done.out) == (0, f"{world.slug} safe: created {world.pull_url(1)}\n")
    done = shell.ddpfix("bot", "review", f"{world.slug}#1", *own)
    assert done.out == f"{world.slug}: skipped {world.pull_url(1)} (it is one of its own)\n"
    done = shell.ddpfix("bot", "run", "acme/missing", *own)
    assert done.status == 2
    assert "404" in done.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "acme/x"), "there is no token"),
        (("run", "acme"), "is no repository"),
        (("run", "../x"), "is no repository"),
        (("run", "acme/x", "--app-id", "3"), "the App has no key"),
        (("run", "acme/x", "--token-file", "missing"), "cannot be read"),
        (("run", "acme/x", "--forge", "sourcehut"), "there is no forge"),
        (("review", "acme/x"), "names no pull request"),
        (("serve",), "there is no webhook secret"),
    ],
)
def test_what_is_missing_is_said_in_a_line(shell: Shell, arguments: tuple[str, ...], words: str) -> None:
    done = shell.ddpfix("bot", *arguments)
    assert (done.status, done.out) == (2, "")
    assert words in done.err
    assert len(done.err.splitlines()) == 1


def test_nobody_but_the_bot_imports_what_the_bot_needs() -> None:
    program = (
        "import sys; import ddpfix.cli; "
        "assert not {'httpx2', 'jwt', 'starlette', 'uvicorn', 'ddpfix.bot.client'} & set(sys.modules), sys.modules"
    )
    subprocess.run([sys.executable, "-P", "-c", program], check=True)
