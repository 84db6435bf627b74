"""A logger that a class builds on every rank: its level goes by the rank, and its lines stay as they are."""

from __future__ import annotations

import pytest

from codemods.ranks.unguarded_hook import UnguardedHook
from codemods.ranks.unguarded_print import UnguardedPrint
from ddpfix.testing import check_nothing, check_transformed, findings_of, fix

BUILT = "        self.logger = logging.getLogger('history')\n        self.logger.setLevel(logging.INFO)\n"
HELPER = (
    "        self.logger = self._build()\n\n    def _build(self):\n        log = logging.getLogger('history')\n"
    "        log.setLevel(logging.INFO)\n        return log\n"
)
CALLBACK = """\
import logging
import lightning.pytorch as pl


class History(pl.Callback):
    def __init__(self, path):
{built}
    def on_train_start(self, trainer, pl_module):
        pl_module.count += 1
        self.logger.info("start")
        self.logger.info("epochs: %s", trainer.max_epochs)
        pl_module.note()
        self.logger.info("devices: %s", trainer.num_devices)
        self.logger.warning("no limit of time")

    def on_train_end(self, trainer, pl_module):
        self.logger.info("end")
"""
IMPORT = "from lightning.pytorch.utilities import rank_zero_only\n"
SET = "logging.INFO if rank_zero_only.rank == 0 else logging.WARNING"


def by_rank(source: str) -> str:
    source = source.replace("setLevel(logging.INFO)", f"setLevel({SET})")
    return source.replace("import lightning.pytorch as pl\n", f"import lightning.pytorch as pl\n{IMPORT}")


@pytest.mark.parametrize("built", [BUILT, HELPER])
def test_the_level_goes_by_the_rank_where_the_logger_is_built(built: str) -> None:
    before = CALLBACK.format(built=built)
    found = check_transformed(UnguardedPrint, before, by_rank(before))
    assert len(found) > 1, "one change answers several findings"
    check_transformed(UnguardedHook, before, by_rank(before))


def test_each_of_its_findings_makes_the_same_change() -> None:
    findings = findings_of(UnguardedPrint, CALLBACK.format(built=BUILT))
    assert len({f.edits for f in findings}) == 1


def test_a_class_of_the_project_asks_what_it_knows() -> None:
    source = """\
        import logging
        import torch.distributed as dist

        class Trainer:
            def __init__(self, args):
                self.rank = dist.get_rank()
                self.logger = logging.getLogger("train")
                self.logger.setLevel(level=logging.DEBUG)

            def fit(self):
                if self.rank == 0:
                    self.logger.info("a")
                step()
                self.logger.info("b")
                step()
                self.logger.info("c")
                step()
                self.logger.info("d")

        if __name__ == "__main__":
            dist.init_process_group("nccl")
            Trainer(1).fit()
        """
    after = source.replace("level=logging.DEBUG", "level=logging.DEBUG if self.rank == 0 else logging.WARNING")
    check_transformed(UnguardedPrint, source, after)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("getLogger('history')", "getLogger()"),  # the root logger: everybody's
        ('        self.logger.info("end")', '        print("end")'),  # three lines: as many guards
        ("        self.logger.info(\"end\")", "        self.logger.info('rank %s ends', trainer.global_rank)"),
        ("self.logger.setLevel(logging.INFO)", "self.logger.addHandler(handler)"),
        ("self.logger.setLevel(logging.INFO)", "if path:\n            self.logger.setLevel(logging.INFO)"),
        ("import logging\n", "import logging\n\nlog = logging.getLogger('history')\n"),  # others may speak through it
    ],
)
def test_where_the_lines_get_tests_of_their_own(old: str, new: str) -> None:
    source = CALLBACK.format(built=BUILT)
    assert old in source
    changed = fix(UnguardedPrint, source.replace(old, new)).changed["module.py"].decode()
    assert "if trainer.is_global_zero" in changed
    assert "logging.WARNING" not in changed


def test_ranks_that_fit_copies_from_the_first_process_are_told_at_the_lines() -> None:
    files = {"train.py": "import lightning as L\n\ntrainer = L.Trainer(strategy='ddp_spawn', devices=2)\n"}
    changed = fix(UnguardedPrint, CALLBACK.format(built=BUILT), files).changed["module.py"].decode()
    assert "if trainer.is_global_zero" in changed
    assert "logging.WARNING" not in changed


def test_a_level_that_goes_by_the_rank_is_enough() -> None:
    after = by_rank(CALLBACK.format(built=BUILT))
    check_nothing(UnguardedPrint, after)
    check_nothing(UnguardedHook, after)


QUIET = """\
import logging
from lightning.pytorch.utilities import rank_zero_only


def create(folder):
    logger = make(folder)
    if logger is None:
        logger = logging.getLogger()
        logger.setLevel(logging.CRITICAL)
    return logger


@rank_zero_only
def make(folder):
    logger = logging.getLogger()
    logger.setLevel(logging.INFO)
    return logger
"""
HOOKS = {
    "lightning.pytorch.Callback": "    def on_train_start(self, trainer, pl_module):\n",
    "transformers.TrainerCallback": "    def on_train_begin(self, args, state, control, **kwargs):\n",
}


@pytest.mark.parametrize("base", sorted(HOOKS))
def test_the_program_sets_its_loggers_up_by_the_rank(base: str) -> None:
    """The other ranks get None of what rank 0 alone makes, and a level that lets no line through."""
    source = (
        f"import logging\nimport {base.rpartition('.')[0]}\n\nlogger = logging.getLogger()\n\n\nclass Told({base}):\n"
        f"{HOOKS[base]}        logger.info('starts')\n"
    )
    assert findings_of(UnguardedHook, source)
    check_nothing(UnguardedHook, source, files={"logs.py": QUIET})
    printed = source.replace("logger.info('starts')", "print('starts')")
    assert findings_of(UnguardedHook, printed, files={"logs.py": QUIET}), "a print goes by no level"
