"""Variables that a script gives what another command prints: `port=$(shuf -i 8000-9999 -n 1)`, typed in front of the command."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from shlex import quote

from codemods.analysis.job_files.command_lines import CommandLine

_GIVEN = r"^[ \t]*(?:export[ \t]+)?%s=(\$\([^()\n]*\))[ \t]*(?:#.*)?$"
_OF_THE_SCRIPT = re.compile(r"\"?\$\{?0\}?\"?")
_OTHER = re.compile(r"\$(?!\(|RANDOM\b)|[<>]|\b(?:nvidia-smi|squeue|scontrol|sacct)\b")


def shell_results(path: str, command: CommandLine, to_fill: Iterable[str]) -> Iterator[tuple[str, str]]:
    """(`$port`, `port=$(…)`) of those words that the text above the command gives a value so, by nothing else that it sets.

    path: of the script, whose name such a command may ask for.
    """
    for word in to_fill:
        name = word.strip("\"'").lstrip("$").strip("{}")
        found = re.findall(_GIVEN % re.escape(name), command.above, re.M) if name.isidentifier() else []
        if not found:
            continue
        value = _OF_THE_SCRIPT.sub(lambda _: quote(path), found[-1])
        if not _OTHER.search(value):
            yield word, f"{name}={value}"
