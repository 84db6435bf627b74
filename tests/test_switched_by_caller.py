"""Objects and functions that a caller switches on for rank 0 alone, as the rules for files read them."""

from __future__ import annotations

import pytest

from codemods.analysis.output.effects import Kind, effects_of
from codemods.sync.missing_barrier import MissingBarrier
from ddpfix.testing import findings_of, project_of

JOURNAL = """
class Journal:
    def __init__(self, path, loud=True, keep=True):
        self.loud = loud
        self.keep = keep
        self.book = open(path, "w") if keep else None

    def note(self, *words):
        if self.keep:
            self.book.write(" ".join(words))


def journal_of(path, keep=True):
    if keep:
        with open(path, "w") as f:
            f.write("begun")
"""
ROUND = """
    import os
    import torch.distributed as dist
    from journal import Journal, journal_of

    class Round:
        def __init__(self, rows, journal):
            self.rows = rows
            self.journal = journal

        def run(self):
            for row in self.rows:
                self.journal.note(str(row))

    def one_round(rows, journal):
        for row in rows:
            use(row)
        journal.note("done")

    def two_rounds(rows, book):
        one_round(rows, book)
        one_round(rows, book)

    def main(args):
        dist.init_process_group("gloo")
        rank = dist.get_rank()
        if rank == 0:
            os.makedirs("out")
        {lines}

    if __name__ == "__main__":
        main(parse())
"""


def program(*lines: str) -> str:
    return ROUND.format(lines="\n        ".join(lines))


FIRST = "journal = Journal('out/a.txt', keep=rank == 0)"
BY_PLACE = "journal = Journal('out/a.txt', False, rank == 0)"
ALL = "journal = Journal('out/a.txt', loud=rank == 0)"


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ((FIRST, "one_round(args.rows, journal)"), False),
        ((BY_PLACE, "one_round(args.rows, journal)"), False),
        ((FIRST, "two_rounds(args.rows, journal)"), False),
        ((FIRST, "Round(args.rows, journal).run()"), False),
        ((FIRST, "Round(args.rows, journal=journal).run()"), False),
        (("main_one = rank == 0", "one_round(args.rows, Journal('out/a.txt', keep=main_one))"), False),
        ((ALL, "one_round(args.rows, journal)"), True),
        ((FIRST, "one_round(args.rows, journal)", "one_round(args.rows, Journal('b.txt'))"), True),
        (("journal = Journal('out/a.txt', keep=args.keep)", "two_rounds(args.rows, journal)"), True),
    ],
)
def test_an_object_that_a_caller_hands_over(lines: tuple[str, ...], told: bool) -> None:
    project = project_of(program(*lines), {"journal.py": JOURNAL})
    module = project.module("module.py")
    assert module is not None
    done = [effects_of(project, module, [call]) for call in module.calls_named("note")]
    assert any(e.kind is Kind.FILE for d in done for e in d.items)
    assert any(e.kind is Kind.FILE for d in done for e in d.output) is told


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("Journal('out/a.txt', keep=rank == 0)", False),
        ("Journal('out/a.txt', True, rank == 0)", False),
        ("journal_of('out/a.txt', keep=rank == 0)", False),
        ("Journal('out/a.txt', loud=rank == 0)", True),
        ("Journal('out/a.txt')", True),
        ("journal_of('out/a.txt', keep=args.keep)", True),
        ("journal_of('out/a.txt', rank != 0)", False),  # other ranks than 0: nothing is said of what is not known
    ],
)
def test_a_folder_of_rank_0_that_a_call_uses(line: str, told: bool) -> None:
    found = findings_of(MissingBarrier, program(line), {"journal.py": JOURNAL})
    assert bool(found) is told, [f.message for f in found]
