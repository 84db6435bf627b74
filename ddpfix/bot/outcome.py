"""What came of one topic of one repository, for people and for programs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

# what somebody has to look at
ERRORS = ("failed", "refused")


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
        return f"{what}: {self.action}" + (f" {self.url}" if self.url else "") + (f" ({self.why})" if self.why else "")

    def plain(self) -> dict[str, Any]:
        return asdict(self)
