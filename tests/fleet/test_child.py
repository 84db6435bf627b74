"""What strangers wrote is looked at in the child that the bot uses, with a campaign's limits: each costs its own repository."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import pytest

from ddpfix.bot import child
from ddpfix.fleet.work import Job, work_on
from tests.bot.test_costly_files import FILES as COSTLY
from tests.fleet.conftest import MODULE, Fleet
from tests.fleet.test_run import LOGGED

LINES = 3_000
FILES = {
    **{kind: data.decode() for kind, data in COSTLY.items()},
    "3,000 fixes": LOGGED + "".join(f"        self.log('val/{n}', self(batch))\n" for n in range(LINES)),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_file_that_took_long_costs_one_repository(fleet: Fleet, kind: str) -> None:
    fleet.add("costly", {"model.py": FILES[kind], "train.py": MODULE, "requirements.txt": "lightning==2.5.0\n"})
    began = time.monotonic()
    result = work_on(Job((fleet.folder / "costly").as_uri(), seconds=120).plain())
    assert result["cause"] == ""
    assert {row[2] for row in result["findings"]} >= {"train.py"}
    assert len([row for row in result["findings"] if row[2] == "model.py"]) == (LINES + 1 if kind == "3,000 fixes" else 0)
    assert time.monotonic() - began < 60, "4 s where nobody else works, and 12 s and over 100 s once"


def test_it_is_the_child_of_the_bot_with_the_limits_of_the_campaign(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[child.Limits] = []
    begun = child.started

    def started(limits: child.Limits, clone: Path | None = None) -> AbstractContextManager[child.Worker]:
        given.append(limits)
        return begun(limits, clone)

    monkeypatch.setattr(child, "started", started)
    repo = fleet.add("one", {"train.py": MODULE})
    assert work_on(Job(repo.as_uri(), seconds=33, memory=777).plain())["cause"] == ""
    (limits,) = given
    assert (limits.cpu, limits.memory, limits.most) == (33, 777 * child.MIB, child.MOST) and 30 < limits.seconds <= 33


@contextmanager
def server(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """The address of a git server that answers every connection so."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    threading.Thread(target=answered, args=(listening.accept()[0],), daemon=True).start()

        def answered(connection: socket.socket) -> None:
            with suppress(OSError), connection:
                answer(connection)

        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/a/b.git"
        finally:
            # close() alone leaves the thread in accept(), and the number of the socket is given again: it answered the git of
            # other tests with references without end, until the machine had no memory left
            listening.shutdown(socket.SHUT_RDWR)
            serving.join()


def silent(connection: socket.socket) -> None:
    time.sleep(60)


def endless(connection: socket.socket) -> None:
    """References without end."""
    connection.recv(65536)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\n\r\n"
    connection.sendall(head + b"001e# service=git-upload-pack\n0000")
    number = 0
    while True:
        rows = (b"%040x refs/x%d/HEAD\n" % (n + 1, n) for n in range(number, number + 10_000))
        connection.sendall(b"".join(b"%04x" % (len(row) + 4) + row for row in rows))
        number += 10_000


def test_a_server_that_never_answers_costs_no_more_than_its_repository_may(fleet: Fleet) -> None:
    with server(silent) as url:
        began = time.monotonic()
        result = work_on(Job(url, seconds=2).plain())
        assert result["cause"] == "timeout" and time.monotonic() - began < 10


def test_a_server_that_names_references_without_end_takes_no_more_memory_than_its_repository_may(fleet: Fleet) -> None:
    with server(endless) as url:
        began = time.monotonic()
        result = work_on(Job(url, seconds=60, memory=512).plain())
        assert result["cause"] == "git", result
        assert time.monotonic() - began < 40, "it is left when its memory is used up, not when its time is"
