"""What the reader of a summary must know beside the findings: the command, the branch, what was run and what was not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ddpfix.decided import Decided
from ddpfix.summary.proof_section import ShownProof
from ddpfix.summary.tuning_section import TuningTable

NOT_RUN = (
    "The code was read, not executed: ddpfix imported, trained, evaluated and tested nothing of the project.",
    "No second process and no GPU took part.",
)


@dataclass(frozen=True, slots=True)
class Launch:
    """A command of the repository's own that starts a changed program, with two processes, and where it stands.

    counted: it says itself how many processes there are, or its script has two; devices: where the script has their number.
    programs: the changed files that it comes to. to_fill: words that the reader has to give. edits: what else was changed.
    comes_to: the changed lines that it is shown to come to, "" for all. needs: `main.py:79 needs --resume`, of the others.
    short: what was added to come there, and for a short run: `--epochs 1`.
    command: "" where none is shown to test the change. script: what starts the program; faults: what is wrong with the
    command of that place; line: 0 for none. quoted: the command as the repository has it, "" where it has
    none to quote; quoted_at: its place. made: it imports a file and does nothing else.
    """

    command: str
    path: str
    line: int
    counted: bool = True
    programs: tuple[str, ...] = ()
    to_fill: tuple[str, ...] = ()
    edits: tuple[str, ...] = ()
    devices: str = ""
    comes_to: str = ""
    needs: tuple[str, ...] = ()
    short: str = ""
    made: bool = False
    script: str = ""
    faults: tuple[str, ...] = ()
    quoted: str = ""
    quoted_at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """How a run came about and where it went. Nothing in it may depend on the clock or on the machine.

    command: as it can be given again. versions: of ddpfix, Python and what else matters. base: the commit the work stands on.
    branch: where it was committed, None if nowhere. home: the branch it is to be merged into. commits: (id, subject), oldest
    first, as far as they are known. launched: files that a command of the repository starts.
    ran, not_run: sentences; where nothing ran, it says so of hooks and formatters too. notes: what the state of the repository
    adds. proof: what `ddpfix prove` saw of these very fixes.
    decided: what a person decided over the findings, where somebody did. pull_request: it is the body of one, not a file.
    tuning: what `ddpfix tune` makes of each job, and what it measured. place: the repository as seen from where the command was
    typed, "" from inside; for the commands on the closing screen alone.
    """

    command: str
    versions: Mapping[str, str]
    base: str | None = None
    branch: str | None = None
    home: str | None = None
    commits: tuple[tuple[str, str], ...] = ()
    launches: tuple[Launch, ...] = ()
    launched: frozenset[str] = frozenset()
    ran: tuple[str, ...] = ()
    not_run: tuple[str, ...] = NOT_RUN
    identity_note: str | None = None
    notes: tuple[str, ...] = ()
    switched: bool = False
    summary_commit: bool = True
    proof: ShownProof | None = None
    decided: Decided | None = None
    pull_request: bool = False
    tuning: TuningTable | None = None
    place: str = ""
