"""Which option of a program a flag of a command stands for, under any of its spellings: `-g`, `-g0`, `--gpus`, `--gpu`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

_SHORT = 2  # characters of `-g`


def option_of(flag: str, fields: Mapping[str, str]) -> str:
    """The field of the option; "" where it is none of the program's. fields: what the program calls its flags."""
    if flag in fields:
        return fields[flag]
    if flag.startswith("--"):
        found = {name for full, name in fields.items() if full.startswith(flag)}
        return found.pop() if len(found) == 1 else ""
    return fields.get(flag[:_SHORT], "")


def same_options(flags: Iterable[str], fields: Mapping[str, str]) -> frozenset[str]:
    """All spellings of the options that the flags stand for, and the flags."""
    given = list(flags)
    names = {option_of(flag, fields) for flag in given} - {""}
    return frozenset({*given, *(flag for flag, name in fields.items() if name in names)})
