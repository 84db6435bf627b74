from __future__ import annotations

import pytest

from codemods.ranks.forbidden_rank_zero_decorator import ForbiddenRankZeroDecorator
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

IMPORTS = """\
import torch
import lightning.pytorch as pl
"""
USED = IMPORTS + "from lightning.pytorch.utilities import rank_zero_only\n"


def module(hook: str, *lines: str, base: str = "LightningModule", decorated: bool = True, rest: str = "") -> str:
    body = "".join(f"        {line}\n" for line in lines)
    above = "    @rank_zero_only\n" if decorated else ""
    return f"{USED if decorated else IMPORTS}\nclass Model(pl.{base}):\n{above}    def {hook}:\n{body}{rest}"


def test_example_of_the_page() -> None:
    sections = ForbiddenRankZeroDecorator.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(ForbiddenRankZeroDecorator, before, after)


@pytest.mark.parametrize(
    ("hook", "line", "base"),
    [
        ("training_step(self, batch, batch_idx)", "return self(batch).mean()", "LightningModule"),
        ("configure_optimizers(self)", "return torch.optim.Adam(self.parameters())", "LightningModule"),
        ("forward(self, x)", "return self.net(x)", "LightningModule"),
        ("lr_scheduler_step(self, scheduler, metric)", "scheduler.step()", "LightningModule"),
        ("train_dataloader(self)", "return make_loader(self.root)", "LightningDataModule"),
        ("setup(self, stage)", "self.train_set = make(stage)", "LightningDataModule"),
        ("on_fit_start(self, trainer, pl_module)", "self.best = 0", "Callback"),
    ],
)
def test_hooks_that_every_rank_needs(hook: str, line: str, base: str) -> None:
    after = module(hook, line, base=base, decorated=False)
    check_transformed(ForbiddenRankZeroDecorator, module(hook, line, base=base), after)


@pytest.mark.parametrize(
    ("hook", "line", "base"),
    [
        ("prepare_data(self)", "fetch(self.root)", "LightningDataModule"),
        ("validation_step(self, batch, batch_idx)", "self.log('a', self(batch).mean())", "LightningModule"),
        ("setup(self, stage)", "self.data = make(self.root, download=True)", "LightningDataModule"),
        ("on_load_checkpoint(self, checkpoint)", "self.best = checkpoint['best']", "LightningModule"),
        ("on_save_checkpoint(self, checkpoint)", "checkpoint['best'] = self.best", "LightningModule"),
    ],
)
def test_hooks_where_it_takes_an_assumption(hook: str, line: str, base: str) -> None:
    after = module(hook, line, base=base, decorated=False)
    found = check_transformed(ForbiddenRankZeroDecorator, module(hook, line, base=base), after, unsafe=True)
    assert found[0].reason


def test_output_inside_stays_on_rank_zero() -> None:
    hook = "training_step(self, batch, batch_idx)"
    lines = ("loss = self(batch).mean()", "print(loss)", "with open('a', 'a') as f:", "    f.write(str(loss))", "return loss")
    guarded = (lines[0], "if self.global_rank == 0:", *("    " + x for x in lines[1:4]), lines[4])
    check_transformed(ForbiddenRankZeroDecorator, module(hook, *lines), module(hook, *guarded, decorated=False))


def test_output_that_no_guard_fits_takes_an_assumption() -> None:
    hook = "training_step(self, batch, batch_idx)"
    lines = ("self.size = open('a', 'w').write('a')", "return self(batch).mean()")
    after = module(hook, *lines, decorated=False)
    found = check_transformed(ForbiddenRankZeroDecorator, module(hook, *lines), after, unsafe=True)
    assert "every rank then" in found[0].reason


def test_an_import_that_something_else_uses_stays() -> None:
    rest = "\n    @rank_zero_only\n    def on_fit_end(self):\n        print('a')\n"
    before = module("forward(self, x)", "return x", rest=rest)
    check_transformed(ForbiddenRankZeroDecorator, before, before.replace("    @rank_zero_only\n    def f", "    def f", 1))


def test_two_hooks_and_their_import_go_together() -> None:
    rest = "\n    @rank_zero_only\n    def configure_optimizers(self):\n        return torch.optim.Adam(self.parameters())\n"
    before = module("forward(self, x)", "return x", rest=rest)
    after = before.replace("    @rank_zero_only\n", "").replace(USED, IMPORTS)
    found = check_transformed(ForbiddenRankZeroDecorator, before, after)
    assert len({f.fix.group for f in found if f.fix}) == 1


def test_aliases_two_spaces_and_other_decorators() -> None:
    before = """\
        from pytorch_lightning import LightningModule
        from pytorch_lightning.utilities import rank_zero_only as main_only, seed

        class Model(LightningModule):
          @torch.no_grad()
          @main_only
          # the forward pass
          def forward(self, x):
            return x
        """
    after = before.replace("          @main_only\n", "").replace("rank_zero_only as main_only, seed", "seed")
    check_transformed(ForbiddenRankZeroDecorator, before, after)


def test_a_dotted_decorator_and_a_base_class_in_another_file() -> None:
    files = {"base.py": "import pytorch_lightning as pl\n\nclass Base(pl.LightningModule):\n    pass\n"}
    before = """\
        import pytorch_lightning as pl
        from base import Base

        class Model(Base):
            @pl.utilities.rank_zero_only
            def forward(self, x):
                return x
        """
    check_transformed(
        ForbiddenRankZeroDecorator, before, before.replace("            @pl.utilities.rank_zero_only\n", ""), files=files
    )


