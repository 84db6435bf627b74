"""A `check` whose options are plain to read, without the library that reads all command lines: that takes 0.18 s to import,
longer than many a check. What is not read here with certainty is left to it, its words of what is wrong included.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ddpfix.cli.check_options import CheckOptions

_OFF = {"--no-unsafe-fixes": "unsafe_fixes"}


def asked_of_check(arguments: Sequence[str]) -> CheckOptions | None:
    """The check that a command line means; None where it is another command, or one for the library."""
    if not arguments or arguments[0] != "check":
        return None
    found: dict[str, object] = {}
    several: dict[str, list[str | Path]] = {}
    left = iter(arguments[1:])
    for word in left:
        name, equals, value = word.partition("=")
        field = name[2:].replace("-", "_") if name.startswith("--") and "_" not in name else ""
        kind = CheckOptions.__annotations__.get(field, "") if field != "paths" else ""
        if word == "-" or not word.startswith("-"):
            several.setdefault("paths", []).append(Path(word))
        elif not equals and (kind == "bool" or name in _OFF):
            found[_OFF.get(name, field)] = name not in _OFF
        elif kind in ("", "bool") or not (value := value if equals else _value(left)):
            return None
        elif kind.startswith("Sequence"):
            several.setdefault(field, []).append(Path(value) if "Path" in kind else value)
        else:
            found[field] = Path(value) if "Path" in kind else value
    return CheckOptions(**found, **several)  # type: ignore[arg-type]


def _value(left: Iterator[str]) -> str:
    """The next word, where it is the value of the option before it; "" otherwise."""
    value = next(left, "")
    return "" if value.startswith("-") else value
