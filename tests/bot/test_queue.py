"""Nothing that was accepted is lost: the queue, its order, and the service as a process that is stopped and killed."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ddpfix.bot.budget import Budget
from ddpfix.bot.client import Stopped, SystemClock
from ddpfix.bot.events import Job, jobs
from ddpfix.bot.forge import Comment
from ddpfix.bot.login import NoLogin
from ddpfix.bot.outcome import Outcome
from ddpfix.bot.queue import Queue
from ddpfix.bot.state import Database, State, kept
from ddpfix.bot.worker import AGAIN, MOST, Worker
from tests.bot.conftest import FILES, TOKEN, World
from tests.bot.github_forge import Clock
from tests.bot.service import Service, comment, push
from tests.bot.shell import Shell

COMMAND = Comment(7, "/ddpfix rerun", "ada")


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    database = Database(tmp_path / "bot.sqlite")
    yield Queue(database)
    database.close()


def order(queue: Queue) -> list[str]:
    """The jobs as they are taken, each done before the next."""
    out = []
    while taken := queue.take(0):
        out.append(taken.job.slug if not taken.job.comment else f"{taken.job.slug}!{taken.job.comment.id}")
        queue.done(taken)
    return out


def test_a_delivery_is_accepted_once_whatever_happens_in_between(tmp_path: Path) -> None:
    first = Database(tmp_path / "bot.sqlite")
    assert Queue(first).accept("d1", [Job("acme/one"), Job("acme/two", 3, COMMAND)])
    # no close: as after kill -9
    again = Queue(Database(tmp_path / "bot.sqlite"))
    assert not again.accept("d1", [Job("acme/one")])
    assert again.take_up() == 2
    taken = again.take(0)
    assert taken is not None
    assert taken.job == Job("acme/two", 3, COMMAND)


def test_what_was_in_hand_waits_again(queue: Queue, tmp_path: Path) -> None:
    queue.accept("d1", [Job("acme/one"), Job("acme/two")])
    first = queue.take(0)
    assert first is not None
    queue.accept("d2", [first.job])  # something changed meanwhile
    assert Queue(Database(tmp_path / "bot.sqlite")).take_up() == 2
    assert sorted(order(queue)) == ["acme/one", "acme/two"]


def test_a_job_waits_once_and_once_more_while_it_is_in_hand(queue: Queue) -> None:
    for delivery in ("d1", "d2", "d3"):
        assert queue.accept(delivery, [Job("acme/one")])
    taken = queue.take(0)
    assert taken is not None
    assert queue.waiting() == 0
    queue.accept("d4", [Job("acme/one")])
    queue.done(taken)
    assert queue.waiting() == 1


def test_owners_take_turns_and_people_go_first() -> None:
    queue = Queue(Database(None))
    queue.accept("big", [Job(f"big/r{n}") for n in range(300)])
    queue.accept("small", [Job("small/a"), Job("small/b"), Job("other/c")])
    stranger = Comment(8, "/ddpfix rerun", "eve", belongs=False)
    queue.accept("said", [Job("big/r9", 1, stranger), Job("big/r9", 1, COMMAND)])
    done = order(queue)
    assert done[0] == "big/r9!7"
    assert {slug.partition("/")[0] for slug in done[1:4]} == {"big", "small", "other"}
    assert done.index("small/b") < 8
    assert done[-1] == "big/r9!8"  # who may turn out to be a stranger delays nobody
    assert len(done) == 305


def test_an_installation_of_any_size_is_taken() -> None:
    payload = {"action": "created", "repositories": [{"full_name": f"big/r{n}"} for n in range(5_000)]}
    queue = Queue(Database(None))
    begun = time.process_time()
    assert queue.accept("d", jobs("installation", payload, "ddpfix"))
    assert queue.waiting() == 5_000
    for _ in range(50):
        taken = queue.take(0)
        assert taken is not None
        queue.done(taken)
    assert time.process_time() - begun < 5


def test_a_full_disk_accepts_nothing_and_says_so(queue: Queue) -> None:
    many = [Job(f"acme/r{n}") for n in range(2000)]
    with queue._database.transaction() as tables:
        tables.execute("PRAGMA max_page_count = 20")
    with pytest.raises(sqlite3.OperationalError, match="disk is full"):
        queue.accept("d1", many)
    assert queue.waiting() == 0
    with queue._database.transaction() as tables:
        tables.execute("PRAGMA max_page_count = 100000")
    assert queue.accept("d1", many)  # the forge's owner sends it again
    assert queue.waiting() == 2000


def test_work_that_failed_is_tried_again_later_and_not_for_ever(queue: Queue) -> None:
    clock, told = Clock(), list[Outcome]()
    worker = Worker(lambda job: [Outcome(job.slug, "", "failed", "502")], told.append, queue, clock=clock)
    worker.start()
    worker.accept("d1", [Job("acme/one")])
    for seconds in (0.0, *AGAIN):
        clock.time += seconds
        worker.accept("", [])  # somebody looks
        assert worker.wait_until_idle(30)
        worker.accept("", [])
        time.sleep(0.05)
    assert worker.wait_until_idle(30)
    worker.stop()
    assert len(told) == 1 + len(AGAIN)
    assert queue.waiting() == 0


def test_a_job_that_ends_the_service_each_time_is_given_up(queue: Queue) -> None:
    queue.accept("d1", [Job("acme/one")])
    for _ in range(MOST):
        assert queue.take(0)
        queue.take_up()
    told: list[Outcome] = []

    def work(job: Job) -> list[Outcome]:
        raise AssertionError

    worker = Worker(work, told.append, queue)
    worker.start()
    assert worker.wait_until_idle(30)
    worker.stop()
    assert "given up" in told[0].why


def test_a_stop_ends_a_wait_at_once_and_the_job_waits_for_the_next_start(queue: Queue) -> None:
    clock, begun = SystemClock(), threading.Event()

    def work(job: Job) -> list[Outcome]:
        begun.set()
        clock.sleep(900)
        raise AssertionError

    worker = Worker(work, lambda outcome: None, queue, clock=clock, stop=clock.stop)
    worker.start()
    worker.accept("d1", [Job("acme/one"), Job("acme/two")])
    assert begun.wait(30)
    at = time.monotonic()
    assert worker.stop() == 2
    assert time.monotonic() - at < 2
    taken = queue.take(0)
    assert taken is not None
    assert taken.attempts == 1  # the one that was stopped does not count
    with pytest.raises(Stopped):
        clock.sleep(0.001)


def test_only_one_service_works_off_a_queue(tmp_path: Path) -> None:
    state = State(tmp_path, b"k" * 16)
    with state.alone(), pytest.raises(NoLogin, match="another `ddpfix bot serve`"), state.alone():
        pass
    with state.alone():
        pass


def test_the_key_is_made_once_and_only_its_owner_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DDPFIX_MARKS_KEY")
    keys = {kept(tmp_path / "state").key for _ in range(3)}
    assert len(keys) == 1
    assert (tmp_path / "state" / "marks.key").stat().st_mode & 0o077 == 0
    assert [p.name for p in (tmp_path / "state").iterdir()] == ["marks.key"]
    monkeypatch.setenv("DDPFIX_MARKS_KEY", "short")
    with pytest.raises(NoLogin, match="fewer than 16"):
        kept(tmp_path / "state")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DDPFIX_MARKS_KEY", "k" * 16)
    with pytest.raises(NoLogin, match="--state"):
        kept(tmp_path / "file")


def test_the_hours_pull_requests_are_counted_over_processes(tmp_path: Path) -> None:
    clock = Clock()
    one, two = (Budget(2, clock, Database(tmp_path / "bot.sqlite")) for _ in range(2))
    place = one.take()
    assert place is not None
    assert two.take() is not None
    assert one.take() is None
    assert two.take() is None
    two.give_back(place)
    assert one.take() is not None
    clock.time += 3601
    assert two.take() is not None


def test_two_processes_at_once_take_no_more_places_than_there_are(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from ddpfix.bot.budget import Budget; from ddpfix.bot.client import SystemClock\n"
        "from ddpfix.bot.state import Database; budget = Budget(20, SystemClock(), Database(Path(sys.argv[1])))\n"
        "print(flush=True); sys.stdin.readline(); print(sum(budget.take() is not None for _ in range(30)))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "bot.sqlite")]
    both = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for process in both:
        assert process.stdout
        process.stdout.readline()  # it is ready
    for process in both:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
    assert sum(int(process.communicate(timeout=60)[0]) for process in both) == 20


def test_the_hours_pull_requests_are_counted_over_runs_of_the_command(world: World, shell: Shell) -> None:
    world.forge.add(f"{world.slug}-2", FILES)
    own = ("--per-hour", "1", "--topics", "safe", "--api-url", world.forge.api)
    first = shell.ddpfix("bot", "run", world.slug, *own, DDPFIX_TOKEN=TOKEN)
    assert "created" in first.out
    second = shell.ddpfix("bot", "run", f"{world.slug}-2", *own, DDPFIX_TOKEN=TOKEN)
    assert "deferred" in second.out
    assert (Path(os.environ["DDPFIX_STATE"]) / "bot.sqlite").stat().st_mode & 0o077 == 0


def test_many_processes_may_begin_with_a_new_folder_at_once(tmp_path: Path) -> None:
    found: list[Database] = []
    threads = [threading.Thread(target=lambda: found.append(Database(tmp_path / "bot.sqlite"))) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 12


# The service as a process


def test_sigterm_leaves_what_was_accepted_for_the_next_start(tmp_path: Path) -> None:
    service = Service(tmp_path, "log", str(tmp_path / "done"), DDPFIX_STATE=str(tmp_path / "state"))
    try:
        for number in range(100):
            assert service.deliver("push", f"d{number}", push(f"acme/r{number}")) == 202
        at = time.monotonic()
        assert service.end() == 0
        assert time.monotonic() - at < 20
        first = (tmp_path / "done").read_text().splitlines()
        service.again()
        # a replay does nothing, before or after a restart
        assert service.deliver("push", "d5", push("acme/r5")) == 200
        wait_for(tmp_path / "done", 100)
    finally:
        service.kill()
    assert len(set((tmp_path / "done").read_text().splitlines())) == 100, first


def test_kill_9_under_deliveries_loses_none(tmp_path: Path) -> None:
    kill_under_deliveries(tmp_path, deliveries=150, kills=3)


def kill_under_deliveries(folder: Path, *, deliveries: int, kills: int) -> tuple[int, int]:
    """Deliver to a service that is killed so often; (how often jobs were done, how many were to be done)."""
    service = Service(folder, "log", str(folder / "done"), DDPFIX_STATE=str(folder / "state"))
    stop, lock = threading.Event(), threading.Lock()

    def kill() -> None:
        for _ in range(kills):
            sent_now = len(accepted)
            while len(accepted) < sent_now + deliveries // (kills + 1) and not stop.is_set():
                time.sleep(0.002)
            with lock:
                service.kill()
                service.again()

    accepted: set[int] = set()
    killer = threading.Thread(target=kill)
    killer.start()
    try:
        for number in range(deliveries):
            what = comment("acme/one", 1, number + 1, "/ddpfix rerun") if number % 5 == 0 else push(f"own{number % 7}/r{number}")
            event = "issue_comment" if number % 5 == 0 else "push"
            # who gets no answer sends it again, as the forge's page does
            while service.deliver(event, f"d{number}", what) not in (200, 202):
                with lock:
                    pass
            accepted.add(number)
        stop.set()
        killer.join(120)
        wait_for(folder / "done", deliveries)
    finally:
        stop.set()
        killer.join(120)
        service.kill()
    assert service.starts == kills + 1
    done = (folder / "done").read_text().splitlines()
    assert len(set(done)) == deliveries
    return len(done), deliveries


def wait_for(log: Path, count: int) -> None:
    """Until so many different jobs were done."""
    until = time.monotonic() + 120
    while time.monotonic() < until and (not log.exists() or len(set(log.read_text().splitlines())) < count):
        time.sleep(0.02)
