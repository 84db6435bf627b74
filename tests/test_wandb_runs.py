"""`wandb.run` as a test of the rank: it is there on rank 0 alone, where rank 0 alone starts a run."""

from __future__ import annotations

import ast

import pytest

from codemods.analysis.ranks.rank_guards import Ranks, ranks_at
from codemods.files.source import SourceModule
from codemods.ranks.tracker_on_every_rank import TrackerOnEveryRank
from codemods.ranks.unguarded_print import UnguardedPrint
from codemods.store.project import Project
from ddpfix.testing import check_nothing, findings_of

HEAD = "import torch.distributed as dist\nimport wandb\n\n"
STEP = "\ndef step(loss):\n    if wandb.run:\n        here()\n"
STARTED = "def main(args):\n    rank = dist.get_rank()\n    if rank == 0 and args.track:\n        wandb.init(project='a')\n"
OPEN = "def main(args):\n    wandb.init(project='a')\n"


def coming(main: str, **others: str) -> Ranks:
    """Who comes to `here()` in main.py."""
    files = {"main.py": main, **{f"{name}.py": text for name, text in others.items()}}
    data = {path: text.encode() for path, text in files.items()}
    project = Project(data, data.__getitem__)
    module = project.module("main.py")
    assert isinstance(module, SourceModule)
    here = next(c for c in module.nodes(ast.Call) if isinstance(c.func, ast.Name) and c.func.id == "here")
    return ranks_at(module, here, project=project)


@pytest.mark.parametrize(
    "test", ["wandb.run", "wandb.run is not None", "wandb.run and loss", "wandb.run is not None and loss", "wandb.run != None"],
)
def test_rank_zero_alone_has_a_run(test: str) -> None:
    assert coming(HEAD + STARTED + STEP.replace("wandb.run", test)) is Ranks.ZERO


def test_without_a_run_ranks_are_not_known() -> None:
    assert coming(HEAD + STARTED + STEP.replace("wandb.run", "wandb.run is None")) is Ranks.UNKNOWN


def test_a_name_that_holds_it() -> None:
    step = "\ndef step(loss):\n    track = wandb.run is not None\n    if track:\n        here()\n"
    assert coming(HEAD + STARTED + step) is Ranks.ZERO


def test_a_module_under_another_name() -> None:
    text = (HEAD + STARTED + STEP).replace("import wandb", "import wandb as wb").replace("wandb.", "wb.")
    assert coming(text) is Ranks.ZERO


@pytest.mark.parametrize(
    "started",
    [
        "def begin():\n    wandb.init()\ndef main():\n    if dist.get_rank() == 0:\n        begin()\n",
        "class Board:\n    def __init__(self):\n        wandb.init()\n\ndef main(rank):\n    if rank == 0:\n        Board()\n",
        "from lightning.pytorch.utilities import rank_zero_only\n@rank_zero_only\ndef begin():\n    wandb.init()\n",
        "def main(args):\n    if dist.get_rank() != 0:\n        return\n    wandb.init()\n",
        "def main(args, rank):\n    if not args.distributed:\n        wandb.init()\n    elif rank == 0:\n        wandb.init()\n",
    ],
)
def test_starts_that_only_rank_zero_comes_to(started: str) -> None:
    assert coming(HEAD + started + STEP) is Ranks.ZERO


@pytest.mark.parametrize(
    "started",
    [
        OPEN,
        "def main(rank):\n    wandb.init(mode='online' if rank == 0 else 'disabled')\n",
        "def main(rank):\n    if rank == 0:\n        wandb.init()\n    else:\n        wandb.init(mode='disabled')\n",
        "def begin():\n    wandb.init()\ndef main():\n    if dist.get_rank() == 0:\n        begin()\ndef again():\n    begin()\n",
        STARTED + "def probe():\n    wandb.init(mode='offline')\n",
        "",
    ],
)
def test_starts_of_other_ranks(started: str) -> None:
    """A run that is switched off is a run as well, and without any start in sight nothing is said."""
    assert coming(HEAD + started + STEP) is Ranks.ALL


def test_the_start_in_the_file_that_imports_it() -> None:
    assert coming(HEAD + STEP, train=HEAD + "import main\n" + STARTED) is Ranks.ZERO
    assert coming(HEAD + STEP, train=HEAD + "import main\n" + OPEN) is Ranks.ALL


def test_a_script_of_its_own_is_another_program() -> None:
    assert coming(HEAD + STARTED + STEP, alone=HEAD + OPEN + "if __name__ == '__main__':\n    main(1)\n") is Ranks.ZERO


def test_what_a_script_runs_itself_its_importers_do_not() -> None:
    lone = HEAD + OPEN + "def score():\n    pass\nif __name__ == '__main__':\n    main(1)\n"
    assert coming(HEAD + STARTED + STEP, alone=lone, user="from alone import score\n") is Ranks.ZERO
    assert coming(HEAD + STARTED + STEP, alone=lone, user="from alone import main\nimport main as m\nmain(1)\n") is Ranks.ALL


def test_logs_and_prints_under_it_are_those_of_rank_zero() -> None:
    step = "    total = len(args.rows)\n    print(total)\n"
    step += "    if wandb.run:\n        wandb.log({'total': total})\n        print('logged')\n"
    check_nothing(TrackerOnEveryRank, HEAD + STARTED + step)
    assert len(findings_of(UnguardedPrint, HEAD + STARTED + step)) == 1


def test_a_log_that_asks_for_a_run_ends_nobody() -> None:
    """Whoever starts it: here a logger of Lightning, beside a start that each rank comes to."""
    head = HEAD + "from lightning.pytorch.loggers import WandbLogger\n\ndef watch():\n    return WandbLogger()\n\n"
    asked = "    print(args)\n    if wandb.run:\n        wandb.log({'a': 1})\n"
    check_nothing(TrackerOnEveryRank, head + "def main(args):\n    rank = dist.get_rank()\n" + asked)


LIGHTNING = "import lightning as L\n\ndef main(logger, model):\n    L.Trainer(logger=logger).fit(model)\n"


@pytest.mark.parametrize(
    ("lines", "ranks"),
    [("    if isinstance(logger.experiment, Run):\n        here()\n", Ranks.ZERO),
     ("    name = logger.experiment.entity\n    if isinstance(name, str):\n        here()\n", Ranks.ZERO),
     ("    if isinstance(logger.experiment, DummyExperiment):\n        here()\n", Ranks.UNKNOWN),
     ("    if not isinstance(logger.experiment, Run):\n        here()\n", Ranks.UNKNOWN),
     ("    if isinstance(logger.name, str):\n        here()\n", Ranks.ALL),
     ("    if isinstance(model.experiment.name, str):\n        here()\n", Ranks.ALL)],
)  # fmt: skip
def test_the_type_of_an_experiment(lines: str, ranks: Ranks) -> None:
    assert coming(LIGHTNING + lines) is ranks
    assert coming(LIGHTNING.replace("import lightning as L", "import own as L") + lines) is Ranks.ALL  # another class's
