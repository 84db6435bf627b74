"""The messages that a log is read against: what each means, what probably brought it about, what repairs it.

The rows lie in `table/*.toml`. Each holds literal words, looked for in one pass over all bytes, and at most one pattern, which
is held against the line where a word was found and whose named groups are what the message says (a rank, a parameter).
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib.resources import files
from typing import Any


class Role(Enum):
    """What a message is to a run: its own failure, waiting in vain, following from another rank, a detail, a notice."""

    ERROR = "error"
    HANG = "hang"
    ECHO = "echo"
    DETAIL = "detail"
    WARNING = "warning"


class Ranks(Enum):
    """Where a message names a cause: anywhere, in a log of several ranks, or where rank 0 does not say the same."""

    ANY = "any"
    SEVERAL = "several"
    OTHERS = "others"


@dataclass(frozen=True, slots=True)
class Message:
    """One row. find: words of which one stands in the line. codes: codemods that repair the cause. sample: how it reads.

    vague: a message that a more exact one explains, where that one is there, too.

    source: the packages and versions that say it. how: `run` seen in a run, `source` a text of the package, `logs` known from
    public logs only.
    """

    id: str
    find: tuple[str, ...]
    pattern: re.Pattern[str] | None
    role: Role
    ranks: Ranks
    means: str
    cause: str
    repair: str
    codes: tuple[str, ...]
    source: str
    how: str
    sample: str
    vague: bool = False

    def said(self, line: str) -> dict[str, str] | None:
        """What the pattern finds in a line that holds one of the words; None where it does not match."""
        if self.pattern is None:
            return {}
        found = self.pattern.search(line)
        return None if found is None else {k: v for k, v in found.groupdict().items() if v is not None}


@cache
def all_messages() -> tuple[Message, ...]:
    """Every row, in the order of the files' names and of the rows in them."""
    tables = sorted((t for t in files(__package__).joinpath("table").iterdir() if t.name.endswith(".toml")), key=lambda t: t.name)
    return tuple(_message(row) for t in tables for row in tomllib.loads(t.read_text(encoding="utf-8"))["message"])


def by_id(name: str) -> Message:
    """The row with this id. Raises KeyError."""
    return {m.id: m for m in all_messages()}[name]


def _message(row: dict[str, Any]) -> Message:
    find = row["find"]
    return Message(
        id=row["id"],
        find=(find,) if isinstance(find, str) else tuple(find),
        pattern=re.compile(row["pattern"]) if "pattern" in row else None,
        role=Role(row["role"]),
        ranks=Ranks(row.get("ranks", "any")),
        means=row["means"],
        cause=row["cause"],
        repair=row["repair"],
        codes=tuple(row.get("codes", ())),
        source=row["source"],
        how=row["how"],
        sample=row["sample"],
        vague=row.get("vague", False),
    )


# The page

_HOW = {"run": "seen in a run", "source": "in the package", "logs": "from logs"}
_FAMILIES = {
    "T": "torch: DDP, collectives, data",
    "G": "gloo",
    "N": "NCCL and CUDA",
    "R": "Launchers and processes",
    "P": "Python, where several ranks bring it about",
    "L": "Lightning, Fabric, torchmetrics",
    "H": "transformers",
    "A": "Accelerate",
}


def table() -> str:
    """All rows as Markdown tables, one a family, for the page on `ddpfix diagnose`."""
    out = []
    for letter, title in _FAMILIES.items():
        rows = sorted((m for m in all_messages() if m.id.startswith(letter)), key=lambda m: m.id)
        head = f"### {title}\n\n| id | in the log | what it means | probable cause | repaired by | said by |\n{'| --- ' * 6}|\n"
        out.append(head + "".join(f"{_row(m)}\n" for m in rows))
    return "\n".join(out)


def _row(message: Message) -> str:
    codes = f" ({', '.join(message.codes)})" if message.codes else ""
    words = f"`` {message.find[0]} ``" if "`" in message.find[0] else f"`{message.find[0].strip()}`"
    said_by = f"{message.source}; {_HOW[message.how]}"
    cells = (message.id, words, message.means, message.cause, message.repair + codes, said_by)
    return "| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |"
