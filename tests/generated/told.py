"""What the codemods tell of a generated program."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache

from codemods.api.codemod import DdpCodemod, built_in
from codemods.api.findings import Finding
from codemods.runtime.record import record
from codemods.store.project import Project
from ddpfix.testing import gate_open
from tests.generated import loops, trainers
from tests.generated.records import Fault, Holes, Program, Shape

SHAPES = (*loops.shapes(), *trainers.shapes())


@record
class Case:
    """One program to be judged. `wrong`: it has the fault."""

    fault: Fault
    nth: int
    wrong: bool
    shape: Shape

    def __str__(self) -> str:
        return f"{self.fault.codes[0]}-{'wrong' if self.wrong else 'right'}{self.nth}-{self.shape}"

    def program(self) -> Program:
        return made(self.shape, (self.fault.wrong if self.wrong else self.fault.right)[self.nth])


def made(shape: Shape, holes: Holes) -> Program:
    program = loops.program if shape.frame in ("raw", "accelerate") else trainers.program
    return program(shape, holes)


def cases(fault: Fault, seed: int = 0, most: int | None = None) -> Iterator[Case]:
    """Every program of the fault, or `most` of each spelling, drawn by the seed."""
    for wrong, ways in ((True, fault.wrong), (False, fault.right)):
        for nth in range(len(ways)):
            able = [s for s in SHAPES if fault.applies(s)]
            if most is not None and most < len(able):
                able = random.Random(f"{seed} {fault.codes[0]} {wrong} {nth}").sample(able, most)
            yield from (Case(fault, nth, wrong, s) for s in able)


@cache
def codemod(code: str) -> DdpCodemod:
    return next(c() for c in built_in() if c.code == code)


def findings(program: Program, codemods: tuple[DdpCodemod, ...]) -> list[Finding]:
    project = Project.of({path: text.encode() for path, text in program.files.items()})
    found: list[Finding] = []
    for path in sorted(p for p in program.files if p.endswith(".py")):
        module = project.module(path)
        assert module is not None, f"the generator made no Python:\n{program.files[path]}"
        for one in codemods:
            if gate_open(one, module, project) and one.is_worth_parsing(path, project):
                found += one.find(module, project)
    return found


def failure(case: Case) -> str | None:
    """What is wrong with what the codemod says of this program."""
    program = case.program()
    told = findings(program, tuple(codemod(code) for code in case.fault.codes))
    if not case.wrong:
        return f"told of a right program: {told[0].path}:{told[0].span.line} {told[0].message}" if told else None
    if (told and not program.marked) or any(program.marked & places(f) for f in told):
        return None
    elsewhere = [f"{f.path}:{f.span.line}" for f in told]
    return f"told at {elsewhere} in place of {sorted(program.marked)}" if told else f"nothing told at {sorted(program.marked)}"


def places(finding: Finding) -> set[tuple[str, int]]:
    own = {(finding.path, line) for line in range(finding.span.line, finding.span.end_line + 1)}
    return own | {(e.path, e.line) for e in finding.evidence}
