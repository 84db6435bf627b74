"""`ddpfix fleet run`: work off what waits, here, on a cluster or as a share of an array."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ddpfix.cli.ends import CLEAN, FINDINGS, CommandError
from ddpfix.cli.fleet import OURS, LedgerFile, alone, book, fleet_app, place_of, told
from ddpfix.cli.showing import note

if TYPE_CHECKING:
    from ddpfix.fleet.drive import Pace
    from ddpfix.fleet.ledger import Ledger
    from ddpfix.fleet.progress import Watch


@fleet_app.command("run")
def run(
    ledger: LedgerFile = OURS,
    engine: Annotated[str, typer.Option("--engine", help="local or dask.")] = "local",
    scheduler: Annotated[str, typer.Option("--scheduler", help="The address of a Dask cluster.", show_default=False)] = "",
    workers: Annotated[int, typer.Option("--workers", min=0, help="Repositories at a time; 0: one for each processor.")] = 0,
    seconds: Annotated[float, typer.Option("--seconds", min=1, help="The most that one repository may take.")] = 900,
    memory: Annotated[int, typer.Option("--memory", min=256, help="MiB that one repository may take.")] = 4096,
    size: Annotated[int, typer.Option("--size", min=1, help="MiB that git may fetch of one repository at once.")] = 1024,
    files: Annotated[int, typer.Option("--files", min=1, help="Files that one repository may hold.")] = 200_000,
    shard: Annotated[str, typer.Option("--shard", help="INDEX/COUNT: this share alone, into a file.", show_default=False)] = "",
    results: Annotated[Path | None, typer.Option("--results", help="The file of a share.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Those that are done, too, if they or the rules changed.")] = False,
    mirrors: Annotated[Path | None, typer.Option("--mirrors", help="Keep clones in this folder of each worker.")] = None,
    mirror_budget: Annotated[int, typer.Option("--mirror-budget", min=1, help="GiB that they may hold.")] = 20,
    metrics: Annotated[str, typer.Option("--metrics", help="HOST:PORT for Prometheus.", show_default=False)] = "",
) -> None:
    """Work off what waits; run again after whatever ended it. Exit 1 where repositories failed."""
    from ddpfix.fleet import drive, engines

    gc.enable()  # the command line turns it off for runs that are short
    if engine not in engines.ENGINES:
        raise CommandError(f"there is no engine {engine!r}", todo="Give --engine local or dask.")
    count = workers or len(os.sched_getaffinity(0))
    # a cluster gets two for each of its places, so that none waits for the driver
    window = count if engine == "local" and not shard else 2 * count
    kept_in = str(mirrors.absolute()) if mirrors else ""
    pace = drive.Pace(window, seconds, memory, size, files, kept_in, 1024 * mirror_budget)
    with told():
        if shard:
            _share(ledger, shard, results, pace, metrics)
            raise typer.Exit(CLEAN)
        with alone(ledger):
            kept = book(ledger)
            kept.resume(again=again)
            with _watched(kept, metrics) as watch:
                _settle_unchanged(kept, watch)
                with engines.started(engine, count, scheduler) as executor:
                    whole = drive.drive(kept, executor, pace, watch)
            failed = kept.counts().get("failed", 0)
            kept.close()
    if not whole:
        note("ddpfix fleet: paused; `ddpfix fleet run` goes on")
    raise typer.Exit(FINDINGS if failed else CLEAN)


def _share(ledger: Path, word: str, results: Path | None, pace: Pace, metrics: str) -> None:
    from ddpfix.fleet import shards

    share = shards.parse(word)
    place = results or ledger.with_name(f"{ledger.stem}-{share.index}-of-{share.count}.jsonl")
    kept = book(ledger, read_only=True)
    with _watched(kept, metrics) as watch:
        shards.run(kept, share, place, pace, watch)


@contextmanager
def _watched(kept: Ledger, address: str) -> Iterator[Watch]:
    """Whoever watches the run; with an address, Prometheus, too."""
    from ddpfix.cli.fleet_watch import shown
    from ddpfix.cli.serving import numbers
    from ddpfix.fleet.progress import metrics

    with ExitStack() as stack:
        watch = stack.enter_context(shown(kept.counts(), kept.campaign().name))
        stack.enter_context(numbers(address, lambda: metrics(watch)))
        yield watch


def _settle_unchanged(kept: Ledger, watch: Watch) -> None:
    """Ask the forge about those that were looked at before, many in one request. Where it does not answer, git is asked."""
    if not any(taken.head for taken in kept.waiting()):
        return
    from importlib.util import find_spec

    if find_spec("httpx2") is None:
        return
    from ddpfix.bot.client import ForgeError, SystemClock
    from ddpfix.bot.login import NoLogin
    from ddpfix.fleet.drive import rules_of
    from ddpfix.fleet.forges import reader, settle_unchanged

    campaign = kept.campaign()
    at = place_of(campaign)
    try:
        forge = reader(at, SystemClock())
        if forge:
            settle_unchanged(kept, forge, at.server, rules_of(campaign), watch.ended)
    except (ForgeError, NoLogin) as error:
        note(f"ddpfix fleet: {at.kind} was not asked about many at once: {error}")
