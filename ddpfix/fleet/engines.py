"""Where the work is done: any `concurrent.futures.Executor`.

Locally these are threads, since the work itself is in child processes and nothing that happens there can break the pool. A
killed process of `ProcessPoolExecutor` would break every future that waits.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ddpfix.bot import child
from ddpfix.fleet.work import rules

if TYPE_CHECKING:
    from collections.abc import Mapping

ENGINES = ("local", "dask")


class NoEngine(Exception):
    """An engine that cannot be used, and why."""


@contextmanager
def started(engine: str, workers: int, scheduler: str = "") -> Iterator[Executor]:
    """An executor, ended at the end. workers: of the local ones. scheduler: the address of a cluster. Raises NoEngine."""
    if engine == "dask":
        with _dask(workers, scheduler) as executor:
            yield executor
        return
    pool = ThreadPoolExecutor(workers, thread_name_prefix="ddpfix-fleet")
    try:
        yield pool
    except BaseException:  # Ctrl-C, a ledger on a full disk: what is at work ends now, else its threads hold the program
        pool.shutdown(wait=False, cancel_futures=True)
        child.end_all()
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def _dask(workers: int, scheduler: str) -> Iterator[Executor]:
    try:
        client_class: Any = import_module("distributed").Client  # untyped
    except ImportError:
        raise NoEngine("--engine dask needs distributed: pip install 'ddpfix[dask]'") from None
    try:
        client: Any = (
            client_class(scheduler, timeout=30)
            if scheduler
            else client_class(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=40)
        )
    except (OSError, ValueError, TimeoutError) as error:
        raise NoEngine(f"the scheduler {scheduler} does not answer: {error}") from None
    with client:
        _refuse_others(client.run(rules), rules())
        # a task whose worker was killed is tried again by the driver, which counts the attempts
        yield client.get_executor(pure=False, retries=0)


def _refuse_others(found: Mapping[str, str], ours: str) -> None:
    """Raises NoEngine where a worker has other rules: its results would not be ours."""
    others = sorted(worker for worker, theirs in found.items() if theirs != ours)
    if others:
        theirs = found[others[0]]
        raise NoEngine(f"{len(others)} of {len(found)} workers have another version: {others[0]} has {theirs}, here is {ours}")
