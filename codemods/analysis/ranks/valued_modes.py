"""Modes by the value of an option that only commands for one process give: `--task fill` beside `torchrun … --task forecast`.

The place stands under the test of that value, or in a class that is named under it alone. Each launch on several processes has to
give the option another value, written out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from codemods.analysis.branches import branches_round
from codemods.analysis.class_index import ClassSite, subclasses
from codemods.analysis.distribution import is_test_file
from codemods.analysis.importing import imported_files
from codemods.analysis.job_files.documented_starts import Start
from codemods.analysis.literals import held_against
from codemods.analysis.ranks.closed_modes import MANY_COMMANDS
from codemods.files.source import SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project

_VALUE = r"(?:[ \t]*=[ \t]*|[ \t]+)(?!-)(?P<word>(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s\"';|&)`])+)(?=[\s;|&)`]|$)"
_MOST_FILES = 12
_OF_DATACLASSES = (b"HfArgumentParser(", b"simple_parsing", b"tyro.cli(", b"jsonargparse")


@record
class Wanted:
    """What an option has to be for a place to be reached: one of the values, or none of them."""

    option: str
    values: tuple[str, ...]
    within: bool

    def lets_in(self, value: str) -> bool:
        """True where the place is reached with this value."""
        return (value in self.values) is self.within


def wanted_over(module: SourceModule, node: ast.AST) -> Iterator[Wanted]:
    """The tests of an option's value over a place in its function, the class statement or the file: `args.task == "fill"`."""
    for branch in branches_round(module, node, until=(ast.Lambda,)):
        if (wanted := _wanted(branch.test)) is not None:
            yield wanted if branch.holds else Wanted(wanted.option, wanted.values, not wanted.within)


def _wanted(test: ast.expr) -> Wanted | None:
    held = held_against(test)
    if held is None or not isinstance(held[0], ast.Attribute) or not isinstance(held[0].value, ast.Name):
        return None
    values = tuple(value for value in held[1] if isinstance(value, str))
    if held[0].value.id in ("self", "cls") or not values or len(values) != len(held[1]):
        return None
    return Wanted(held[0].attr, values, held[2])


def is_given_to_one(project: Project, module: SourceModule, wanted: Wanted, commands: list[Start]) -> bool:
    """True where commands for one process alone give a value that leads there; each launch on several has to give another."""
    launched = [value_given(s, wanted.option) for s in commands if s.several]
    alone = [value_given(s, wanted.option) for s in commands if not s.several]
    if not launched or any(value is None or wanted.lets_in(value) for value in launched):
        return False
    if any(s.more for s in commands if s.several):
        return False
    if not any(value is not None and wanted.lets_in(value) for value in alone):
        return False
    return _is_an_option(project, module, wanted.option)


def is_shown_otherwise(project: Project, module: SourceModule, wanted: Wanted, commands: list[Start]) -> bool:
    """True where each launch on several processes gives another value, and many commands show values."""
    launched = [value_given(s, wanted.option) for s in commands if s.several]
    told = [v for v in (value_given(s, wanted.option) for s in commands) if v is not None]
    if len(told) < MANY_COMMANDS or not launched or any(s.more for s in commands if s.several):
        return False
    if any(value is None or wanted.lets_in(value) for value in launched):
        return False
    return _is_an_option(project, module, wanted.option)


def value_given(start: Start, option: str) -> str | None:
    """What a command gives an option, once and written out; None where it does not, or where that is not told."""
    flag = rf"(?<!\S)--?{re.escape(option).replace('_', '[-_]')}(?![\w-])"
    if len(re.findall(flag, start.given)) != 1 or (found := re.search(flag + _VALUE, start.given)) is None:
        return None
    value = re.sub("[\"']", "", found["word"])  # `--task="$name"_2` is one word
    return value if re.fullmatch(r"[\w./:+-]+", value) else None


def _is_an_option(project: Project, module: SourceModule, option: str) -> bool:
    """True where a parser of the program has the option, and no line of it sets it anew."""
    stored = re.compile(rb"(?<!\bself)\.%b[ ]*=(?!=)" % re.escape(option.encode()))
    texts = [project.read(p) or b"" for p in {module.path, *imported_files(project, module)}]
    return is_parsed(texts, option) and not any(stored.search(text) for text in texts)


def is_parsed(texts: Iterable[bytes], option: str) -> bool:
    """True where one of the files names the flag, or has a field of that name in a dataclass and a parser is made of those."""
    held = list(texts)
    flags = (b"--" + option.encode(), b"--" + option.replace("_", "-").encode())
    if any(flag in text for text in held for flag in flags):
        return True
    if not any(parser in text for text in held for parser in _OF_DATACLASSES):
        return False
    field = re.compile(rb"(?m)^[ \t]+%b[ \t]*:" % re.escape(option.encode()))
    return any(b"dataclass" in text and field.search(text) for text in held)


def names_of_class(project: Project, module: SourceModule, owner: ast.ClassDef) -> list[tuple[SourceModule, ast.AST]]:
    """Each place outside of a class that names it; none where there are too many, heirs, other names, or a text names it."""
    name = owner.name
    paths = project.files_using(name, most=_MOST_FILES)
    if paths is None or project.aliases_of(name) or module.parent(owner) is not module.tree or owner.decorator_list:
        return []
    if subclasses(project, ClassSite(module, owner)) or project.files_containing(name.encode(), kinds=(".yaml", ".yml", ".json")):
        return []
    found: list[tuple[SourceModule, ast.AST]] = []
    for path in sorted({*paths, module.path}):
        other = project.module(path) if not is_test_file(path) else None
        if other is None:
            continue
        if any(c.value == name for c in other.nodes(ast.Constant)):
            return []
        found += [(other, n) for n in other.reads_of(name) if owner not in other.ancestors(n)]
    return found
