"""The text of a test for rank 0, as a guard writes it, and what it takes to write it."""

from __future__ import annotations

from codemods.api.findings import Applicability, Edit
from codemods.runtime.record import record

GROUP_STARTED = "assumes that the process group, where there is one, has been started by then"


@record
class Spelling:
    """The text of the test, the imports it takes, and what it rests on where that is not shown.

    printer: a `print` that is silent where the test does not hold, or on all processes of a node but one, "" where none is
    known; takes_keywords: whether it takes those of Python's. asks_group: the test says nothing where no group has started yet.
    by_launcher: it goes by what a launcher has set, and says the same before there is a group.
    """

    test: str
    edits: tuple[Edit, ...] = ()
    assumes: str = ""
    printer: str = ""
    takes_keywords: bool = True
    asks_group: bool = False
    by_launcher: bool = False

    def level(self, highest: Applicability = Applicability.SAFE) -> Applicability:
        return min(highest, Applicability.UNSAFE, key=lambda a: a.rank) if self.assumes else highest
