"""Reading logs: those of real runs on two processes under `logs/`, and forms that launchers give them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ddpfix.diagnosis import cause, log
from ddpfix.diagnosis.cause import Diagnosis

LOGS = Path(__file__).parent / "logs"


def real(name: str) -> Diagnosis:
    return cause.diagnose(log.read((LOGS / f"{name}.log").read_bytes(), f"{name}.log"))


def diagnosed(text: str) -> Diagnosis:
    return cause.diagnose(log.read(text.encode(), "train.log"))


@pytest.mark.parametrize(
    ("name", "message", "rank", "line"),
    [
        ("unused-head", "T02", 1, 17),
        ("unused-tee", "T02", 1, 18),
        ("unused-names", "T02", 0, 17),
        ("layer-drop", "T02", 0, 18),
        ("lightning-unused", "L01", 0, 40),
        ("ready-twice", "T06", 0, 11),
        ("guarded-collective", "G01", 1, 9),
        ("folder-race", "P01", 0, 5),
        ("missing-file", "P04", 1, 19),
        ("value-of-one-rank", "P09", 1, 9),
        ("dummy-experiment", "L25", 1, 8),
        ("spawned", "P02", 1, 21),
        ("duplicate-gpu", "N06", 1, 19),  # NCCL's "invalid usage" stands above it
        ("invalid-ordinal", "N10", 1, 12),
    ],
)
def test_the_cause_of_a_real_run_and_the_rank_that_fell_first(name: str, message: str, rank: int, line: int) -> None:
    found = real(name)
    assert found.cause is not None
    assert (found.cause.message.id, found.rank, found.cause.line, found.failed) == (message, rank, line, True)


def test_the_parameters_are_named_where_torch_names_them() -> None:
    assert real("unused-names").parameters == ("unused_head.bias", "unused_head.weight")
    assert real("unused-names").indices == (2, 3)
    assert real("unused-head").parameters == () and real("unused-head").indices == (2, 3)
    assert real("ready-twice").parameters == ("second.bias",)


def test_of_a_hang_the_place_of_every_rank_is_told() -> None:
    waiting = {c.rank: (c.frames[-3].line, c.frames[-3].function) for c in real("guarded-collective").waiting}
    assert waiting == {0: (10, "evaluate"), 1: (20, "<module>")}


def test_how_the_launcher_saw_the_ranks_end() -> None:
    assert {(e.rank, e.code, e.root) for e in real("unused-head").exits} == {(0, -15, False), (1, 1, True)}


def test_a_warning_alone_is_no_failure() -> None:
    found = real("needless-flag")
    assert not found.failed and found.rank is None and found.first is None
    assert found.cause is not None and found.cause.message.id == "T01" and found.cause.count == 2


def test_an_error_of_the_program_itself_is_unknown_although_another_rank_echoes_it() -> None:
    found = real("own-error")
    assert found.failed and found.cause is None
    assert found.first is not None and (found.first.rank, found.first.error) == (1, "KeyError: 1")
    assert [h.message.id for h in found.others] == ["G02"]
    assert any("KeyError: 1" in line.text for line in found.log.tail)
    assert not any("exitcode" in line.text or "ChildFailedError" in line.text for line in found.log.tail)


def test_lines_of_two_ranks_that_alternate_are_told_apart() -> None:
    found = diagnosed(
        "[rank0]: Traceback (most recent call last):\n"
        "[rank1]: Traceback (most recent call last):\n"
        '[rank0]:   File "/a/train.py", line 4, in main\n'
        '[rank1]:   File "/a/train.py", line 9, in evaluate\n'
        "[rank0]:     step()\n"
        "[rank1]:     gather()\n"
        "[rank1]: RuntimeError: [x/pair.cc:553] Connection closed by peer [127.0.0.1]:1\n"
        "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    )
    assert found.cause is not None and (found.cause.message.id, found.rank) == ("N15", 0)
    assert found.first is not None and [f.line for f in found.first.frames] == [4]


def test_an_echo_alone_says_that_the_first_failure_is_elsewhere() -> None:
    found = diagnosed("[rank1]: RuntimeError: [x/pair.cc:553] Connection closed by peer [127.0.0.1]:25821.\n")
    assert found.cause is not None and found.cause.message.id == "G02" and found.first is None


def test_a_traceback_that_the_rank_survived_is_not_its_end() -> None:
    found = diagnosed(
        "[rank0]: Traceback (most recent call last):\n"
        '[rank0]:   File "/a/loader.py", line 3, in load\n'
        "[rank0]: FileNotFoundError: [Errno 2] No such file or directory: 'cache'\n"
        "[rank0]: continuing without the cache\n"
        "[rank0]: Traceback (most recent call last):\n"
        '[rank0]:   File "/a/train.py", line 8, in main\n'
        "[rank0]: ValueError: sampler option is mutually exclusive with shuffle\n"
    )
    assert found.cause is not None and found.cause.message.id == "T33"


def test_a_chain_of_exceptions_is_one_failure() -> None:
    found = diagnosed(
        "Traceback (most recent call last):\n"
        '  File "/a/data.py", line 3, in load\n'
        "KeyError: 'x'\n"
        "\n"
        "During handling of the above exception, another exception occurred:\n"
        "\n"
        "Traceback (most recent call last):\n"
        '  File "/a/train.py", line 8, in main\n'
        "RuntimeError: no data\n"
    )
    assert found.first is not None and found.first.error == "RuntimeError: no data"
    assert [f.line for f in found.first.frames] == [3, 8]


def test_a_missing_file_on_every_rank_is_no_race() -> None:
    text = (
        '{0}Traceback (most recent call last):\n{0}  File "/a/train.py", line 3, in load\n'
        "{0}FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'\n"
    )
    assert diagnosed(text.format("[rank0]: ") + text.format("[rank1]: ")).cause is None
    assert diagnosed(text.format("")).cause is None
    one = diagnosed("[rank0]: all well\n" + text.format("[rank1]: "))
    assert one.cause is not None and one.cause.message.id == "P04"


def test_progress_bars_are_passed_over_with_what_stands_on_their_line() -> None:
    bars = "".join(f"\rEpoch 1: {n}%|###   | {n}/100 [00:01<00:02, 3.1it/s]" for n in range(30))
    found = diagnosed(f"{bars}\rRuntimeError: CUDA error: invalid device ordinal\r{bars}\nbye\n")
    assert found.cause is not None and found.cause.message.id == "N10"
    assert found.cause.text == "RuntimeError: CUDA error: invalid device ordinal"
    unknown = diagnosed(f"loading\n{bars}\nkilled by me\n")
    assert [line.text for line in unknown.log.tail] == ["loading", "killed by me"]


@pytest.mark.parametrize("data", [b"", b"\n", b"\xff\xfe\x00garbage\x80\n", b"Traceback (most recent call last):", b"\r\r\r"])
def test_what_is_no_log_is_read_without_an_error(data: bytes) -> None:
    found = cause.diagnose(log.read(data, "x"))
    assert found.cause is None and not found.failed


def test_windows_line_ends_change_nothing() -> None:
    data = (LOGS / "unused-head.log").read_bytes().replace(b"\n", b"\r\n")
    found = cause.diagnose(log.read(data, "x"))
    assert found.cause is not None and (found.cause.message.id, found.rank, found.indices) == ("T02", 1, (2, 3))


def test_ten_megabytes_cost_no_more_than_a_few_looks_at_every_line() -> None:
    line = "[default{0}]:2025-11-02 04:00:{1:02d},123 INFO epoch {1} step {2} loss 0.{2} tokens/s 123.4\n"
    body = "".join(line.format(i % 8, i % 60, i) for i in range(120_000)).encode()
    data = body + (LOGS / "unused-tee.log").read_bytes()
    assert len(data) > 9_000_000
    log.read(b"", "warm")
    started = time.process_time()
    assert len([text.partition(":") for text in data.decode().splitlines()]) > 120_000
    looking = time.process_time() - started
    started = time.process_time()
    found = cause.diagnose(log.read(data, "x"))
    assert time.process_time() - started < 10 * looking, "a search a message would be many more"
    assert found.cause is not None and found.cause.message.id == "T02"


def test_a_message_in_every_step_is_counted_and_read_a_few_times_only() -> None:
    data = (LOGS / "needless-flag.log").read_bytes() * 3000
    found = cause.diagnose(log.read(data, "x"))
    assert found.cause is not None and (found.cause.line, found.cause.count) == (1, 6000)
