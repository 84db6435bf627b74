"""`check` as a person at a terminal meets it: the line, the reason, the way elsewhere, the worst first, and `--fix`."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gitrepos import make, own_settings
from tests.programs import FIXED, MODULE, PLAIN, ddpfix

LOGS = Path(__file__).parent / "diagnosis" / "logs"
BASE = b"import lightning.pytorch as pl\n\n\nclass Base(pl.LightningModule):\n    pass\n"
CHILD = b"""\
from base import Base


class Model(Base):
    def validation_step(self, batch, i):
        self.log("val/loss", self(batch))
"""
FOLDERS = b"""\
import os
import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    print("started")
    os.makedirs("out")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
"""
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(autouse=True)
def _own_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own_settings(monkeypatch, tmp_path)
    for name in ("NO_COLOR", "CI"):
        monkeypatch.delenv(name, raising=False)


def said(folder: Path, *arguments: str) -> str:
    return ddpfix(folder, *arguments).stdout.decode()


def on_a_terminal(folder: Path, *arguments: str, **env: str) -> str:
    """What a command writes to a terminal that is its stdout."""
    above, below = pty.openpty()
    own = {"DDPFIX_CACHE_DIR": str(folder / ".git" / "no-cache"), "TERM": "xterm", "COLUMNS": "40", **env}
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "ddpfix.cli", *arguments],
        cwd=folder, stdout=below, stderr=subprocess.DEVNULL, env={**os.environ, **own},
    ) as running:  # fmt: skip
        os.close(below)
        data = b""
        try:
            while more := os.read(above, 65536):
                data += more
        except OSError:  # Linux ends a terminal that nobody holds any more so
            pass
        running.wait()
    os.close(above)
    return data.decode().replace("\r\n", "\n")


def test_a_finding_is_shown_with_its_line_its_reason_and_the_place_elsewhere(tmp_path: Path) -> None:
    repo = make(tmp_path, {"base.py": BASE, "model.py": CHILD})
    assert said(repo, "check", "--output-format", "full", "--select", "DDP101") == (
        "DDP101 [fix] 'val/loss' is logged at epoch level without being reduced over the ranks: "
        "what is shown is rank 0's own number\n"
        " --> model.py:6:9\n"
        "  |\n"
        '6 |         self.log("val/loss", self(batch))\n'
        "  |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  = lost or wrong data: An epoch-level metric is logged from each rank's own share of the data.\n"
        "  = via Model is a lightning.pytorch.LightningModule (base.py:4)\n"
        "\n"
    )


def test_a_terminal_gets_that_in_colour_and_a_pipe_a_line_for_each(tmp_path: Path) -> None:
    repo = make(tmp_path, {"base.py": BASE, "model.py": CHILD})
    full = said(repo, "check", "--output-format", "full")
    shown = on_a_terminal(repo, "check")
    assert "\x1b[1;31mDDP101\x1b[0m" in shown
    assert COLOUR.sub("", shown) == full, "no line is wrapped at the width of the terminal"
    assert on_a_terminal(repo, "check", "--color", "never") == full
    assert on_a_terminal(repo, "check", NO_COLOR="1") == full
    assert "\x1b" not in said(repo, "check") and said(repo, "check").count("\n") == 1
    assert COLOUR.sub("", said(repo, "check", "--color=always", "--output-format=full")) == full
    assert ddpfix(repo, "check", "--color", "blue").returncode == 2


def test_what_drives_a_terminal_is_shown_as_text(tmp_path: Path) -> None:
    source = CHILD.replace(b'"val/loss"', b'"val/\x1b[2Jloss"')
    repo = make(tmp_path, {"base.py": BASE, "model.py": source})
    shown = said(repo, "check", "--output-format", "full")
    assert "\x1b" not in shown and r'self.log("val/\x1b[2Jloss", self(batch))' in shown
    source_line, mark = shown.splitlines()[3:5]
    assert mark.index("^") == source_line.index("self.log") and len(mark) == len(source_line)


@pytest.mark.parametrize("form", ["text", "full"])
def test_the_worst_is_first(tmp_path: Path, form: str) -> None:
    repo = make(tmp_path, {"train.py": FOLDERS})
    shown = said(repo, "check", "--output-format", form)
    assert re.findall(r"DDP\d{3}", shown) == ["DDP204", "DDP203"]
    rows = json.loads(said(repo, "check", "--output-format", "json"))["findings"]
    assert [row["code"] for row in rows] == ["DDP203", "DDP204"], "programs get them by line"


def test_check_fix_makes_the_fixes_and_says_what_is_left(tmp_path: Path) -> None:
    repo = make(tmp_path, {"model.py": MODULE, "plain.py": PLAIN})
    done = ddpfix(repo, "check", "--fix")
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"Fixed 2 findings in 1 file of repo; `ddpfix undo` takes it back.\n" in done.stderr
    assert (repo / "model.py").read_bytes() == FIXED
    assert ddpfix(repo, "undo").returncode == 0
    assert (repo / "model.py").read_bytes() == MODULE


def test_check_fix_leaves_uncommitted_work_alone(tmp_path: Path) -> None:
    repo = make(tmp_path, {"model.py": MODULE})
    mine = MODULE + b"\n# mine\n"
    (repo / "model.py").write_bytes(mine)
    done = ddpfix(repo, "check", "--fix")
    assert done.returncode == 2 and b"uncommitted changes in files that would be fixed: model.py" in done.stderr
    assert (repo / "model.py").read_bytes() == mine


def test_check_fix_keeps_to_what_is_asked_for(tmp_path: Path) -> None:
    repo = make(tmp_path, {"model.py": MODULE})
    done = ddpfix(repo, "check", "--fix", "--select", "DDP103")
    assert done.returncode == 0 and b"sync_dist" not in (repo / "model.py").read_bytes()
    assert ddpfix(repo, "check").returncode == 1
    for other in (["--changed-since", "HEAD"], ["--baseline", "b.json"], ["--show-files"]):
        assert ddpfix(repo, "check", "--fix", *other).returncode == 2


@pytest.mark.parametrize("wrong", [["--write-baseline"], ["--fail-on", "nonsense"], ["--output-format", "nonsense"]])
def test_check_fix_writes_nothing_where_an_option_is_wrong(tmp_path: Path, wrong: list[str]) -> None:
    repo = make(tmp_path, {"model.py": MODULE})
    done = ddpfix(repo, "check", "--fix", *wrong)
    assert done.returncode == 2 and b"Fixed" not in done.stderr
    assert (repo / "model.py").read_bytes() == MODULE


def test_show_files_lists_what_would_be_read(tmp_path: Path) -> None:
    repo = make(tmp_path, {"src/a.py": PLAIN, "b.py": MODULE, "vendor/c.py": PLAIN, "notes.txt": b"x"})
    done = ddpfix(repo, "check", "--show-files", "--exclude", "b.py")
    assert (done.returncode, done.stdout) == (0, b"src/a.py\n")
    assert said(repo / "src", "check", "--show-files", "..") == "../b.py\na.py\n"


def test_a_log_is_evidence_for_check_as_for_apply(tmp_path: Path) -> None:
    from tests.diagnosis.test_command import MODEL, TRAIN

    repo = make(tmp_path, {"model.py": MODEL, "train.py": TRAIN})
    assert "[unsafe fix]" in said(repo, "check", "--select", "DDP002")
    assert "[fix]" in said(repo, "check", "--select", "DDP002", "--log", str(LOGS / "unused-names.log"))
    assert "[unsafe fix]" in said(repo, "check", "--select", "DDP002")


@pytest.mark.parametrize("word", ["-V", "--version"])
def test_the_version(tmp_path: Path, word: str) -> None:
    assert re.fullmatch(r"ddpfix \d+\.\d+\.\d+\n", said(tmp_path, word))


def test_explain_tells_a_topic(tmp_path: Path) -> None:
    shown = said(tmp_path, "explain", "data-loading")
    codes = re.findall(r"^DDP\d{3}", shown, re.M)
    assert "DDP402" in codes and all(code.startswith("DDP4") for code in codes)
    assert shown.endswith("`ddpfix explain DDP401` says all about one.\n")
    every = json.loads(said(tmp_path, "explain", "data-loading", "--output-format", "json"))
    assert [row["code"] for row in every] == codes


def test_rules_lists_the_plug_ins_of_a_project_that_may_run(tmp_path: Path) -> None:
    repo = make(tmp_path, {"ddpfix.toml": b'plugins = ["own.py"]\nselect = ["DDP101"]\n', "own.py": PLUG_IN})
    asked = ddpfix(repo, "rules")
    assert b"ACME001" not in asked.stdout and b"DDP204" in asked.stdout
    assert b"own.py: a plug-in that the repository names itself" in asked.stderr
    assert re.search(r"^ACME001 +own +Finds .* \(plug-in\)$", said(repo, "rules", "--allow-plugins"), re.M)


PLUG_IN = b'''\
"""A rule of our own."""
from codemods.api.codemod import DdpCodemod


class OwnRule(DdpCodemod):
    """Finds what we never write."""

    code = "ACME001"
    TRIGGERS = ((b"never",),)

    def find(self, module, project):
        return ()
'''
