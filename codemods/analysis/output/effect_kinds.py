"""The sorts of things that code does besides computing, and how they are said to a reader."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum

from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record


class Kind(Enum):
    """One sort of thing that code does. The first four are output, which one process can do for all."""

    PRINT = "prints"
    LOG = "logs"
    FILE = "writes"
    TRACKER = "reports to a tracker"
    QUIET = "is done on rank 0 only, by the framework itself"
    METRICS = "reads metrics that may still have to be reduced"
    COLLECTIVE = "is a collective"
    LOGGED = "logs a metric through Lightning"
    STATE = "sets"
    RANDOM = "draws random numbers"
    FORWARD = "runs the model"
    RAISES = "raises"
    UNKNOWN = "calls"


OUTPUT = frozenset({Kind.PRINT, Kind.LOG, Kind.FILE, Kind.TRACKER})


@record
class Effect:
    """One thing that happens: its kind, the text of the call or target, and where.

    guarded: on some ranks only. own: output that names the rank, the host or the process, and so is each rank's own. name: what
    is called, as it is written, "" where it is no call.
    """

    kind: Kind
    text: str
    path: str
    line: int
    guarded: bool = False
    own: bool = False
    name: str = ""

    @property
    def called(self) -> str:
        """The last part of the name: `makedirs` of `os.makedirs(path)`."""
        return self.name.rpartition(".")[2]

    @property
    def phrase(self) -> str:
        return f"{self.kind.value} {self.text}" if self.kind in (Kind.STATE, Kind.UNKNOWN) else f"{self.text} {self.kind.value}"


FOLDERS = frozenset({"makedirs", "mkdir"})
REMOVALS = frozenset({"remove", "unlink", "rmtree", "rmdir", "removedirs"})


@record
class Effects:
    """Everything a piece of code does, in the order of its text."""

    items: tuple[Effect, ...] = ()
    returns: bool = False

    def of(self, *kinds: Kind) -> tuple[Effect, ...]:
        return tuple(e for e in self.items if e.kind in kinds)

    @property
    def output(self) -> tuple[Effect, ...]:
        """Output that every rank makes."""
        return tuple(e for e in self.items if e.kind in OUTPUT and not e.guarded)

    def besides(self, *allowed: Kind) -> tuple[Effect, ...]:
        """What is neither output nor of these kinds."""
        return tuple(e for e in self.items if e.kind not in OUTPUT and e.kind is not Kind.QUIET and e.kind not in allowed)

    @property
    def only_output(self) -> bool:
        return bool(self.output) and not self.besides() and not self.returns


_OWN = lazy(
    r"(?<![a-z])(?:global_|local_|node_|world_|proc_|process_)?rank(?!_zero|ing|ed|s?_?score)|process_index|getpid|hostname|"
    r"gethostname|SLURMD_NODENAME|SLURM_NODEID|mkdtemp|uuid|\baccelerator\.state\b|"
    r"\b(?:PartialState|AcceleratorState)\(", re.IGNORECASE
)  # fmt: skip


def names_rank(text: str) -> bool:
    """True for text that speaks of the rank, the host or the process it runs in."""
    return _OWN.search(text) is not None


def phrases(effects: Sequence[Effect], most: int = 3) -> str:
    """What these effects are, for a reader, each once."""
    texts = list(dict.fromkeys(e.phrase for e in effects))
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more
