"""`ddpfix new-codemod`: the file of a codemod, its test and the skeleton of its proof, all of which run as they stand."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from string import Template

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
CODE = re.compile(r"[A-Z]{2,}\d{3}")


class BadName(Exception):
    """A name, a code or a place that a codemod cannot have. The text says what it may be."""


def files(name: str, code: str, *, bowler: bool = False) -> Mapping[str, str]:
    """Relative path -> text, for a folder of a team's own codemods. Raises BadName.

    name: as in `no-old-barrier`. code: as in `TEAM001`; DDP and PRJ are taken.
    """
    if not NAME.fullmatch(name):
        raise BadName(f"{name!r} is no name for a codemod: words of small letters with hyphens between, as in no-old-barrier")
    if not CODE.fullmatch(code) or code.startswith(("DDP", "PRJ")):
        raise BadName(f"{code!r} is no code for it: letters and three digits, as in TEAM001; DDP and PRJ are taken")
    file = name.replace("-", "_")
    words = {"file": file, "name": name, "code": code, "cls": "".join(word.title() for word in name.split("-"))}
    return {
        f"{file}.py": Template(BOWLER if bowler else CODEMOD).substitute(words),
        f"test_{file}.py": Template(TEST).substitute(words),
        f"proofs/{file}/train.py": Template(PROGRAM).substitute(words),
    }


def refuse_existing(folder: Path, made: Mapping[str, str]) -> None:
    """Raises BadName where one of the files is there already."""
    for path in made:
        if (folder / path).exists():
            raise BadName(f"{folder / path} is there already: choose another name, or take that file away")


HEAD = '''"""$code: write here in a line what it is about."""

from __future__ import annotations
'''

CODEMOD = HEAD + '''
import ast
from collections.abc import Iterator

from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Finding, ReplaceExpression
from codemods.store.project import Project
from codemods.files.source import SourceModule


class $cls(DdpCodemod):
    """`old_barrier()` waits for one node alone.

    ## What it does

    Puts `barrier()` in the place of `old_barrier()`.

    ## Why it matters

    Say what happens to the user who leaves it, and on what evidence.

    ## Safety

    Unsafe: say what must hold for the fix to be right.

    ## Refuses

    A call with arguments: what they mean is not known here.
    """

    code = "$code"
    severity = "hang"
    subject = "Wait for every node"
    must_show = "Say what a test on two processes must show."
    printed = ()
    name = "$name"
    TRIGGERS = ((b"old_barrier",),)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        del project
        for call in module.calls_named("old_barrier"):
            if not isinstance(call.func, ast.Name):
                continue
            if call.args or call.keywords:
                yield self.finding(module, call, "`old_barrier` waits for one node alone.", reason="it is called with arguments")
                continue
            edit = ReplaceExpression(module.path, module.span(call.func), "barrier")
            yield self.finding(
                module, call, "`old_barrier` waits for one node alone.", level=Applicability.UNSAFE, edits=[edit],
                reason="that `barrier` means the team's own is assumed",
            )
'''

BOWLER = HEAD + '''
from bowler import Query

from ddpfix.bowler_rewrites import BowlerCodemod


class $cls(BowlerCodemod):
    """`old_barrier()` waits for one node alone.

    ## What it does

    Calls it `barrier` wherever it is defined, imported and called.

    ## Why it matters

    Say what happens to the user who leaves it, and on what evidence.

    ## Safety

    Unsafe: a query goes by names.

    ## Refuses

    A file that Bowler's grammar (about Python 3.9) cannot read, and one that would be no Python afterwards.
    """

    code = "$code"
    severity = "hang"
    subject = "Wait for every node"
    must_show = "Say what a test on two processes must show."
    printed = ()
    name = "$name"
    TRIGGERS = ((b"old_barrier",),)

    def query(self) -> Query:
        return Query().select_function("old_barrier").rename("barrier")
'''

TEST = '''"""What $name makes of a text, what it refuses and why, and that the program it repairs runs right on two processes."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from ddpfix.testing import check_nothing, check_proved, check_transformed, plugged_in

HERE = Path(__file__).parent
(CODEMOD,) = plugged_in(HERE / "$file.py")


def test_the_call_is_renamed() -> None:
    check_transformed(CODEMOD, "old_barrier()\\n", "barrier()\\n", unsafe=True)


def test_another_name_is_left_alone() -> None:
    check_nothing(CODEMOD, "older_barrier()\\n")


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
def test_the_program_runs_right_afterwards() -> None:
    check_proved(CODEMOD, HERE / "proofs" / "$file", "train.py", unsafe=True)
'''

PROGRAM = '''"""Two processes: rank 1 comes late, and rank 0 must wait for it. Without the fix it does not start."""

import torch.distributed as dist


def barrier():
    dist.barrier()


dist.init_process_group("gloo")
old_barrier()
print(f"rank {dist.get_rank()} goes on")
dist.destroy_process_group()
'''
