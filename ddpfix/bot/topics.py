"""How fixes are grouped into pull requests: by level, or by codemod."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Finding
from ddpfix import catalog
from ddpfix.results import Fixed
from ddpfix.settings import Settings, SettingsError
from ddpfix.summary.markdown import plural

SAFE, UNSAFE, PER_RULE = "safe", "unsafe", "per-rule"


@dataclass(frozen=True, slots=True)
class Topic:
    """A group of fixes. name: `safe`, `unsafe` or a code, and the last part of the branch's name."""

    name: str

    @property
    def draft(self) -> bool:
        """Unsafe fixes are to be looked at before anybody is asked for a review: a draft asks no code owner."""
        return self.name == UNSAFE

    def accepts(self, finding: Finding) -> bool:
        level = Applicability.UNSAFE if self.name == UNSAFE else Applicability.SAFE
        return finding.applicability is level

    def codemods(self, chosen: Sequence[DdpCodemod]) -> tuple[DdpCodemod, ...]:
        return tuple(c for c in chosen if self.name in (SAFE, UNSAFE, c.code))

    def title(self, fixed: Fixed) -> str:
        files = plural(len(fixed.after), "file")
        if self.name in (SAFE, UNSAFE):
            return f"ddpfix: {plural(len(fixed.fixed), f'{self.name} fix', f'{self.name} fixes')} in {files}"
        rule = catalog.lookup(self.name).rule_name()
        return f"ddpfix: {self.name} {rule}, {plural(len(fixed.fixed), 'fix', 'fixes')} in {files}"

    def command(self, settings: Settings, ignored: Sequence[str]) -> str:
        """The command that makes the same by hand."""
        parts = ["ddpfix apply"]
        if self.name == UNSAFE:
            parts.append("--unsafe-fixes")
        elif self.name != SAFE:
            parts.append(f"--select {self.name}")
        return " ".join([*parts, *(f"--ignore {code}" for code in ignored), "."])


def expand(words: Sequence[str], settings: Settings) -> tuple[Topic, ...]:
    """The topics that a repository asks for. Raises SettingsError."""
    out: list[str] = []
    for word in words:
        if word == PER_RULE:
            out += [c.code for c in catalog.selected(settings.selection)]
        elif word in (SAFE, UNSAFE):
            out.append(word)
        elif word.upper() in {c.code for c in catalog.all_codemods()}:
            out.append(word.upper())
        else:
            raise SettingsError(f"topics: {word!r} is not safe, unsafe, per-rule or the code of a codemod")
    return tuple(Topic(name) for name in dict.fromkeys(out))
