"""What came of one topic of one repository, for people and for programs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ddpfix.escaping import visible

# what somebody has to look at
ERRORS = ("failed", "refused")
LONGEST = 1000  # characters of a line: what is said of a repository may hold its own words


@dataclass(frozen=True, slots=True)
class Outcome:
    """action: created, updated, unchanged, left-to-human, closed-by-human, closed, superseded, deferred, deleted, nothing,
    skipped, reviewed, refused (by the forge's own rules) or failed. topic: "" where it is about the whole repository.
    """

    slug: str
    topic: str
    action: str
    why: str = ""
    number: int | None = None
    url: str = ""

    @property
    def is_error(self) -> bool:
        return self.action in ERRORS

    def line(self) -> str:
        what = f"{self.slug} {self.topic}".strip()
        line = f"{what}: {self.action}" + (f" {self.url}" if self.url else "") + (f" ({self.why})" if self.why else "")
        line = visible(" ".join(line.split()))
        return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"

    def plain(self) -> dict[str, Any]:
        return asdict(self)
