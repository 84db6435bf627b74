"""What `ddpfix diagnose` and `--log` do: read a log, hold it against a repository, hand it to the codemods."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from codemods.api.evidence import Observed, from_json
from ddpfix import engine
from ddpfix.diagnosis import cause, log, observations, places, report
from ddpfix.discovery import Tree
from ddpfix.outputs.paths import shown_from
from ddpfix.settings import Settings

LARGEST = 1 << 30  # bytes
KINDS = (".log", ".out", ".err", ".txt")
_RANK = re.compile(r"(?:^|/)(?P<folder>\d+)/std(?:out|err)\.log$|rank[-_]?(?P<name>\d+)")


class UnreadableLog(Exception):
    """A log or an evidence file that cannot be read: what, why, what to do."""

    def __init__(self, path: Path, why: str, todo: str = "give the file that a run wrote, `… 2>&1 | tee train.log`") -> None:
        self.what, self.why, self.todo = f"{path} cannot be read", why, todo
        super().__init__(f"{self.what}: {why}")


def read(path: Path) -> cause.Diagnosis:
    """The diagnosis of a log, or of a folder with one log for each rank (`torchrun --log-dir`). Raises UnreadableLog."""
    try:
        if not path.is_dir():
            return cause.diagnose(log.read(_bytes(path), _named(path)))
        files = sorted(p for p in path.rglob("*") if p.suffix in KINDS and p.is_file() and p.stat().st_size)
        if not files:
            raise UnreadableLog(path, f"the folder holds no file with the ending {', '.join(KINDS)}")
        logs = [log.read(_bytes(p), name := p.relative_to(path).as_posix(), rank=rank_in(name)) for p in files]
        return cause.diagnose(log.merged(logs, _named(path)))
    except OSError as error:
        raise UnreadableLog(path, error.strerror or str(error)) from None


def _bytes(path: Path) -> bytes:
    if path.stat().st_size > LARGEST:
        raise UnreadableLog(path, f"it is larger than {LARGEST >> 20} MiB", f"give its end: tail -c 100M {path.name} > end.log")
    return path.read_bytes()


def rank_in(name: str) -> int | None:
    """The rank that a log's name tells: torchrun's `attempt_0/1/stderr.log`, or `rank_1.log`."""
    found = _RANK.search(name)
    return int(found["folder"] or found["name"]) if found else None


def in_repository(diagnosis: cause.Diagnosis, tree: Tree, settings: Settings) -> report.InRepository:
    """The places of the traceback in a repository, and what the codemods that repair the cause find in it."""
    found = places.places(diagnosis, tree.files)
    seen = replace(tree, observed=observations.observed(diagnosis, tree.files))
    chosen = narrowed(diagnosis, tree, settings)
    findings = engine.check(seen, chosen).findings if chosen.select else ()
    return report.InRepository(found, tuple(findings), shown_from(tree.root, Path.cwd()))


def narrowed(diagnosis: cause.Diagnosis, tree: Tree, settings: Settings) -> Settings:
    """The settings with only those codemods that repair the cause, of those that the user selects; maybe none."""
    from ddpfix import plugins

    wanted = {c.code for c in plugins.chosen(settings, tree.root).codemods} & set(diagnosis.codes)
    return replace(settings, select=tuple(sorted(wanted)))


def as_apply(log: Path, settings: Settings) -> str:
    """The command that applies the same by itself, for the summary."""
    words = ["ddpfix", "apply", "--log", _named(log), "--select", ",".join(settings.select)]
    words += ["--allow-plugins"] if settings.allow_plugins else []
    return shlex.join([*words, *(["--unsafe-fixes"] if settings.unsafe_fixes else [])])


def codemod_names() -> dict[str, str]:
    """Code -> name of every codemod."""
    from ddpfix import catalog

    return {c.code: c.rule_name() for c in catalog.all_codemods()}


def observed(logs: Sequence[Path], files: Sequence[Path], tree: Tree) -> tuple[Observed, ...]:
    """What logs and the evidence files of a probe say that codemods weigh. Raises UnreadableLog."""
    said = [row for path in logs for row in observations.observed(read(path), tree.files)]
    for path in files:
        try:
            file = from_json(path.read_text(encoding="utf-8"), file=_named(path))
            said += file.observed
            _refuse_other_code(path, file.base, tree)
        except OSError as error:
            raise UnreadableLog(path, error.strerror or str(error)) from None
        except ValueError as error:
            raise UnreadableLog(path, str(error), "make it with `ddpfix probe`") from None
    return tuple(said)


def _refuse_other_code(path: Path, base: str, tree: Tree) -> None:
    """Raises UnreadableLog where the code that was probed is not the code that is to be changed: lines would point elsewhere."""
    from ddpfix import git

    if base and tree.is_git and (changed := git.code_changed_since(tree.root, base)):
        raise UnreadableLog(path, f"it was seen on other code: {changed}", "run `ddpfix probe` again")


def _named(path: Path) -> str:
    """As it is shown, and committed with the summary: no folders of this machine."""
    return path.name if path.is_absolute() else path.as_posix()


@dataclass(frozen=True, slots=True)
class Answer:
    """The diagnosis of one log, ready to be shown; `repository` where one was given."""

    diagnosis: cause.Diagnosis
    repository: report.InRepository | None

    def render(self, output_format: str) -> str:
        if output_format == "json":
            return report.to_json(self.diagnosis, self.repository)
        return report.text(self.diagnosis, self.repository, codemod_names())

