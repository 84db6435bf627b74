"""JSON as it may stand in a terminal or in the log of a job: what those would act on is escaped, and read back as it was."""

from __future__ import annotations

import json
import re

# as in `text`, but for the line ends of an indented document, which stand outside of strings
_ACTED_ON = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]|##(?=\\w*\\[)")


def dumps(value: object, *, indent: int | None = None) -> str:
    """`value` as JSON, in which no control character and no `##command[` stands as it is."""
    return _ACTED_ON.sub(_escaped, json.dumps(value, ensure_ascii=False, indent=indent))


def _escaped(found: re.Match[str]) -> str:
    return "".join(f"\\u{ord(c):04x}" for c in found[0])
