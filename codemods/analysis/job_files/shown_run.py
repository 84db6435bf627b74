"""One run of a program as a project shows it: what its options and settings have there."""

from __future__ import annotations

from collections.abc import Mapping

from codemods.runtime.record import record
from codemods.store.project import Project

Keys = tuple[str, ...]  # from the root of the settings; an option of a command line is one key

UNKNOWN = "?"


@record
class ShownRun:
    """values: what each key has, UNKNOWN where that is not told, None for null. files: of settings. several: by a launcher,
    or with a strategy of several processes.
    """

    values: Mapping[Keys, str | None]
    files: tuple[str, ...]
    several: bool = False

    def value(self, path: Keys) -> str | None:
        """What the key has: None also where nothing gives it, UNKNOWN where a choice above it is not told."""
        for end in range(len(path)):
            if self.values.get(path[:end]) == UNKNOWN:
                return UNKNOWN
        return self.values.get(path)

    def below(self, path: Keys) -> bool:
        """True where the key has others below it."""
        return any(len(known) > len(path) and known[: len(path)] == path for known in self.values)

    def has(self, project: Project, word: bytes) -> bool:
        """True where a file of its settings holds the word, or may."""
        return self.values.get(()) == UNKNOWN or any(word in (project.read(p) or b"") for p in self.files)
