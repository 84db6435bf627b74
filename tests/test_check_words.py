"""What `check` counts, keeps quiet about, and refuses to call a success."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as XML

import pytest

from tests.programs import MODULE, PLAIN, ddpfix

BROKEN = b"import torch.distributed as dist\ndist.init_process_group(\n"


def ran(folder: Path, files: dict[str, bytes], *arguments: str) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of `check` in a folder of these files."""
    for name, data in files.items():
        (folder / name).write_bytes(data)
    done = ddpfix(folder, "check", *arguments, env={"DDPFIX_CACHE_DIR": str(folder / "cache")})
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_statistics_count_each_codemod(tmp_path: Path) -> None:
    two = MODULE + b'        self.log("val/more", loss)\n'
    status, out, _ = ran(tmp_path, {"a.py": two, "b.py": MODULE}, "--statistics")
    assert status == 1
    rows = [line.split() for line in out.splitlines()]
    assert rows == [["3", "DDP101", "unsynced-metric", "3", "[fix]"], ["2", "DDP103", "synced-metric-object", "2", "[fix]"]]


def test_statistics_go_with_no_other_format(tmp_path: Path) -> None:
    status, _, said = ran(tmp_path, {"a.py": MODULE}, "--statistics", "--output-format", "json")
    assert status == 2
    assert "--statistics is a text of its own" in said


@pytest.mark.parametrize("word", ["-q", "--quiet"])
def test_quiet_writes_the_findings_alone(tmp_path: Path, word: str) -> None:
    loud = ran(tmp_path, {"a.py": MODULE})
    quiet = ran(tmp_path, {}, word)
    assert quiet == (loud[0], loud[1], "")
    assert "2 findings" in loud[2]


def test_quiet_names_what_was_not_read(tmp_path: Path) -> None:
    _, _, said = ran(tmp_path, {"a.py": MODULE, "b.py": BROKEN}, "-q")
    assert said.startswith("b.py: not read: line 2")
    assert said.count("\n") == 1


def test_a_folder_of_which_nothing_can_be_read_is_no_success(tmp_path: Path) -> None:
    status, out, said = ran(tmp_path, {"b.py": BROKEN})
    assert (status, out) == (2, "")
    assert "none with a word of distributed training" not in said
    assert "Nothing could be checked in 1 Python file. 1 file could not be read." in said
    assert ran(tmp_path, {}, "--exit-zero")[0] == 0
    assert ran(tmp_path, {"b.py": PLAIN})[0] == 0


def test_junit_and_sarif_call_an_unread_file_an_error(tmp_path: Path) -> None:
    _, out, _ = ran(tmp_path, {"a.py": PLAIN, "b.py": BROKEN}, "--output-format", "junit")
    root = XML.fromstring(out)
    assert root.get("errors") == "1"
    assert [e.get("message", "")[:20] for e in root.iter("error")] == ["not read: line 2: '("]
    _, out, _ = ran(tmp_path, {}, "--output-format", "sarif")
    (run,) = json.loads(out)["runs"]
    assert run["invocations"][0]["executionSuccessful"] is False
    assert run["invocations"][0]["toolExecutionNotifications"][0]["level"] == "error"


def test_a_link_that_is_left_alone_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(MODULE)
    (tmp_path / "b.py").symlink_to("a.py")
    _, out, _ = ran(tmp_path, {}, "--output-format", "sarif", "b.py", "a.py")
    (run,) = json.loads(out)["runs"]
    assert run["invocations"][0]["executionSuccessful"] is True


def test_an_unknown_code_is_told_in_comments_and_settings(tmp_path: Path) -> None:
    source = MODULE.replace(b"prog_bar=True)", b"prog_bar=True)  # ddpfix: ignore[DDP101, DDP999, ACME999]")
    _, out, _ = ran(tmp_path, {"a.py": source})
    assert "a.py:15:52: DDP000 [reported] no codemod has the code DDP999: nothing is silenced by it\n" in out
    assert "ACME999" not in out  # a plug-in's, perhaps
    status, _, said = ran(tmp_path, {"ddpfix.toml": b'[per-file-ignores]\n"*.py" = ["DDP999"]\n'})
    assert status == 2
    assert "no codemod, name or topic is called 'DDP999'" in said
