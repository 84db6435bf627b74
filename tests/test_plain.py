"""The quick way to read a `check` means what the command-line library means, or leaves the line to it."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from ddpfix.cli import checked, plain
from ddpfix.cli.app import app
from ddpfix.cli.check_options import CheckOptions
from ddpfix.cli.commands import check as command

READ_BOTH_WAYS = [
    "check",
    "check . src -",
    "check --no-cache src/a.py --select DDP1,DDP2 --select=metrics",
    "check --unsafe-fixes --no-unsafe-fixes --exit-zero --isolated --with-edits",
    "check --output-format json --output sarif=a.sarif --output=junit=b.xml",
    "check --baseline known.json --write-baseline --changed-since main",
    "check --config own.toml --ignore DDP203 --extend-select tuning --exclude docs --force-exclude",
    "check --fix --log a.log --log=b.log --evidence c.json --color never",
    "check --show-files",
    "check - --stdin-filename a.py --fail-on safe --show-settings --allow-plugins",
]
NOTHING = "Nothing distributed here: 1 Python file seen, none with a word of distributed training.\n"
LEFT_TO_THE_LIBRARY = [
    "",
    "diff .",
    "--debug check .",
    "check --help",
    "check -o json=a.json",
    "check --no-cach",
    "check --no-cache=yes",
    "check --select",
    "check --select --no-cache",
    "check --select=",
    "check -- --odd-name",
]


def fields(given: CheckOptions) -> dict[str, object]:
    return {name: getattr(given, name) for name in CheckOptions.__annotations__}


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """What the library hands to the command's body."""
    seen: dict[str, object] = {}

    def check(given: CheckOptions) -> int:
        seen.update(fields(given))
        return 0

    monkeypatch.setattr(checked, "check", check)
    return seen


@pytest.mark.parametrize("line", READ_BOTH_WAYS)
def test_a_line_means_the_same_in_both(line: str, library: dict[str, object]) -> None:
    quick = plain.asked_of_check(line.split())
    assert quick is not None
    app(line.split(), standalone_mode=False)
    assert fields(quick) == library


@pytest.mark.parametrize("line", LEFT_TO_THE_LIBRARY)
def test_what_is_not_plain_is_left_to_the_library(line: str) -> None:
    assert plain.asked_of_check(line.split()) is None


def test_every_long_option_of_the_command_is_read(library: dict[str, object]) -> None:
    for parameter in typer.main.get_command(app).commands["check"].params:  # type: ignore[attr-defined]
        for name in (*parameter.opts, *parameter.secondary_opts):
            if name.startswith("--") and name != "--help":
                read = plain.asked_of_check(["check", name] if parameter.is_flag else ["check", name, "a"])
                assert read is not None, name
                assert name in parameter.secondary_opts or fields(read) != fields(CheckOptions()), name


def test_the_body_has_the_defaults_of_the_command() -> None:
    said = {name: p.default for name, p in inspect.signature(command.check).parameters.items()}
    assert said == fields(CheckOptions())


def test_a_plain_check_loads_no_library_of_command_lines(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    code = (
        "import sys; sys.argv = ['ddpfix', 'check', '--no-cache', '.']\n"
        "from ddpfix import cli\n"
        "try: cli.main()\n"
        "finally: print(sorted({m.partition('.')[0] for m in sys.modules} & {'typer', 'click', 'pydantic', 'libcst'}))\n"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "[]\n" and (done.stderr, done.returncode) == (NOTHING, 0)
