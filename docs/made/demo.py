"""docs/images/demo.svg: what `make demo` prints of `check` and `apply`, as a terminal shows it."""

from __future__ import annotations

import hashlib
import html
import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).parents[2]
WIDTH = 116
FINDINGS = 5  # of `check`; the last line counts them all
DATE = "2026-01-01T12:00:00Z"
_STYLES = (
    (r"^\$ .*", "bold"), (r"\[fix\]", "green"), (r"\[(unsafe fix|reported)\]", "yellow"), (r"\bDDP\d{3}\b", "bold cyan"),
    (r"^\S+\.py:\d+:\d+:", "magenta"), (r"^  [0-9a-f]{10} ", "yellow"), (r"^\d+ (findings|fixes) .*", "bold"),
)  # fmt: skip
# without the fonts of another server, which a picture must not ask for
_FORMAT = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img">
<title>make demo</title>
<desc>TOLD</desc>
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""  # noqa: E501


def is_current(picture: str, lines: Sequence[str]) -> bool:
    """True if the picture shows these lines: its description holds them, and how they are drawn is rich's, of any version."""
    return f"<desc>{_told(lines)}</desc>" in picture


def picture(lines: Sequence[str]) -> str:
    """The lines as a terminal shows them."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for line in lines:
        text = Text(line)
        for pattern, style in _STYLES:
            text.highlight_regex(pattern, style)
        console.print(text, overflow="fold")
    drawn = console.export_svg(title="make demo", theme=MONOKAI, code_format=_FORMAT, unique_id="demo")
    return drawn.replace("TOLD", _told(lines), 1)


def _told(lines: Sequence[str]) -> str:
    return html.escape("\n".join(lines))


def shown(lines: list[str]) -> list[str]:
    """`check`, with the first of its findings, and the whole of `apply`."""
    check, apply, end = (lines.index(f"== {title}") for title in ("ddpfix check", "ddpfix apply", "git diff main ddpfix/fixes"))
    *findings, total = [line for line in lines[check + 1 : apply] if line]
    applied = [re.sub(r"^  [0-9a-f]{10}(?=  (.*))", _name, line) for line in lines[apply + 1 : end]]
    return ["$ ddpfix check", *findings[:FINDINGS], "…", total, "", "$ ddpfix apply", *"\n".join(applied).strip().splitlines()]


def _name(match: re.Match[str]) -> str:
    """Commits have other names in each run; in the picture one that is made of the title."""
    return f"  {hashlib.sha256(match[1].encode()).hexdigest()[:10]}"


def printed() -> list[str]:
    """The lines of fixtures/demo.sh, as `make demo` runs it, with this checkout as the program."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "ddpfix"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m ddpfix.cli "$@"\n')
        program.chmod(0o755)
        env = {k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "DDPFIX_"))}
        own = {
            "PYTHONPATH": str(ROOT), "TMPDIR": folder, "HOME": folder, "COLUMNS": "80", "DDPFIX_CACHE_DIR": f"{folder}/cache",
            "GIT_AUTHOR_DATE": DATE, "GIT_COMMITTER_DATE": DATE, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1",
        }  # fmt: skip
        command = [str(ROOT / "fixtures" / "demo.sh"), str(program)]
        said = subprocess.check_output(command, env={**env, **own}, stderr=subprocess.STDOUT, text=True)
    return said.splitlines()
