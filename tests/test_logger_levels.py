"""A logger that a class builds on every rank: its level goes by the rank, and its lines stay as they are."""

from __future__ import annotations

import pytest

from codemods.ranks.unguarded_hook import UnguardedHook
from codemods.ranks.unguarded_print import UnguardedPrint
from ddpfix.testing import check_nothing, check_transformed, findings_of, fix

BUILT = "        self.log = logging.getLogger('history')\n        self.log.setLevel(logging.INFO)\n"
HELPER = (
    "        self.log = self._build()\n\n    def _build(self):\n        log = logging.getLogger('history')\n"
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
        self.log.info("start")
        self.log.info("epochs: %s", trainer.max_epochs)
        pl_module.note()
        self.log.info("devices: %s", trainer.num_devices)
        self.log.warning("no limit of time")

    def on_train_end(self, trainer, pl_module):
        self.log.info("end")
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
                self.log = logging.getLogger("train")
                self.log.setLevel(level=logging.DEBUG)

            def fit(self):
                if self.rank == 0:
                    self.log.info("a")
                step()
                self.log.info("b")
                step()
                self.log.info("c")
                step()
                self.log.info("d")

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
        ('        self.log.info("end")', '        print("end")'),  # three lines: as many guards
        ("        self.log.info(\"end\")", "        self.log.info('rank %s ends', trainer.global_rank)"),
        ("self.log.setLevel(logging.INFO)", "self.log.addHandler(handler)"),
        ("self.log.setLevel(logging.INFO)", "if path:\n            self.log.setLevel(logging.INFO)"),
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
