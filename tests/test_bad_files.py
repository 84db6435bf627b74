"""One bad file is one bad file: the rest of a run goes on, and no name or text of a repository is anything but text."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from codemods.analysis.requirement_files import read_pins
from codemods.api.findings import Finding, Span
from ddpfix import discovery, engine, settings
from ddpfix.bot import preferences
from ddpfix.catalog import all_codemods
from ddpfix.escaping import harmless
from ddpfix.outputs import formats, text
from ddpfix.outputs.answer import Answer, Checked
from ddpfix.results import Failure, Report
from ddpfix.settings import SettingsError
from tests.gitrepos import make, own_settings, sh
from tests.programs import ddpfix
from tests.test_codemod_docs import BLOCK
from tests.test_examples import EXAMPLES

MODEL = (
    b"import lightning.pytorch as pl\n\n\nclass M(pl.LightningModule):\n    def validation_step(self, batch, i):\n"
    b'        self.log("val/loss", self(batch))\n'
)
BAD = {
    "a number of 5,000 digits": b"[tool.other]\nn = " + b"9" * 5000 + b"\n",
    "arrays 5,000 deep": b"[tool.other]\nn = " + b"[" * 5000 + b"]" * 5000 + b"\n",
    "no UTF-8": b'[tool.other]\nn = "\xff"\n',
    "no end": b'[tool.other]\nn = """a',
}


@pytest.fixture(autouse=True)
def _own_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own_settings(monkeypatch, tmp_path / "home")


