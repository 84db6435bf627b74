"""One repository of a campaign, wherever that is: a thread here, a worker of a cluster, a job of an array. It never raises.

What strangers wrote is read in the limited child that the bot uses, too (`ddpfix.bot.child`): a crash, a hang or a repository
that takes all memory costs that repository, and the worker goes on.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from ddpfix import __version__, git
from ddpfix.bot import child
from ddpfix.catalog import UnknownSelector
from ddpfix.fleet.repositories import access
from ddpfix.fleet.result import Result
from ddpfix.git import GitRefusal, OverLimit, bounded
from ddpfix.settings import SettingsError


@dataclass(frozen=True, slots=True)
class Job:
    """head, rules: those of the last result; where both still hold nothing is cloned. seconds, memory (MiB): the most it takes.
    size (MiB), files: the most that is fetched at once, and that it may hold. mirrors: the folder of the clones that are kept on
    the worker, "" for none; budget (MiB): the most that they hold.

    It travels as JSON, and without any token: a worker has its own in its environment.
    """

    url: str
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    head: str = ""
    rules: str = ""
    seconds: float = 900.0
    memory: int = 4096
    size: int = 1024
    files: int = child.MOST.paths
    mirrors: str = ""
    budget: int = 0

    def plain(self) -> dict[str, Any]:
        return asdict(self)


def work_on(said: Mapping[str, Any]) -> dict[str, Any]:
    """The plain `Result` of a plain `Job`."""
    job, began = Job(**said), time.monotonic()
    try:
        result = _looked_at(job)
    except OverLimit as error:
        result = Result(cause=error.kind, error=str(error))
    except GitRefusal as error:
        result = Result(cause="git", error=str(error))
    except (SettingsError, UnknownSelector) as error:
        result = Result(cause="settings", error=str(error))
    except Exception as error:  # one repository must not end a campaign
        result = Result(cause="defect", error=f"{type(error).__name__}: {error}")
    return {**result.plain(), "rules": asked_rules(job.select, job.ignore), "seconds": round(time.monotonic() - began, 3)}


def _looked_at(job: Job) -> Result:
    way_in, began = access(job.url), time.monotonic()
    standing = git.head_of(way_in, seconds=min(job.seconds, bounded.SECONDS), memory=job.memory * child.MIB)
    if standing is None:
        return Result()
    branch, tip = standing
    if (tip, asked_rules(job.select, job.ignore)) == (job.head, job.rules):
        return Result(head=tip, unchanged=True)
    left = max(1, math.ceil(job.seconds - (time.monotonic() - began)))
    limits = child.Limits(
        seconds=left, cpu=max(1, int(job.seconds)), memory=job.memory * child.MIB, file=job.size * child.MIB,
        most=replace(child.MOST, paths=job.files),
    )  # fmt: skip
    with _kept(job) as clone, child.started(limits, clone) as worker:
        found = worker.ask("survey", way_in, branch, select=tuple(job.select), ignore=tuple(job.ignore))
    return Result(head=found.head, files=found.files, unread=found.unread, findings=found.rows, rejected=found.rejected)


def _kept(job: Job) -> AbstractContextManager[Path | None]:
    """The place of the clone that is kept, None where none is."""
    if not job.mirrors:
        return nullcontext()
    from ddpfix.fleet.mirrors import Mirrors

    return Mirrors(Path(job.mirrors), job.budget * child.MIB).held(job.url)


def asked_rules(select: Sequence[str], ignore: Sequence[str]) -> str:
    """What, beside the commit, the answer rests on: this version's rules and what is asked of them."""
    return _digest("\0".join((rules(), *sorted(select), "", *sorted(ignore))))


@cache
def rules() -> str:
    """The version, and a digest of every codemod's code: workers and driver must agree on it."""
    import codemods

    root = Path(codemods.__file__).parent
    parts = [f"{path.relative_to(root).as_posix()}\0{_digest(path.read_text())}" for path in sorted(root.rglob("*.py"))]
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return f"{__version__} {python} {_digest(chr(10).join(parts))}"


def _digest(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]