@pytest.mark.parametrize(
    ("hook", "line", "base"),
    [
        ("on_train_start(self)", "print('a')", "LightningModule"),
        ("on_fit_start(self)", "print('a')", "LightningModule"),
        ("on_fit_start(self, trainer, pl_module)", "trainer.logger.log_hyperparams({'size': len(trainer.loggers)})", "Callback"),
        ("on_fit_start(self)", "pass", "LightningModule"),
        ("teardown(self, stage)", "open('a', 'w').write('b')", "LightningModule"),
        ("setup(self, trainer, pl_module, stage)", "print(stage)", "Callback"),
        ("on_save_checkpoint(self, checkpoint)", "self.net.save_pretrained('a')", "LightningModule"),
        ("prepare_data(self)", "pass", "LightningDataModule"),
        ("prepare_data(self)", "print(self.root)", "LightningDataModule"),
        ("describe(self)", "return str(self)", "LightningModule"),
    ],
)
def test_hooks_where_the_decorator_is_right(hook: str, line: str, base: str) -> None:
    check_nothing(ForbiddenRankZeroDecorator, module(hook, line, base=base))


def test_other_decorators_and_classes_are_left_alone() -> None:
    source = "from mine import rank_zero_only\n\nclass A:\n    @rank_zero_only\n    def forward(self, x):\n        return x\n"
    check_nothing(ForbiddenRankZeroDecorator, source)
    check_nothing(ForbiddenRankZeroDecorator, module("forward(self, x)", "return x", decorated=False) + "# rank_zero_only\n")


def test_an_observer_that_changes_what_a_step_reads_is_for_every_rank() -> None:
    source = """\
        import pytorch_lightning as pl
        from pytorch_lightning.utilities import rank_zero_only

        class Model(pl.LightningModule):
            def validation_step(self, batch, batch_idx):
                self.rows.append(batch)

            @rank_zero_only
            def on_validation_end(self):
                print(len(self.rows))
                self.rows.clear()
        """
    after = source.replace("            @rank_zero_only\n", "").replace(
        "print(len(self.rows))", "self.print(len(self.rows))"
    ).replace("        from pytorch_lightning.utilities import rank_zero_only\n", "")
    found = check_transformed(ForbiddenRankZeroDecorator, source, after, unsafe=True)
    assert "self.rows" in found[0].message
    told = check_told(ForbiddenRankZeroDecorator, source.replace("print(len(self.rows))", "x = print(self.f(self.rows))"),
                      reason="on every rank")
    assert "self.rows" in told.message


COUNTS = (
    "count = sum(p.numel() for p in pl_module.parameters())",
    "if isinstance(trainer.logger.experiment, Run):",
    "    trainer.logger.experiment.summary['parameters'] = count",
    "trainer.logger.log_hyperparams({'parameters': count})",
)


def test_a_hook_that_counts_and_logs() -> None:
    hook = "on_fit_start(self, trainer, pl_module)"
    check_nothing(ForbiddenRankZeroDecorator, module(hook, *COUNTS, base="Callback"))
    kept = module(hook, *COUNTS, "self.count = count", base="Callback")
    assert findings_of(ForbiddenRankZeroDecorator, kept)


TIMED = (
    "pl_module.eval()",
    "start = torch.cuda.Event(enable_timing=True)",
    "start.record()",
    "pl_module(trainer.sample)",
    "print(start)",
    "pl_module.train()",
)


@pytest.mark.parametrize(
    ("lines", "above", "told"),
    [(TIMED, "    @torch.no_grad()\n", 0),
     (TIMED[:-1], "    @torch.no_grad()\n", 1),  # the model stays in eval mode
     (TIMED, "", 1),  # gradients are left
     ((*TIMED, "trainer.fill(pl_module)"), "    @torch.no_grad()\n", 1)],
)  # fmt: skip
def test_a_hook_that_measures_the_model(lines: tuple[str, ...], above: str, told: int) -> None:
    source = module("on_fit_start(self, trainer, pl_module)", *lines, base="Callback")
    found = findings_of(ForbiddenRankZeroDecorator, source.replace("    def on_fit", f"{above}    def on_fit"))
    assert len(found) == told


FILLED = """
    def test_step(self, batch, batch_idx):
        rows = self.all_gather(self(batch))
        TEST
            self.rows.append(rows)
"""


@pytest.mark.parametrize(
    ("test", "rest", "told"),
    [
        ("if self.global_rank == 0:", "", 0),
        ("if self.trainer.is_global_zero:", "", 0),
        ("if self.global_rank != 0:\n            return\n        if True:", "", 0),
        ("if batch_idx:", "", 1),
        ("if self.local_rank == 0:", "", 1),  # the first process of the second node has no rows
        ("if self.global_rank == 0:", "        print(len(self.rows))\n", 1),
    ],
)
def test_a_hook_that_sets_what_rank_0_alone_fills(test: str, rest: str, told: int) -> None:
    source = module("on_test_epoch_start(self)", "self.rows = []", rest=FILLED.replace("TEST", test) + rest)
    assert len(findings_of(ForbiddenRankZeroDecorator, source)) == told


def test_a_hook_that_sets_what_a_decorated_step_fills() -> None:
    """The step's own decorator goes as well, and every rank makes the step then."""
    step = FILLED.replace("TEST", "if True:").replace("    def test_step", "    @rank_zero_only\n    def test_step")
    found = findings_of(ForbiddenRankZeroDecorator, module("on_test_epoch_start(self)", "self.rows = []", rest=step))
    assert {f.symbol.rpartition(".")[2] for f in found} == {"on_test_epoch_start", "test_step"}