@pytest.fixture(autouse=True)
def _usual_depth() -> Iterator[None]:
    """As deep as Python reads by itself: a run that reads code may have raised the limit in this process."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.parametrize("kind", BAD)
def test_somebody_else_s_pyproject_stops_nothing(tmp_path: Path, kind: str) -> None:
    (tmp_path / "pyproject.toml").write_bytes(b"# beside ddpfix\n" + BAD[kind])
    assert settings.load(tmp_path) == settings.Settings()
    assert read_pins("pyproject.toml", BAD[kind]) == ()
    preferences.read(lambda name: BAD[kind] if name == "pyproject.toml" else None)


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("ours", [b"[tool.ddpfix]\nignore = []\n", b'[ tool . "ddpfix" ]\n', b"tool.ddpfix.ignore = []\n"])
def test_a_pyproject_with_settings_of_ours_that_cannot_be_read_is_an_error(tmp_path: Path, kind: str, ours: bytes) -> None:
    data = ours + BAD[kind]
    (tmp_path / "pyproject.toml").write_bytes(data)
    with pytest.raises(SettingsError, match=r"pyproject\.toml"):
        settings.load(tmp_path)
    with pytest.raises(SettingsError, match=r"pyproject\.toml"):
        preferences.read(lambda name: data if name == "pyproject.toml" else None)


def test_names_that_are_no_text_and_bad_settings_leave_the_rest_of_a_run(tmp_path: Path) -> None:
    files = {"model.py": MODEL, "requirements.txt": b"lightning==2.5.0\n", "sub/pyproject.toml": BAD["arrays 5,000 deep"]}
    repo = make(tmp_path, files)
    for odd in (b"bad\xff.py", b"a\n::error::x.py", b"::error file=a::b.py"):
        Path(os.fsdecode(os.fsencode(repo) + b"/" + odd)).write_bytes(MODEL)
    sh(repo, "add", "-A")
    sh(repo, "commit", "-qm", "odd names")
    for name in formats.names():
        done = ddpfix(repo, "check", "--output-format", name, ".")
        assert done.returncode == 1, (name, done.stderr)
        done.stdout.decode("utf-8", "surrogateescape")
        assert b"model.py" in done.stdout
        if name != "github":  # whose lines are commands, of its own making
            assert not re.search(rb"^::", done.stdout, re.M), name
    done = ddpfix(repo, "apply", ".")
    assert done.returncode == 0, done.stderr
    assert b"sync_dist" in Path(os.fsdecode(os.fsencode(repo) + b"/bad\xff.py")).read_bytes()
    (repo / "pyproject.toml").write_bytes(b"[tool.ddpfix]\n" + BAD["no end"])
    assert ddpfix(repo, "check", ".").returncode == 2


def test_files_without_an_end_are_told_and_the_rest_is_read(tmp_path: Path) -> None:
    repo = make(tmp_path, {"model.py": MODEL, "requirements.txt": b"lightning==2.5.0\n"})
    for name in ("endless.py", "pyproject.toml", "jobs.yaml", "setup.cfg"):
        (repo / name).symlink_to("/dev/zero")
    os.mkfifo(repo / "pipe.py")
    for track in (False, True):
        done = ddpfix(repo, "check", "--no-cache", ".")
        assert done.returncode == 1, done.stderr
        assert b"model.py" in done.stdout
        for name in ("endless.py", "jobs.yaml", "pipe.py"):
            assert name.encode() in done.stdout + done.stderr, name
        if not track:
            sh(repo, "add", "-A", ok=False)
            sh(repo, "commit", "-qm", "links")


CHECK = [sys.executable, "-P", "-m", "ddpfix.cli", "check", "--no-cache"]
PIPES = ("pipe.py", "job.sh", "pyproject.toml", "requirements.txt", "setup.cfg", ".gitignore", ".gitmodules", "sub/only.py")


@pytest.mark.parametrize("name", PIPES)
@pytest.mark.parametrize("git", [True, False], ids=["in git", "without git"])
def test_a_pipe_is_named_and_nobody_waits_for_its_other_end(tmp_path: Path, name: str, git: bool) -> None:
    repo = make(tmp_path, {"model.py": MODEL, "other/requirements.in": b"lightning==2.5.0\n"})
    if not git:
        shutil.rmtree(repo / ".git")
    (repo / name).parent.mkdir(exist_ok=True)
    os.mkfifo(repo / name)
    for asked in (".", name):
        done = subprocess.run([*CHECK, asked], cwd=repo, capture_output=True, check=False, timeout=60)
        nothing_read = 0 if name == ".gitmodules" else 2
        assert done.returncode == (1 if asked == "." else nothing_read), done.stderr
        if name != ".gitmodules":  # which says nothing about what is read
            assert f"{name}: not read: no ordinary file" in done.stderr.decode()
        assert (b"model.py" in done.stdout) == (asked == ".")


@pytest.mark.parametrize("command", ["check", "apply", "diff"])
@pytest.mark.parametrize("kind", ["pipe", "link to nothing", "link without an end"])
def test_settings_of_ours_that_are_no_file_are_an_error(tmp_path: Path, command: str, kind: str) -> None:
    repo = make(tmp_path, {"model.py": MODEL, "requirements.txt": b"lightning==2.5.0\n"})
    if kind == "pipe":
        os.mkfifo(repo / "ddpfix.toml")
    else:
        (repo / "ddpfix.toml").symlink_to("nothing" if kind == "link to nothing" else "/dev/zero")
    done = ddpfix(repo, command, ".")
    assert done.returncode == 2
    assert b"ddpfix.toml: no ordinary file" in done.stderr
    assert sh(repo, "branch", "--show-current") == "main"
    assert (repo / "model.py").read_bytes() == MODEL


EVIL = "a\n::error::b \x1b[2J \x9b2J \u202e ##[error]c ##vso[task.x]d ::e.py"


@pytest.mark.parametrize("name", formats.names())
def test_every_format_makes_names_and_source_text_harmless(tmp_path: Path, name: str) -> None:
    finding = Finding("DDP101", "a-rule", EVIL, Span(1, 0, 1, 1), EVIL, f"it says {EVIL}", reason=EVIL, id="1")
    report = Report(tmp_path, (finding,), 1, 1, (Failure(f"::{EVIL}", EVIL),))
    out = formats.find(name).document(Answer((Checked(report, lambda path: path, {EVIL: b"x\n"}, {}),), tmp_path))
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", out)
    assert not re.search(r"##\w*\[", out)
    assert [row[:7] for row in out.split("\n") if row.startswith("::")] == (["::notice"[:7]] if name == "github" else [])
    if out.startswith(("{", "[")):  # what is escaped is not lost
        rows = [out] if name != "json-lines" else out.splitlines()
        assert EVIL in list(texts(json.loads(rows[0])))


def texts(value: object) -> Iterator[str]:
    """Every text in a JSON value."""
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts(inner)


DIFFS = [("diff", "."), ("diff", "--stat", "."), ("diff", "--explain", ".")]
COMMANDS = [("review", "--html", "page.html", "."), *DIFFS, ("undo", ".")]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_name_that_is_no_utf_8_ends_no_command(tmp_path: Path, command: tuple[str, ...]) -> None:
    repo = make(tmp_path, {"requirements.txt": b"lightning==2.5.0\n"})
    odd = Path(os.fsdecode(os.fsencode(repo) + b"/bad\xff.py"))
    odd.write_bytes(MODEL)
    sh(repo, "add", "-A")
    sh(repo, "commit", "-qm", "odd names")
    if command[0] == "undo":
        assert ddpfix(repo, "apply", ".").returncode == 0
        assert odd.read_bytes() != MODEL
    done = ddpfix(repo, *command)
    assert done.returncode in (0, 1), done.stderr
    assert b"Traceback" not in done.stderr
    assert odd.read_bytes() == MODEL
    if command[0] == "review":
        assert "DDP101" in (repo / "page.html").read_text(encoding="utf-8")


def test_a_line_that_begins_as_a_command_does_not(tmp_path: Path) -> None:
    assert harmless("::error::x.py:1:1: DDP101 m") == "./::error::x.py:1:1: DDP101 m"
    report = Report(tmp_path, (), 1, 1, (Failure("::error::x", "a\nb\x07"),))
    assert text.notes([(report, lambda path: path)]).startswith("./::error::x: not read: a b\\x07\n")


WRITTEN = [
    *(("check",), ("apply",), ("apply", "--no-switch"), ("apply", "--in-place"), ("review", "--html", "page.html"), ("tune",)),
    *(command[:-1] for command in DIFFS),
]


def test_no_command_writes_what_drives_a_terminal_or_a_runner(tmp_path: Path) -> None:
    odd = "e\x1b[2Jv\n::error::x"
    files = {f"{odd}.py": MODEL, f"{odd}y.py": MODEL + b"x = (\n", f"{odd}z.sh": b"python a.py\n"}
    repo = make(tmp_path, {**files, "requirements.txt": b"lightning==2.5.0\n"})
    for command in WRITTEN:
        done = ddpfix(repo, *command, ".")
        assert done.returncode in (0, 1), (command, done.stderr)
        undone = ddpfix(repo, "undo") if command[0] == "apply" else done
        for written in (done.stdout, done.stderr, undone.stdout, undone.stderr):
            assert not re.search(rb"^::|\x1b", written, re.M), (command, written)
        if command[0] != "tune":
            assert b"could not be read" in done.stderr or b"not read: " in done.stderr, command
    (repo / "ddpfix.toml").write_text("'\x1b[2J' = 1\n".replace("\x1b", "\\u001b").replace("'", '"'))
    failed = ddpfix(repo, "check", ".")
    assert failed.returncode == 2
    assert b"\x1b" not in failed.stderr


def test_no_codemod_fails_on_a_name_that_is_no_utf_8(tmp_path: Path) -> None:
    """Every codemod's example and the example projects, each file under such a name: codemods look for who names a file."""
    for codemod in all_codemods():
        folder = Path(os.fsdecode(os.fsencode(tmp_path / codemod.code) + b"\xff"))
        folder.mkdir()
        for section, name in (("Example", b"one\xfe"), ("Use instead", b"two\xfe")):
            for block in BLOCK.findall(codemod.sections()[section]):
                kinds = {"```yaml": b".yaml", "```sh": b".sh", "```bash": b".sh"}
                kind = next((k for mark, k in kinds.items() if mark in codemod.sections()[section]), b".py")
                Path(os.fsdecode(os.fsencode(folder) + b"/" + name + kind)).write_text(block)
    for path in EXAMPLES.glob("*/before/**/*.py"):
        odd = Path(os.fsdecode(os.fsencode(tmp_path / path.relative_to(EXAMPLES)).removesuffix(b".py") + b"\xfe.py"))
        odd.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, odd)
    (tmp_path / "ddpfix.toml").touch()
    (tree,) = discovery.discover([tmp_path])
    report = engine.check(tree, settings.Settings(), all_codemods(), use_cache=False)
    assert [f.error for f in report.failed] == []
    assert len({f.code for f in report.findings}) > 20
