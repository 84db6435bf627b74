"""Which script a variable of a shell's text names, where only its folder is unknown: `program="$root/tools/train.py"`."""

from __future__ import annotations

import re

from codemods.runtime.lazy_pattern import lazy

_GIVEN = lazy(
    r"(?m)^[ \t]*(?:(?:export|local|readonly|declare)[ \t]+)?(\w+)=(\"?)([\w./${}-]*\w\.py)\2[ \t]*;?[ \t]*(?:#[^\n]*)?$"
)


def with_named_scripts(text: str) -> str:
    """The lines with the script in the place of its variable, below the one line that gives it a value."""
    for given in list(_GIVEN.finditer(text)):
        name, value = re.escape(given[1]), given[3]
        others = re.findall(rf"(?<![\w$]){name}\+?=|\b(?:for|select|read|unset)[ \t][^\n;]*?(?<![\w$]){name}\b", text)
        if len(others) != 1:
            continue
        asked = re.compile(rf"\$(?:\{{{name}\}}|{name}\b)")
        at = text.index(given[0]) + len(given[0])
        text = text[:at] + asked.sub(value, text[at:])
    return text
