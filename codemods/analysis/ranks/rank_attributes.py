"""Attributes without a word of ranks that a class makes of a test for rank 0: `self.active = get_rank() == 0`, and properties.

Another file asks for them, in which no word speaks of ranks (`if reports.active:`). Told from the bytes, before any file is
parsed; what the attribute says at its place is told by the class of the object (rank_members.py).
"""

from __future__ import annotations

import re

from codemods.analysis.distribution import is_test_file
from codemods.data.rank_names import speaks_of_rank
from codemods.runtime.lazy_pattern import lazy
from codemods.store.file_facts import file_fact
from codemods.store.project import Project

_TEST = (
    rb"(?:rank(?:[\"']\]|\(\))?[ \t]*(?:==|!=|<=?|\bin\b)|RANK[\"')\], \t\d]+(?:==|!=)|main_process|process_index[ \t]*==|"
    rb"global_zero|is_ma(?:in|ster)\w*|rank_?(?:zero|0)\b)"
)
_FIELD = lazy(rb"self\.(\w+)[ \t]*(?::[^=\n]+)?=(?!=)([^\n]*)")
_PROPERTY = lazy(
    rb"@(?:\w+\.)?(?:cached_)?property[ \t]*\r?\n[ \t]+def (\w+)\(self\)[^\n]*:[ \t]*\r?\n"
    rb"(?:[ \t]*(?:[\"'][^\n]*[\"'])?[ \t]*\r?\n)*[ \t]+return ([^\n]+)"
)
_TESTED = lazy(_TEST)
_OWN = re.compile(rb"\bself\.(\w+)")
# A whole line that is a test, and no value that is made with one.
_IS_A_TEST = lazy(
    rb"[ \t]*(?:not[ \t]+|bool\()?\(?[\w.]+(?:\([\w. ,=]*\)|\[[^\]\n]*\])?"
    rb"[ \t]*(?:(?:==|!=|<=?)[ \t]*[01]|in[ \t]*[(\[{][-01, ]*[)\]}])?\)?\)?[ \t]*(?:#.*)?\r?"
)
_SHORT = 3  # letters: `on` and `rk` are everything in other files


@file_fact
def _made_in(path: str, data: bytes) -> frozenset[str]:
    del path
    if b"class " not in data:
        return frozenset()
    made = {name: value for name, value in _FIELD.findall(data) if _TESTED.search(value)}
    found = {name for name, value in made.items() if _IS_A_TEST.fullmatch(value)}
    if b"property" in data:
        for name, answer in _PROPERTY.findall(data):
            if _TESTED.search(answer) or any(part in made for part in _OWN.findall(answer)):
                found.add(name)
    names = (name.decode() for name in found)
    return frozenset(n for n in names if len(n) >= _SHORT and not speaks_of_rank(n))


def rank_attributes(project: Project) -> frozenset[str]:
    """The names under which classes of the project keep or answer a test for rank 0."""

    def build() -> frozenset[str]:
        words = (b"rank", b"RANK", b"main_process", b"process_index", b"global_zero", b"is_ma")
        paths = {p for word in words for p in project.files_containing(word) if p.endswith(".py") and not is_test_file(p)}
        return frozenset(n for p in paths for n in project.fact(_made_in, p))

    return project.keep("attributes made of a test of the rank", build)


def is_given_by_others(project: Project, name: str) -> bool:
    """True where something but `self` is given the attribute: `reports.active = False`."""
    return project.keep(
        ("attribute given by others", name),
        lambda: any(project.fact(_gives, p, name) for p in project.files_containing(f".{name}".encode()) if not is_test_file(p)),
    )


@file_fact
def _gives(path: str, data: bytes, name: str) -> bool:
    del path
    given = re.compile(rb"([\w\])]+)\." + re.escape(name.encode()) + rb"[ \t]*=(?!=)")
    return any(found[1] != b"self" for found in given.finditer(data))
