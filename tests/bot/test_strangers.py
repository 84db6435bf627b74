"""What a stranger's repository or pull request may cost: the one job, and no more than its share."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ddpfix import git as repositories
from ddpfix.bot import child
from ddpfix.bot.child import Child, Limits
from ddpfix.bot.outcome import Outcome
from ddpfix.git import Access, GitRefusal, Most, OverLimit, bounded
from tests.bot.conftest import FIXED, MODULE, World
from tests.bot.githost import git
from tests.bot.test_review import pull_request, suggestions

SMALL = Limits(seconds=60, cpu=40, most=Most(paths=5_000, depth=50, names=1 << 20, bytes=1 << 20))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Limits:
    monkeypatch.setattr("ddpfix.bot.child.REVIEW", SMALL)
    return SMALL


def review(world: World, number: int = 1) -> Outcome:
    from ddpfix.bot.events import Job
    from ddpfix.bot.worker import do

    return do(world.bot(confined=True), Job(world.slug, number))[0]


def tree_of_a_billion_paths(repo: Path, *, levels: int = 9, wide: int = 10) -> str:
    """`levels` small objects, each naming the one below `wide` times; the last names files."""
    blob = git(repo, "hash-object", "-w", "--stdin", data=b"x = 1\n")
    row = f"100644 blob {blob}"
    for _ in range(levels):
        listed = "".join(f"{row}\tp{number}.py\n" if "blob" in row else f"{row}\tp{number}\n" for number in range(wide))
        row = "040000 tree " + git(repo, "mktree", data=listed.encode())
    return row.split()[2]


def push_tree(world: World, tree: str, branch: str = "mine") -> None:
    who = ("-c", "user.name=Eve", "-c", "user.email=eve@example.test")
    commit = git(world.git, *who, "commit-tree", tree, "-p", world.tip("main"), "-m", "a lot")
    git(world.git, "update-ref", f"refs/heads/{branch}", commit)


def test_a_run_and_a_review_in_a_child_come_to_the_same(world: World) -> None:
    assert world.safe(confined=True).action == "created"
    assert world.file("model.py") == FIXED
    git(world.git, "update-ref", "refs/heads/mine", world.tip("main"))
    world.commit({"new.py": MODULE}, branch="mine")
    number = world.forge.open_by_hand(world.slug, "mine")
    assert review(world, number).action == "reviewed"
    assert len(suggestions(world)) == 1


def test_the_settings_of_the_base_hold_not_those_of_a_fork(world: World, small: Limits) -> None:
    pull_request(world, {"model.py": MODULE, "ddpfix.toml": b'exclude = ["*"]\n', ".github/ddpfix.toml": b"enabled = false\n"})
    assert review(world).action == "reviewed"
    assert len(suggestions(world)) == 1


def test_a_billion_paths_cost_one_job(world: World, small: Limits, monkeypatch: pytest.MonkeyPatch) -> None:
    push_tree(world, tree_of_a_billion_paths(world.git))
    # the stand-in would have to compare them; GitHub gives the first 3,000 files
    monkeypatch.setattr(world.forge, "_patches", lambda *given: {})
    number = world.forge.open_by_hand(world.slug, "mine", source="eve/fork")
    began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcome = review(world, number)
    assert (outcome.action, "more than 5000 files" in outcome.why) == ("refused", True), outcome.why
    assert time.monotonic() - began < 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB
    assert world.repo.reviews == []


def test_a_tree_that_is_too_deep_is_told(world: World, small: Limits) -> None:
    push_tree(world, tree_of_a_billion_paths(world.git, levels=60, wide=1))
    number = world.forge.open_by_hand(world.slug, "mine", source="eve/fork")
    assert "folders more than 50 deep" in review(world, number).why


def test_too_many_bytes_are_told(world: World, small: Limits) -> None:
    pull_request(world, {f"m{number}.py": b"x = %d\n" % number + b"#" * 400_000 for number in range(3)})
    assert "hold more than 1 MiB" in review(world).why


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (replace(SMALL, seconds=3.0), "it takes more than 3 s"),
        (replace(SMALL, cpu=1), "it takes more than 1 s of a processor"),
    ],
    ids=["clock", "processor"],
)
def test_a_file_that_takes_for_ever_costs_one_job(
    world: World, limits: Limits, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ddpfix.bot.child.REVIEW", limits)
    pull_request(world, {"model.py": MODULE + b'        self.log("val/more", loss)\n' * 3_000})
    began = time.monotonic()
    outcome = review(world)
    assert (outcome.action, why in outcome.why) == ("refused", True), outcome
    assert time.monotonic() - began < 15
    assert not children()


def test_memory_has_an_end() -> None:
    code = (
        "from dataclasses import replace; from ddpfix.bot.child import REVIEW, _tried, confine\n"
        "class Greedy:\n    def review(self): return bytearray(1 << 30)\n"
        "confine(replace(REVIEW, memory=512 << 20))\nprint(_tried(Greedy(), 'review', (), {})[0])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout == "limit\n"


def test_a_server_that_never_answers_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        monkeypatch.setattr(bounded, "SECONDS", 1.0)
        began = time.monotonic()
        with pytest.raises(OverLimit, match="git ls-remote was ended"):
            repositories.tips(Access(f"http://127.0.0.1:{deaf.getsockname()[1]}/a/b.git"), ["main"])
        assert time.monotonic() - began < 5
    assert not children()


def test_the_child_holds_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DDPFIX_TOKEN", "GITHUB_TOKEN", "DDPFIX_APP_KEY", "DDPFIX_WEBHOOK_SECRET", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "s3cr3t-value")
    one = Child(tmp_path / "x", SMALL)
    try:
        with pytest.raises(GitRefusal):
            one.ask("look", Access(f"file://{tmp_path}/none"), "main")
        assert b"s3cr3t" not in Path(f"/proc/{one._process.pid}/environ").read_bytes()
    finally:
        one.end()


def test_an_answer_makes_nothing_but_plain_values(tmp_path: Path) -> None:
    import io
    import pickle

    from ddpfix import unpickling

    class Trap:
        def __reduce__(self) -> tuple[object, ...]:
            return os.system, (f"touch {tmp_path}/ran",)

    with pytest.raises(pickle.UnpicklingError):
        unpickling.Restricted(io.BytesIO(pickle.dumps(("answer", Trap()))), child._values()).load()
    assert not (tmp_path / "ran").exists()


def test_a_child_ends_when_the_bot_is_killed(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from ddpfix.bot.child import Child, REVIEW\n"
        f"c = Child(Path({str(tmp_path / 'x')!r}), REVIEW)\nprint(c._process.pid, flush=True)\ntime.sleep(60)"
    )
    bot = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert bot.stdout
    pid = int(bot.stdout.readline())
    bot.send_signal(signal.SIGKILL)
    bot.wait()
    bot.stdout.close()
    until = time.monotonic() + 10
    while time.monotonic() < until and Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text():
        time.sleep(0.1)
    assert not Path(f"/proc/{pid}").exists() or " Z " in Path(f"/proc/{pid}/stat").read_text()


def children() -> list[int]:
    """Processes of the bot's children and of git that are still there, started by this process."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, rest = stat.read_text().rpartition(") ")[::2]
        except OSError:
            continue
        if int(rest.split()[1]) == os.getpid() and rest[0] != "Z" and ("(git" in name or "(python" in name):
            found.append(int(name.split()[0]))
    return found


def test_a_child_that_another_thread_ends_is_no_longer_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its pipes are left to the thread that waits: one that is closed under it would leave the selector without a word."""
    one = Child(tmp_path / "x", SMALL)
    os.kill(one._process.pid, signal.SIGSTOP)
    said: list[str] = []

    def ask() -> None:
        with pytest.raises(OverLimit) as error:
            one.ask("look", Access(f"file://{tmp_path}/none"), "main")
        said.append(str(error.value))

    waiting = threading.Thread(target=ask)
    waiting.start()
    while one._asked_by is None:
        time.sleep(0.01)
    with monkeypatch.context() as late:  # the kill takes a while
        late.setattr("os.killpg", lambda pid, number: None)
        late.setattr(one._process, "wait", lambda: 0)
        one.end()
    assert one._process.stdout is not None and not one._process.stdout.closed
    one.end()
    waiting.join(timeout=20)
    assert not waiting.is_alive() and "signal 9" in said[0]
    assert one._process.stdout.closed
