"""Processes as ranks: their environment, their output, their bounds, and that nothing of them is left. No torch needed."""

from __future__ import annotations

import json
import time
from pathlib import Path

from ddpfix.prove.ranks import strays
from ddpfix.prove.seen import look
from tests.prove.programs import run


def test_each_rank_has_what_torchrun_sets_and_no_gpu(tmp_path: Path) -> None:
    source = "import json, os; print(json.dumps(dict(os.environ)))"
    ended = run(tmp_path, source, world_size=3)
    seen = [json.loads(r.stdout) for r in ended.ranks]
    assert ended.outcome == "completes"
    assert [(e["RANK"], e["LOCAL_RANK"], e["WORLD_SIZE"], e["LOCAL_WORLD_SIZE"]) for e in seen] == [
        (str(i), str(i), "3", "3") for i in range(3)
    ]
    assert len({(e["MASTER_ADDR"], e["MASTER_PORT"]) for e in seen}) == 1
    assert {e["CUDA_VISIBLE_DEVICES"] for e in seen} == {""}
    assert not [name for e in seen for name in e if name.startswith("DDPFIX_TRACE") or name == "PYTHONPATH"]


def test_alone_there_is_no_launcher(tmp_path: Path) -> None:
    ended = run(tmp_path, "import os; print(sorted(k for k in os.environ if 'RANK' in k or 'WORLD' in k))", world_size=0)
    assert [r.stdout for r in ended.ranks] == ["[]\n"]


def test_a_crash_keeps_its_own_status_and_text(tmp_path: Path) -> None:
    source = (
        "import os, sys\nif os.environ['RANK'] == '1':\n    sys.stderr.write('no data here\\n')\n    sys.exit(3)\n"
        "print('fine')\n"
    )
    ended = run(tmp_path, source)
    assert ended.outcome == "error"
    assert [r.status for r in ended.ranks] == [0, 3]
    assert ended.ranks[1].stderr == "no data here\n"
    assert sorted(ended.marked().splitlines()) == ["[rank 0] fine", "[rank 1] no data here"]


def test_a_run_that_takes_too_long_is_ended_with_all_it_started(tmp_path: Path) -> None:
    source = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    begun = time.monotonic()
    ended = run(tmp_path, source, timeout=5)
    assert ended.outcome == "timeout"
    assert time.monotonic() - begun < 120
    assert [r.status for r in ended.ranks] == [None, None]
    assert [str(r.stood_at) for r in ended.ranks] == ["train.py:4", "train.py:4"]
    for rank in ended.ranks:
        assert _gone(int(rank.stdout)), "a process that left the group is still there"


def _gone(pid: int) -> bool:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        stat = Path(f"/proc/{pid}/stat")
        if not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.05)
    return False


def test_strays_are_those_of_the_run_alone() -> None:
    assert strays("no such run") == []


def test_memory_is_bounded(tmp_path: Path) -> None:
    source = "import time\nheld = []\nwhile True:\n    held.append(bytearray(8_000_000))\n    time.sleep(0.01)\n"
    ended = run(tmp_path, source, memory_limit=300_000_000)
    assert ended.outcome == "memory"


def test_much_output_is_cut_and_does_not_block(tmp_path: Path) -> None:
    ended = run(tmp_path, "import sys\nfor _ in range(120):\n    sys.stdout.write('x' * 99_999 + '\\n')\n", world_size=0)
    assert ended.outcome == "completes"
    assert "more bytes are not kept" in ended.ranks[0].stdout
    assert len(ended.ranks[0].stdout) < 5_000_000


def test_a_users_own_sitecustomize_still_runs_and_children_are_not_traced(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import sys\nsys.mine = 'seen'\n")
    source = (
        "import os, subprocess, sys\n"
        "print(sys.mine, os.environ['PYTHONPATH'], '_ddpfix_tracer' in sys.modules)\n"
        "words = 'import sys; print(sys.mine, \"_ddpfix_tracer\" in sys.modules)'\n"
        "subprocess.run([sys.executable, '-c', words], check=True)\n"
        "print(any('ddpfix' in p for p in sys.path), sys.modules['sitecustomize'].__file__)\n"
    )
    ended = run(tmp_path / "program", source, world_size=0, env={"PYTHONPATH": str(own)})
    assert ended.ranks[0].stdout.splitlines() == [
        f"seen {own} True", "seen False", f"False {own / 'sitecustomize.py'}",
    ]  # fmt: skip


def test_the_tracer_changes_nothing_in_a_program_without_torch(tmp_path: Path) -> None:
    source = "import sys\nprint([m for m in sys.modules if m == 'torch'])\nraise SystemExit(7)\n"
    ended = run(tmp_path, source, world_size=0)
    assert ended.ranks[0].stdout == "[]\n"
    assert ended.ranks[0].status == 7
    assert ended.traces[0].started
    assert ended.traces[0].calls == ()


def test_a_failure_is_known_whatever_the_program_prints_of_it(tmp_path: Path) -> None:
    source = (
        "import json, sys\nsys.excepthook = lambda kind, error, trace: print('| it failed |', file=sys.stderr)\n\n"
        "def load(text):\n    return json.loads(text)\n\nload('{')\n"
    )
    ended = run(tmp_path, source, world_size=1)
    seen = look(ended, tmp_path)
    assert seen.stood == ("rank 0 failed at train.py:5 `return json.loads(text)`",)
    assert seen.error.startswith("json.decoder.JSONDecodeError: Expecting property name")
    assert ended.ranks[0].stderr == "| it failed |\n"


def test_a_program_that_ends_itself_has_no_failure_to_tell(tmp_path: Path) -> None:
    ended = run(tmp_path, "try:\n    1 / 0\nexcept ZeroDivisionError:\n    raise SystemExit(4)\n", world_size=1)
    assert (ended.ranks[0].status, ended.traces[0].failed) == (4, None)
