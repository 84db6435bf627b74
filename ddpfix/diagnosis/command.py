"""What `ddpfix diagnose` and `--log` do: read a log, hold it against a repository, hand it to the codemods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from codemods.evidence import Observed
from ddpfix import engine
from ddpfix.diagnosis import cause, log, observations, places, report
from ddpfix.discovery import Tree
from ddpfix.outputs.paths import shown_from
from ddpfix.settings import Settings

LARGEST = 1 << 30  # bytes


class UnreadableLog(Exception):
    """A log that cannot be read, in three lines: what, why, what to do."""

    def __init__(self, path: Path, why: str) -> None:
        self.what, self.why, self.todo = f"{path} cannot be read", why, "give the file that a run wrote, `… 2>&1 | tee train.log`"
        super().__init__(f"{self.what}: {why}")


def read(path: Path) -> cause.Diagnosis:
    """The diagnosis of a log file. Raises UnreadableLog."""
    name = path.name if path.is_absolute() else path.as_posix()  # it is shown, and committed with the summary
    try:
        if path.is_dir():
            raise UnreadableLog(path, "it is a folder")
        if path.stat().st_size > LARGEST:
            raise UnreadableLog(path, f"it is larger than {LARGEST >> 20} MiB; give its end: tail -c 100M {path.name} > end.log")
        return cause.diagnose(log.read(path.read_bytes(), name))
    except OSError as error:
        raise UnreadableLog(path, error.strerror or str(error)) from None


def in_repository(diagnosis: cause.Diagnosis, tree: Tree, settings: Settings) -> report.InRepository:
    """The places of the traceback in a repository, and what the codemods that repair the cause find in it."""
    found = places.places(diagnosis, tree.files)
    seen = replace(tree, observed=observations.observed(diagnosis, tree.files))
    codes = narrowed(diagnosis, settings)
    findings = engine.check(seen, codes).findings if codes.select else ()
    return report.InRepository(found, tuple(findings), shown_from(tree.root, Path.cwd()))


def narrowed(diagnosis: cause.Diagnosis, settings: Settings) -> Settings:
    """The settings with only those codemods that repair the cause, of those that the user selects; maybe none."""
    from ddpfix import catalog

    wanted = {c.code for c in catalog.selected(settings.selection)} & set(diagnosis.codes)
    return replace(settings, select=tuple(sorted(wanted)))


def codemod_names() -> dict[str, str]:
    """Code -> name of every codemod."""
    from ddpfix import catalog

    return {c.code: c.rule_name() for c in catalog.all_codemods()}


def observed(logs: Sequence[Path], tree: Tree) -> tuple[Observed, ...]:
    """What logs say that codemods weigh. Raises UnreadableLog."""
    return tuple(row for path in logs for row in observations.observed(read(path), tree.files))


@dataclass(frozen=True, slots=True)
class Answer:
    """The diagnosis of one log, ready to be shown; `repository` where one was given."""

    diagnosis: cause.Diagnosis
    repository: report.InRepository | None

    def render(self, output_format: str) -> str:
        if output_format == "json":
            return report.to_json(self.diagnosis, self.repository)
        return report.text(self.diagnosis, self.repository, codemod_names())

