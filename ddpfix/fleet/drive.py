"""The driver: keeps a window of repositories at work on any executor, and is the only one who writes the ledger."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from dataclasses import dataclass
from typing import Any

from ddpfix.bot.child import MOST
from ddpfix.fleet.ledger import Campaign, Ledger, Taken
from ddpfix.fleet.progress import Watch
from ddpfix.fleet.result import Result, of_plain
from ddpfix.fleet.work import Job, asked_rules, work_on

ATTEMPTS = 2  # of a repository whose worker was lost
LOOK = 1.0  # seconds between two looks at whether somebody asked for a pause
GRACE = 120.0  # seconds beyond the limits of two repositories, one before it on its worker, after which a worker counts as lost
BATCH = 64  # results that are written in one transaction

Work = Callable[[Mapping[str, Any]], Mapping[str, Any]]
Live = dict[Future[Mapping[str, Any]], tuple[Taken, float]]


@dataclass(frozen=True, slots=True)
class Pace:
    """window: repositories at work at a time. seconds, memory (MiB), size (MiB), files: the most that one of them may take.

    mirrors, budget (MiB): the clones that are kept on each worker, and what they may hold.
    """

    window: int
    seconds: float = 900.0
    memory: int = 4096
    size: int = 1024
    files: int = MOST.paths
    mirrors: str = ""
    budget: int = 0


def job_of(campaign: Campaign, taken: Taken, pace: Pace) -> Job:
    return Job(
        taken.url, campaign.select, campaign.ignore, head=taken.head, rules=taken.rules, seconds=pace.seconds, memory=pace.memory,
        size=pace.size, files=pace.files, mirrors=pace.mirrors, budget=pace.budget,
    )  # fmt: skip


def rules_of(campaign: Campaign) -> str:
    """The rules by which this program answers the campaign: a worker's have to be the same."""
    return asked_rules(campaign.select, campaign.ignore)


def drive(ledger: Ledger, executor: Executor, pace: Pace, watch: Watch, *, work: Work = work_on) -> bool:
    """Work until nothing waits (True) or somebody asks for a pause (False): what is at work then is awaited and kept."""
    campaign = ledger.campaign()
    rules = rules_of(campaign)
    live: Live = {}
    while True:
        paused = ledger.is_paused()
        if not paused:
            for taken in ledger.take(pace.window - len(live), time.time()):
                live[executor.submit(work, job_of(campaign, taken, pace).plain())] = taken, time.monotonic()
                watch.began(taken)
        watch.beat()
        if not live:
            at = ledger.next_at()
            if paused or at is None:
                return at is None
            time.sleep(min(LOOK, max(0.05, at - time.time())))
            continue
        done = wait(live, timeout=LOOK, return_when=FIRST_COMPLETED).done
        _keep(ledger, [(live.pop(future)[0], _result(future, rules)) for future in list(done)[:BATCH]], watch)
        _keep(ledger, _given_up(live, pace), watch)


def _keep(ledger: Ledger, done: list[tuple[Taken, Result]], watch: Watch) -> None:
    lost = [taken for taken, result in done if result.cause == "worker" and taken.attempt < ATTEMPTS]
    for taken in lost:
        ledger.put_back(taken.number, time.time() + 1)
        watch.ended(taken, None)
    final = [(taken, result) for taken, result in done if taken not in lost]
    if final:
        ledger.record([(taken.number, result) for taken, result in final])
    for taken, result in final:
        watch.ended(taken, result)


def _result(future: Future[Mapping[str, Any]], rules: str) -> Result:
    """What a worker answered. One that joined with other rules, after all were compared, answers another question."""
    try:
        result = of_plain(future.result())
    except (Exception, CancelledError) as error:  # a worker that was killed, a cluster that is gone, an answer that is none
        return Result(cause="worker", error=f"{type(error).__name__}: {error}"[:500])
    if result.rules != rules:
        return Result(cause="version", error=f"the worker answered by {result.rules}, here is {rules}", seconds=result.seconds)
    return result


def _given_up(live: Live, pace: Pace) -> list[tuple[Taken, Result]]:
    """Those that are waited for no longer: a scheduler that no longer answers must not hold the campaign up for ever."""
    patience = 2 * pace.seconds + GRACE
    until = time.monotonic() - patience
    late = [future for future, (_, began) in live.items() if began < until and not future.running()]
    for future in late:
        future.cancel()
    result = Result(cause="worker", error=f"no answer after {patience:g} s")
    return [(live.pop(future)[0], result) for future in late]
