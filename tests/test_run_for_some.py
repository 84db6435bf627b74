"""What a helper calls on some ranks only: functions, methods, lambdas and partial calls that are handed to it."""

from __future__ import annotations

import ast
import textwrap

import pytest

from codemods.analysis.names import dotted
from codemods.analysis.ranks.rank_guards import Ranks
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.checkpoints.unguarded_save import UnguardedSave
from codemods.ranks.makedirs_race import MakedirsRace
from ddpfix.testing import MAIN, check_nothing, findings_of, project_of

HELPERS = """
    import functools
    import time
    import torch.distributed as dist
    from accelerate import Accelerator

    def only_first(job, *args, **kwargs):
        if dist.get_rank() == 0:
            job(*args, **kwargs)
        dist.barrier()

    def with_patience(tries, accelerator, job, *args, **kwargs):
        first = accelerator.is_main_process
        for attempt in range(tries):
            print(f"{job.__name__}: {attempt}")
            try:
                if first:
                    job(*args, **kwargs)
                return
            except OSError:
                time.sleep(attempt)

    def named(job):
        if job is None or not callable(job):
            raise ValueError(f"{job}")
        only_first(job)

    def everywhere(job, *args):
        for _ in range(3):
            job(*args)

    def sometimes(job):
        if dist.get_rank() == 0:
            job()
        job()

    def keeps(job):
        if dist.get_rank() == 0:
            job()
        JOBS.append(job)

    def other_name(job):
        run = job
        if dist.get_rank() == 0:
            run()
    """


def ranks_here(uses: str) -> Ranks:
    project = project_of(textwrap.dedent(HELPERS) + textwrap.dedent(uses), {})
    module = project.module(MAIN)
    assert module is not None
    here = next(c for c in module.nodes(ast.Call) if dotted(c.func) == "here")
    return ranks_reaching(project, module, here)


WORK = "def work(path=None):\n    here()\n"
KEPT = [
    "only_first(work)", "only_first(job=work)", "only_first(work, 'out')", "with_patience(3, Accelerator(), work, path='out')",
    "with_patience(tries=3, accelerator=None, job=work, path='out')", "named(work)", "only_first(functools.partial(work, 'out'))",
    "only_first(lambda: work('out'))", "named(job=lambda: [work(), 1])",
]  # fmt: skip


@pytest.mark.parametrize("call", KEPT)
def test_what_is_handed_to_such_a_helper_runs_on_rank_zero(call: str) -> None:
    assert ranks_here(f"{WORK}\ndef main():\n    {call}\n\nmain()\n") is Ranks.ZERO


@pytest.mark.parametrize(
    "call",
    ["everywhere(work)", "everywhere(lambda: work())", "everywhere(only_first, work())", "only_first(print, work())",
     "only_first(lambda made=work(): made)", "only_first(functools.partial(print, work()))", "only_first(print); work()"],
)  # fmt: skip
def test_what_is_called_by_all_stays_so(call: str) -> None:
    assert ranks_here(f"{WORK}\ndef main():\n    {call}\n\nmain()\n") is Ranks.ALL


@pytest.mark.parametrize("helper", ["sometimes", "keeps", "other_name"])
def test_a_helper_that_may_call_it_elsewhere_says_nothing(helper: str) -> None:
    assert ranks_here(f"{WORK}\ndef main():\n    {helper}(work)\n\nmain()\n") is Ranks.ALL


def test_a_direct_call_brings_the_other_ranks_there() -> None:
    assert ranks_here(f"{WORK}\ndef main():\n    only_first(work)\n    work()\n\nmain()\n") is Ranks.ALL


def test_a_function_inside_and_the_lambda_itself() -> None:
    inside = "def main(path):\n    def write():\n        here()\n    only_first(write)\n\nmain('out')\n"
    assert ranks_here(inside) is Ranks.ZERO
    assert ranks_here(inside.replace("only_first(", "everywhere(")) is Ranks.ALL
    assert ranks_here("only_first(lambda: here())\n") is Ranks.ZERO


KEEPER = """
    import torch
    import torch.distributed as dist
    from helpers import {helper}

    class Keeper:
        def __init__(self, model):
            self.model = model

        def keep(self, path):
            {helper}(self._write, path)

        def _write(self, path):
            self._states(path)

        def _states(self, path):
            torch.save(self.model.state_dict(), path)

    def main(model):
        dist.init_process_group("nccl")
        Keeper(model).keep("last.pt")

    if __name__ == "__main__":
        main(torch.nn.Linear(2, 2))
    """


def test_a_method_is_handed_to_a_helper_of_another_file() -> None:
    files = {"helpers.py": textwrap.dedent(HELPERS)}
    check_nothing(UnguardedSave, KEEPER.format(helper="only_first"), files=files)
    called = KEEPER.format(helper="only_first").replace("only_first(self._write, path)", "self._write(path)")
    assert findings_of(UnguardedSave, called, files)


FOLDERS = """
    import os
    import torch.distributed as dist
    from helpers import {helper}

    def prepare(path):
        if not os.path.exists(path):
            os.makedirs(path)

    def main(path):
        dist.init_process_group("nccl")
        {helper}(prepare, path)

    main("out")
    """


def test_a_folder_that_a_helper_lets_rank_zero_make() -> None:
    files = {"helpers.py": textwrap.dedent(HELPERS)}
    check_nothing(MakedirsRace, FOLDERS.format(helper="only_first"), files=files)
