"""What a user sees at the command line: output, exit status, errors."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import programs
from tests.gitrepos import make, own_settings, put, sh
from tests.programs import FIXED, MODULE, PLAIN


@pytest.fixture(autouse=True)
def _own_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own_settings(monkeypatch, tmp_path)


def ddpfix(folder: Path, *arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
    """Here each command imports all that it needs for itself."""
    return programs.ddpfix(folder, *arguments, env=env, afresh=True)


def text(data: bytes) -> str:
    return data.decode()


def test_check_says_each_finding_in_one_line_and_exits_1(tmp_path: Path) -> None:
    repo = make(tmp_path, {"src/model.py": MODULE, "other.py": PLAIN})
    done = ddpfix(repo, "check", ".", env={"COLUMNS": "30"})
    lines = text(done.stdout).splitlines()
    assert done.returncode == 1
    assert [line.split(" ", 2)[:2] for line in lines] == [["src/model.py:15:9:", "DDP101"], ["src/model.py:16:9:", "DDP103"]]
    assert text(done.stderr).strip() == "2 findings in 2 Python files: 2 fixable, 0 with --unsafe-fixes, 0 reported."


def test_check_writes_nothing(tmp_path: Path) -> None:
    repo = make(tmp_path, {"model.py": MODULE})
    before = {p: p.read_bytes() for p in repo.rglob("*") if p.is_file()}
    ddpfix(repo, "check", ".", env={"DDPFIX_CACHE_DIR": str(tmp_path / "cache")})
    assert {p: p.read_bytes() for p in repo.rglob("*") if p.is_file()} == before


def test_a_repository_without_distributed_code_is_told_so(tmp_path: Path) -> None:
    repo = make(tmp_path, {"a.py": PLAIN, "b.py": PLAIN})
    done = ddpfix(repo, "check")
    assert done.returncode == 0
    assert done.stdout == b""
    assert text(done.stderr) == "Nothing distributed here: 2 Python files seen, none with a word of distributed training.\n"


def test_paths_are_shown_from_where_the_user_stands(tmp_path: Path) -> None:
    repo = make(tmp_path, {"src/model.py": MODULE})
    done = ddpfix(repo / "src", "check", ".")
    assert text(done.stdout).startswith("model.py:15:9: DDP101")
    above = ddpfix(tmp_path, "check", "repo")
    assert text(above.stdout).startswith("repo/src/model.py:15:9: DDP101")


@pytest.mark.parametrize("columns", ["80", "50"])
def test_the_help_says_what_each_command_does_in_whole_sentences(tmp_path: Path, columns: str) -> None:
    for words in ([], ["bot"]):
        shown = text(ddpfix(tmp_path, *words, "--help", env={"COLUMNS": columns}).stdout).partition("Commands:\n")[2]
        rows = re.split(r"^  (?=\S)", shown, flags=re.M)[1:]
        assert len(rows) == (3 if words else 17)
        assert all(row.rstrip().endswith(".") and not row.rstrip().endswith("..") for row in rows), shown
        assert max(map(len, shown.splitlines())) <= int(columns)


def test_one_file_alone_is_read_with_its_project(tmp_path: Path) -> None:
    base = b"import lightning.pytorch as pl\n\n\nclass Base(pl.LightningModule):\n    pass\n"
    derived = MODULE.replace(b"import lightning.pytorch as pl\n", b"from .base import Base\n")
    derived = derived.replace(b"pl.LightningModule", b"Base")
    repo = make(tmp_path, {"pkg/__init__.py": b"", "pkg/base.py": base, "pkg/model.py": derived})
    done = ddpfix(repo, "check", "pkg/model.py")
    assert text(done.stdout).count("DDP101 [fix]") == 1


def test_json_is_the_documented_contract(tmp_path: Path) -> None:
    repo = make(tmp_path, {"src/model.py": MODULE, "broken.py": b"import lightning\nself.log(\n"})
    done = ddpfix(repo, "check", "--output-format", "json", "--with-edits", "src", "broken.py")
    report = json.loads(done.stdout)
    assert list(report) == ["version", "root", "findings", "files", "left_out", "elapsed"]
    assert report["version"] == 1
    first = report["findings"][0]
    assert list(first) == [
        "id", "path", "line", "column", "end_line", "end_column", "code", "name", "symbol", "message", "applicability",
        "evidence", "edits",
    ]  # fmt: skip
    assert (first["path"], first["line"], first["column"]) == ("src/model.py", 15, 9)
    assert (first["code"], first["name"], first["symbol"]) == ("DDP101", "unsynced-metric", "Model.validation_step")
    assert first["applicability"] == "safe"
    assert list(first["evidence"][0]) == ["kind", "strength", "text", "path", "line"]
    assert first["edits"] == [
        {
            "path": "src/model.py", "start_line": 15, "end_line": 15,
            "replacement": '        self.log("val/loss", loss, prog_bar=True, sync_dist=True)\n',
        }
    ]  # fmt: skip
    assert report["files"]["scanned"] == 2
    inside = json.loads(ddpfix(repo / "src", "check", "--output-format", "json", "--with-edits", ".").stdout)
    assert [f["edits"][0]["path"] for f in inside["findings"]] == [f["path"] for f in inside["findings"]] == ["model.py"] * 2
    assert report["files"]["failed"][0]["path"] == "broken.py"
    assert "line 2" in report["files"]["failed"][0]["error"]


def test_a_file_that_does_not_parse_is_named_and_a_check_of_nothing_else_is_no_success(tmp_path: Path) -> None:
    repo = make(tmp_path, {"broken.py": b"import lightning\nself.log(\n"})
    done = ddpfix(repo, "check")
    assert done.returncode == 2
    assert "broken.py: not read: line 2" in text(done.stderr)
    assert "1 file could not be read." in text(done.stderr)


@pytest.mark.parametrize(
    ("words", "codes"),
    [
        (["--select", "DDP101"], {"DDP101"}),
        (["--select", "DDP1"], {"DDP101", "DDP103"}),
        (["--select", "synced-metric-object"], {"DDP103"}),
        (["--select", "metrics"], {"DDP101", "DDP103"}),
        (["--select", "DDP101,DDP103"], {"DDP101", "DDP103"}),
        (["--ignore", "unsynced-metric"], {"DDP103"}),
        (["--select", "tuning"], set()),
        (["--extend-select", "tuning"], {"DDP101", "DDP103"}),
    ],
)
def test_selection_by_code_prefix_name_and_topic(tmp_path: Path, words: list[str], codes: set[str]) -> None:
    repo = make(tmp_path, {"model.py": MODULE})
    done = ddpfix(repo, "check", "--output-format", "json", *words)
    assert {f["code"] for f in json.loads(done.stdout)["findings"]} == codes


def test_an_unknown_selector_names_the_nearest_right_one(tmp_path: Path) -> None:
    repo = make(tmp_path, {"model.py": MODULE})
    done = ddpfix(repo, "check", "--select", "unsynced-metrics")
    assert (done.returncode, done.stdout) == (2, b"")
    assert "'unsynced-metrics'; did you mean unsynced-metric?" in text(done.stderr)
    assert "Traceback" not in text(done.stderr)


def test_an_unknown_setting_names_the_nearest_right_one(tmp_path: Path) -> None:
    repo = make(tmp_path, {"model.py": MODULE, "pyproject.toml": b'[tool.ddpfix]\nextend-selct = ["DDP1"]\n'})
    done = ddpfix(repo, "check")
    assert done.returncode == 2
    assert "unknown key 'extend-selct'; did you mean 'extend-select'?" in text(done.stderr)


def test_settings_of_the_project_hold_and_the_command_line_wins(tmp_path: Path) -> None:
    repo = make(tmp_path, {"model.py": MODULE, "ddpfix.toml": b'select = ["DDP103"]\n'})
    assert b"DDP101" not in ddpfix(repo, "check").stdout
    assert b"DDP101" in ddpfix(repo, "check", "--select", "DDP101").stdout


def test_per_file_ignores(tmp_path: Path) -> None:
    settings = b'[tool.ddpfix.per-file-ignores]\n"old/*" = ["DDP1"]\n'
    repo = make(tmp_path, {"old/model.py": MODULE, "new.py": MODULE, "pyproject.toml": settings})
    lines = text(ddpfix(repo, "check").stdout).splitlines()
    assert lines
    assert all(line.startswith("new.py") for line in lines)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["check", "nowhere"], "nowhere does not exist"),
        (["check", "--output-format", "xml"], "no output format is called 'xml'"),
        (["check", "--fail-on", "often"], "--fail-on takes display, unsafe, safe"),
        (["check", "--no-such-option"], "--no-such-option"),
        (["explain", "DDP999"], "'DDP999'"),
        (["frobnicate"], "frobnicate"),
    ],
)
def test_an_error_is_one_message_and_exit_2(tmp_path: Path, arguments: list[str], says: str) -> None:
    done = ddpfix(tmp_path, *arguments)
    assert done.returncode == 2
    assert says in text(done.stderr)
    assert "Traceback" not in text(done.stderr)


@pytest.mark.parametrize(("level", "status"), [("display", 1), ("unsafe", 1), ("safe", 1)])
def test_fail_on(tmp_path: Path, level: str, status: int) -> None:
    repo = make(tmp_path, {"model.py": MODULE})
    assert ddpfix(repo, "check", "--fail-on", level).returncode == status


def test_fail_on_does_not_count_what_is_only_told(tmp_path: Path) -> None:
    told = MODULE.replace(b'        self.log("val/loss"', b'        if x.sum() > 0:\n            self.log("val/loss"')
    repo = make(tmp_path, {"model.py": told})
    only = ["check", "--select", "DDP101"]
    assert b"[reported]" in ddpfix(repo, *only).stdout
    assert ddpfix(repo, *only).returncode == 0
    assert ddpfix(repo, *only, "--fail-on", "display").returncode == 1


def test_diff_is_what_git_apply_takes(tmp_path: Path) -> None:
    repo = make(tmp_path, {"src/model.py": MODULE})
    done = ddpfix(repo, "diff", ".")
    assert done.returncode == 1
    subprocess.run(["git", "apply", "-"], cwd=repo, input=done.stdout, check=True)
    assert (repo / "src/model.py").read_bytes() == FIXED
    again = ddpfix(repo, "diff", ".")
    assert (again.returncode, again.stdout) == (0, b"")


def test_apply_dry_run_is_diff(tmp_path: Path) -> None:
    repo = make(tmp_path, {"model.py": MODULE})
    dry, diff = ddpfix(repo, "apply", "--dry-run", "."), ddpfix(repo, "diff", ".")
    assert (dry.returncode, dry.stdout) == (diff.returncode, diff.stdout)
    assert sh(repo, "branch") == "* main"


def test_diff_explains_and_counts(tmp_path: Path) -> None:
    repo = make(tmp_path, {"model.py": MODULE})
    assert text(ddpfix(repo, "diff", "--stat").stdout) == "model.py | +2 -2\n"
    explained = text(ddpfix(repo, "diff", "--explain").stdout)
    assert "# DDP101 unsynced-metric (safe): 'val/loss' is logged" in explained


def test_colour_only_where_it_is_wanted(tmp_path: Path) -> None:
    repo = make(tmp_path, {"model.py": MODULE})
    assert b"\x1b[" not in ddpfix(repo, "diff").stdout
    assert b"\x1b[32m+" in ddpfix(repo, "diff", "--color", "always").stdout


def test_explain_and_rules_tell_every_codemod(tmp_path: Path) -> None:
    rules = text(ddpfix(tmp_path, "rules").stdout)
    assert "DDP101  unsynced-metric" in rules
    by_code, by_name = ddpfix(tmp_path, "explain", "DDP101"), ddpfix(tmp_path, "explain", "unsynced-metric")
    assert by_code.stdout == by_name.stdout
    for heading in ("What it does", "Why it matters", "Safety", "Refuses", "References", "How to silence it"):
        assert f"## {heading}" in text(by_code.stdout)
    every = json.loads(ddpfix(tmp_path, "rules", "--output-format", "json").stdout)
    assert {"code", "name", "topic", "summary", "opt_in", "sections"} == set(every[0])


DEAR = {"libcst", "git", "importlib.metadata", "json", "pickle", "tomllib", "difflib", "textwrap", "subprocess",
        "dataclasses", "inspect"}  # to import  # fmt: skip


def test_check_never_imports_what_it_does_not_need(tmp_path: Path) -> None:
    put(tmp_path, {"model.py": MODULE})
    program = (
        "import sys; sys.argv = ['ddpfix', 'check', '--no-cache', 'model.py']\n"
        "from ddpfix import cli\n"
        "try: cli.main()\n"
        "except SystemExit: pass\n"
        f"print(sorted({DEAR} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "DDP101" in done.stdout
    assert done.stderr.splitlines()[-1] == "[]"


def test_a_codemods_folder_of_the_repository_does_not_shadow_ours(tmp_path: Path) -> None:
    repo = make(tmp_path, {"codemods/__init__.py": b"raise SystemExit('shadowed')\n", "model.py": MODULE})
    assert b"DDP101" in ddpfix(repo, "check").stdout


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    repo = make(tmp_path, {f"m{i}.py": MODULE for i in range(40)})
    command = f"{sys.executable} -P -m ddpfix.cli check . | head -1"
    done = subprocess.run(command, shell=True, cwd=repo, capture_output=True, check=False)
    assert done.stdout.count(b"\n") == 1
    assert b"Traceback" not in done.stderr
    assert b"BrokenPipe" not in done.stderr


@pytest.mark.parametrize("encoding", ["utf-8:strict", "ascii:strict", "cp1252:strict"])
def test_what_a_terminal_cannot_write_is_escaped(tmp_path: Path, encoding: str) -> None:
    repo = make(tmp_path, {os.fsdecode(b"bad\xff.py"): MODULE, "Привет.py": MODULE})
    done = ddpfix(repo, "check", "--output-format", "json", ".", env={"PYTHONIOENCODING": encoding})
    assert done.returncode == 1
    paths = {f["path"] for f in json.loads(done.stdout.decode(encoding.partition(":")[0]))["findings"]}
    assert paths == {os.fsdecode(b"bad\xff.py"), "Привет.py"}


def cpu_seconds(pid: int) -> float:
    """What a process has computed so far: unlike the clock it says how far it is on a busy machine too."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_an_interrupt_is_told_and_ends_with_130(tmp_path: Path) -> None:
    repo = make(tmp_path, {f"m{i}.py": MODULE * 20 for i in range(300)})
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "ddpfix.cli", "check", "--no-cache", "."],
        cwd=repo,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    while cpu_seconds(child.pid) < 1.5:  # its imports take a third of that
        assert child.poll() is None, "it ended before it could be interrupted"
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=180)
    assert child.returncode == 130
    assert "interrupted; nothing is half written" in text(said)
    assert "Traceback" not in text(said)
