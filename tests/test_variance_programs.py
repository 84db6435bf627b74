"""Small training programs, broken and right, against all codemods that are not opt-in: what is found, and what is told falsely.

`fixtures/variance/<class>/<name>` holds a program each. A broken one has `# expect: KIND` on the lines at which its one fault may
fairly be told; a right one, often the near twin of a broken one, has none. What is not reached yet stands in variance_tables.py,
with the reason. An entry that is no longer needed fails the test; `python -m tests.test_variance_programs` takes it out.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from codemods.api.codemod import DdpCodemod, built_in
from codemods.api.findings import Finding
from codemods.store.project import Project
from ddpfix.testing import gate_open
from tests.variance_tables import FALSE, MISSED, NOT_REACHED, TRUE

ROOT = Path(__file__).parents[1] / "fixtures" / "variance"
TABLES = Path(__file__).with_name("variance_tables.py")
PROGRAMS = sorted(p.relative_to(ROOT).as_posix() for p in ROOT.glob("*/*") if p.is_dir())
CLASSES = sorted({p.partition("/")[0] for p in PROGRAMS})
READ = (".py", ".yaml", ".yml", ".toml", ".txt", ".sh", ".json")
NEAR = 2  # lines between a finding and the line that asks for it
FOUND = 0.9  # of the broken programs of a class
EXPECTED = re.compile(r"#\s*expect:\s*([\w-]+)")
REASON = re.compile(r"([A-Z_]+) = \"")
# Findings whose evidence is a path from where the ranks part to where they wait: any place on it is a fair one.
WITH_A_PATH = ("DDP301", "DDP303", "DDP305", "DDP411")
# Findings that speak of a number, and of nothing else: no answer to a program that hangs.
OF_NUMBERS = ("DDP101", "DDP106", "DDP115")
NUMBERS = ("wrong-number", "diverged")


@dataclass(frozen=True, slots=True)
class Said:
    """What the codemods say of a program. expected: (path, line, kind)."""

    expected: frozenset[tuple[str, int, str]]
    findings: tuple[Finding, ...]

    @property
    def found(self) -> bool:
        return any(self.is_fair(f) for f in self.findings)

    @property
    def besides(self) -> list[Finding]:
        """What is told of something else than the fault; in a right program, all."""
        return [f for f in self.findings if not self.is_fair(f)]

    def is_fair(self, finding: Finding) -> bool:
        """True where it stands at a line that asks for it, or its evidence leads there."""
        places = [(finding.path, line) for line in range(finding.span.line, finding.span.end_line + 1)]
        if finding.code in WITH_A_PATH:
            places += [(e.path, e.line) for e in finding.evidence]
        return any(
            file == path and abs(at - line) <= NEAR and (kind in NUMBERS or finding.code not in OF_NUMBERS)
            for file, at, kind in self.expected
            for path, line in places
        )


@functools.cache
def codemods() -> tuple[DdpCodemod, ...]:
    return tuple(c() for c in built_in() if not c.opt_in)


@functools.cache
def said(program: str) -> Said:
    folder = ROOT / program
    files = {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.suffix in READ}
    project = Project.of(files)
    return Said(frozenset(_expected(files)), tuple(_findings(project, sorted(f for f in files if f.endswith(".py")))))


def _expected(files: dict[str, bytes]) -> Iterable[tuple[str, int, str]]:
    for path, data in files.items():
        for number, line in enumerate(data.decode().splitlines(), 1):
            if match := EXPECTED.search(line):
                yield path, number, match[1]


def _findings(project: Project, paths: Iterable[str]) -> Iterable[Finding]:
    for path in paths:
        module = project.module(path)
        assert module is not None, f"{path} cannot be read"
        for codemod in codemods():
            if gate_open(codemod, module, project) and codemod.is_worth_parsing(path, project):
                yield from codemod.find(module, project)


def missed() -> set[str]:
    return {p for p in PROGRAMS if said(p).expected and not said(p).found}


def besides() -> set[tuple[str, str]]:
    return {(p, f.code) for p in PROGRAMS for f in said(p).besides}


def not_reached() -> set[str]:
    return {name for name in CLASSES if _counted(name)[0]}


def _counted(name: str) -> tuple[bool, str]:
    """Whether a class is not reached, and what the analysis says of it."""
    programs = [p for p in PROGRAMS if p.startswith(f"{name}/")]
    broken = [p for p in programs if said(p).expected]
    gone = sorted(missed() & set(broken))
    false = sorted(x for x in besides() if x[0] in programs and x not in TRUE)
    found = len(broken) - len(gone)
    told = f"{name}: {found} of {len(broken)} found; missed {gone}; told falsely {false}"
    return found < FOUND * len(broken) or bool(false), told


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program: str) -> None:
    seen = said(program)
    lines = [f"{f.path}:{f.span.line} {f.code} {f.message}" for f in seen.findings]
    assert not seen.expected or seen.found or program in MISSED, f"nothing is told near {sorted(seen.expected)}: {lines}"
    new = {f.code for f in seen.besides} - {code for name, code in (*FALSE, *TRUE) if name == program}
    assert not new, f"{sorted(new)} is told, and {'not of its fault' if seen.expected else 'the program is right'}: {lines}"


@pytest.mark.parametrize("name", CLASSES)
def test_nine_in_ten_of_a_class_are_found_and_nothing_is_told_falsely(name: str) -> None:
    wanting, told = _counted(name)
    assert not wanting or name in NOT_REACHED, told


def test_no_entry_of_the_tables_is_out_of_date() -> None:
    old = sorted(map(str, _out_of_date()))
    assert not old, f"python -m tests.test_variance_programs takes out of variance_tables.py: {old}"


def test_each_entry_has_a_reason() -> None:
    assert all([*MISSED.values(), *FALSE.values(), *TRUE.values(), *NOT_REACHED.values()])


def _out_of_date() -> set[str | tuple[str, str]]:
    return (MISSED.keys() - missed()) | ((FALSE.keys() | TRUE.keys()) - besides()) | (NOT_REACHED.keys() - not_reached())


def _key(key: str | tuple[str, str]) -> str:
    return f'("{key[0]}", "{key[1]}"): ' if isinstance(key, tuple) else f'"{key}": '


def _take_out() -> None:
    """Take the lines of what is no longer needed out of the tables, and reasons that no entry has; name what they lack."""
    gone = tuple(f"    {_key(key)}" for key in _out_of_date())
    lines = [line for line in TABLES.read_text().splitlines(keepends=True) if not line.startswith(gone)]
    used = set(re.findall(r"\w+", "".join(line for line in lines if line.startswith(" "))))
    TABLES.write_text("".join(line for line in lines if not (name := REASON.match(line)) or name[1] in used))
    lacking = [*map(_key, missed() - MISSED.keys()), *map(_key, besides() - FALSE.keys() - TRUE.keys())]
    lacking += map(_key, not_reached() - NOT_REACHED.keys())
    print(*(_counted(name)[1] for name in CLASSES), *(f"lacks {key}" for key in sorted(lacking)), sep="\n")


if __name__ == "__main__":
    _take_out()
