"""A `check` whose options are plain to read, without the library that reads all command lines: that takes 0.18 s to import,
longer than many a check. What is not read here with certainty is left to it, its words of what is wrong included.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

SWITCHES = {
    "--unsafe-fixes": ("unsafe_fixes", True),
    "--no-unsafe-fixes": ("unsafe_fixes", False),
    "--launched": ("launched", True),
    "--force-exclude": ("force_exclude", True),
    "--with-edits": ("with_edits", True),
    "--exit-zero": ("exit_zero", True),
    "--write-baseline": ("write_baseline", True),
    "--isolated": ("isolated", True),
    "--allow-plugins": ("allow_plugins", True),
    "--show-settings": ("show_settings", True),
    "--no-cache": ("no_cache", True),
    "--statistics": ("statistics", True),
    "--quiet": ("quiet", True),
    "--show-files": ("show_files", True),
    "--fix": ("fix", True),
}
LISTS = {
    "--select": "select",
    "--ignore": "ignore",
    "--extend-select": "extend_select",
    "--exclude": "exclude",
    "--output": "output",
}
TEXTS = {
    "--output-format": "output_format",
    "--fail-on": "fail_on",
    "--changed-since": "changed_since",
    "--why-not": "why_not",
    "--color": "color",
}
FILE_LISTS = {"--log": "log", "--evidence": "evidence"}
FILES = {"--baseline": "baseline", "--stdin-filename": "stdin_filename", "--config": "config"}


def asked_of_check(arguments: Sequence[str]) -> dict[str, object] | None:
    """The keywords of `checked.check` that a command line means; None where it is another command, or one for the library."""
    if not arguments or arguments[0] != "check":
        return None
    found: dict[str, object] = {}
    lists: dict[str, list[str]] = {}
    files: dict[str, list[Path]] = {}
    paths: list[Path] = []
    left = iter(arguments[1:])
    for word in left:
        name, equals, value = word.partition("=")
        if word == "-" or not word.startswith("-"):
            paths.append(Path(word))
        elif name in SWITCHES and not equals:
            key, state = SWITCHES[name]
            found[key] = state
        elif name in LISTS or name in TEXTS or name in FILES or name in FILE_LISTS:
            if not equals and (value := next(left, "")).startswith("-"):
                return None
            if not value:
                return None
            if name in LISTS:
                lists.setdefault(LISTS[name], []).append(value)
            elif name in FILE_LISTS:
                files.setdefault(FILE_LISTS[name], []).append(Path(value))
            elif name in TEXTS:
                found[TEXTS[name]] = value
            else:
                found[FILES[name]] = Path(value)
        else:
            return None
    return {"paths": paths or None, **found, **lists, **files}
