from __future__ import annotations

import textwrap

import pytest

from codemods.api.findings import Applicability
from codemods.ranks.unguarded_hook import UnguardedHook
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

IMPORTS = """\
import json, os
import torch
import matplotlib.pyplot as plt
from lightning.pytorch.callbacks import Callback
"""
PLANNED = IMPORTS + "from lightning.pytorch.utilities import rank_zero_only\n"


def callback(hook: str, *lines: str, rest: str = "", imports: str = IMPORTS, decorator: str = "") -> str:
    body = "".join(f"        {line}\n" for line in lines)
    above = f"    {decorator}\n" if decorator else ""
    return f"{imports}\nclass Saver(Callback):\n{above}    def {hook}(self, trainer, pl_module):\n{body}{rest}"


def decorated(hook: str, *lines: str, rest: str = "") -> str:
    return callback(hook, *lines, rest=rest, imports=PLANNED, decorator="@rank_zero_only")


def test_example_of_the_page() -> None:
    sections = UnguardedHook.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(UnguardedHook, before, after)


@pytest.mark.parametrize(
    "lines",
    [
        ("print('start')",),
        ("with open('a.txt', 'w') as f:", "    f.write(str(trainer.current_epoch))"),
        ("plt.plot([1, 2])", "plt.savefig('loss.png')", "plt.close()"),
        ("fig, ax = plt.subplots()", "ax.plot([1])", "fig.savefig('a.png')"),
        ("rows = sorted(self.names)", "for row in rows:", "    print(row)"),
        ("total = sum(p.numel() for p in pl_module.parameters())", "print(f'{total:,}')"),
        ("super().on_train_start(trainer, pl_module)", "print('a')"),
        ("if trainer.sanity_checking:", "    return", "print('a')"),
    ],
)
def test_output_alone_is_left_to_rank_zero(lines: tuple[str, ...]) -> None:
    check_transformed(UnguardedHook, callback("on_train_start", *lines), decorated("on_train_start", *lines))


def test_two_spaces_an_alias_and_a_decorator_that_is_there() -> None:
    before = """\
        import pytorch_lightning as pl
        from pytorch_lightning.utilities import rank_zero_only as main_only
        import torch

        class Model(pl.LightningModule):
          # writes the shapes
          @torch.no_grad()
          def on_fit_end(self):  # at the end
            for name, p in self.named_parameters():
              print(name, tuple(p.shape))
        """
    after = before.replace("  @torch.no_grad()\n", "  @torch.no_grad()\n          @main_only\n")
    check_transformed(UnguardedHook, before, after)


def test_tabs_and_the_older_flavour() -> None:
    before = "import pytorch_lightning as pl\n\nclass A(pl.Callback):\n\tdef on_fit_end(self, trainer, m):\n\t\tprint('a')\n"
    planned = "import pytorch_lightning as pl\nfrom pytorch_lightning.utilities import rank_zero_only\n"
    after = before.replace("import pytorch_lightning as pl\n", planned)
    check_transformed(UnguardedHook, before, after.replace("\tdef", "\t@rank_zero_only\n\tdef"))


def test_a_base_class_in_another_file() -> None:
    files = {"base.py": "from lightning.pytorch import Callback\n\nclass Base(Callback):\n    pass\n"}
    hook = "class A(Base):\n    def on_fit_end(self, trainer, pl_module):\n        print('a')\n"
    before = f"import lightning as L\nfrom base import Base\n\n{hook}"
    planned = "from base import Base\nfrom lightning.pytorch.utilities import rank_zero_only\n"
    after = before.replace("from base import Base\n", planned)
    check_transformed(UnguardedHook, before, after.replace("    def", "    @rank_zero_only\n    def"), files=files)


WRITER = """
    def _write(self, text):
        with open(self.path, "a") as f:
            f.write(text)

    def on_fit_end(self, trainer, pl_module):
        self._write("end")
"""


def test_a_writing_helper_that_several_hooks_reach() -> None:
    before = callback("on_train_start", "self._write('start')", rest=WRITER)
    after = decorated("on_train_start", "self._write('start')", rest=WRITER.replace("    def", "    @rank_zero_only\n    def"))
    check_transformed(UnguardedHook, before, after)


@pytest.mark.parametrize(
    ("hook", "line", "decorator"),
    [
        ("on_train_start", "self._write('start')", "@rank_zero_only"),
        ("on_train_start", "if trainer.is_global_zero: self._write('start')", ""),
        ("on_train_start", "if not trainer.is_global_zero: return\n        self._write('start')", ""),
        ("_note", "self._write('start')", "@rank_zero_only"),
    ],
)
def test_a_helper_of_guarded_calls_alone(hook: str, line: str, decorator: str) -> None:
    rest = "\n    def _write(self, name):\n        with open(name, 'w') as f:\n            f.write(name)\n"
    if not hook.startswith("on_"):
        rest += f"\n    def on_fit_end(self, trainer, pl_module):\n        self.{hook}(trainer, pl_module)\n"
    source = callback(hook, line, rest=rest, imports=PLANNED, decorator=decorator)
    assert not [f for f in findings_of(UnguardedHook, source) if "_write" in f.message]


def test_a_helper_with_one_call_that_nothing_guards() -> None:
    rest = WRITER.replace("    def on_fit_end", "    @rank_zero_only\n    def on_fit_end")
    source = callback("on_train_start", "self._write('start')", rest=rest, imports=PLANNED)
    assert any("_write" in f.message for f in findings_of(UnguardedHook, source))


def test_a_helper_without_self() -> None:
    rest = "\n    @staticmethod\n    def _save(folder):\n        with open(folder, 'w') as f:\n            f.write('a')\n"
    before = callback("on_fit_end", "self._save('a')", rest=rest)
    after = decorated("on_fit_end", "self._save('a')", rest=rest.replace("    def", "    @rank_zero_only\n    def"))
    check_transformed(UnguardedHook, before, after)


def test_a_helper_that_the_constructor_calls_too_stays() -> None:
    rest = WRITER.replace("    def on_fit_end(self, trainer, pl_module)", "    def __init__(self)")
    before = callback("on_train_start", "self._write('start')", rest=rest)
    check_transformed(UnguardedHook, before, decorated("on_train_start", "self._write('start')", rest=rest))


def test_a_helper_whose_value_is_used_stays() -> None:
    rest = "\n    def on_fit_end(self, trainer, pl_module):\n        self.done = self._write('end')\n        trainer.x = 1\n"
    before = callback("_write", "with open(pl_module, 'a') as f:", "    f.write(trainer)", rest=rest)
    check_nothing(UnguardedHook, before)


@pytest.mark.parametrize("hook", ["on_validation_epoch_end", "on_test_epoch_end"])
def test_evaluation_metrics_may_be_read_under_the_decorator(hook: str) -> None:
    lines = ("metrics = {k: v for k, v in trainer.callback_metrics.items()}", "print(metrics)")
    check_transformed(UnguardedHook, callback(hook, *lines), decorated(hook, *lines))


LOGS = """
import lightning.pytorch as pl


class Extra(pl.Callback):
    def on_validation_epoch_end(self, trainer, module):
        module.log("extra", self.value(trainer), sync_dist=True)
"""


def test_metrics_are_read_on_every_rank_where_a_callback_logs_in_the_same_hook() -> None:
    # measured: rank 0 reduces "extra" in its read, rank 1 does so after the module's own hook, whose collectives then mix up
    lines = ("print(sorted(trainer.callback_metrics))",)
    check_nothing(UnguardedHook, callback("on_validation_epoch_end", *lines), files={"extra.py": LOGS})
    same_class = callback("on_test_epoch_end", *lines)
    check_transformed(UnguardedHook, same_class, decorated("on_test_epoch_end", *lines), files={"extra.py": LOGS})


def test_what_the_module_logs_in_its_own_hook_comes_after_the_callbacks() -> None:
    lines = ("print(sorted(trainer.callback_metrics))",)
    module = LOGS.replace("pl.Callback", "pl.LightningModule").replace("self, trainer, module", "self")
    module = module.replace("module.log", "self.log")
    own_logger = LOGS.replace("module.log(", "self.logger.log(")
    for text in (module, own_logger):
        before, after = callback("on_validation_epoch_end", *lines), decorated("on_validation_epoch_end", *lines)
        check_transformed(UnguardedHook, before, after, files={"extra.py": text})


MODULE = """
import lightning.pytorch as pl


class Model(pl.LightningModule):
    def validation_step(self, batch, i):
        self.log("loss", self.loss(batch), {sync})

    def on_validation_epoch_end(self):
        {own}
"""


@pytest.mark.parametrize(
    ("sync", "own", "setting", "told"),
    [
        ("sync_dist=True", "self.show(self.all_gather(self.seen))", "2", True),
        ("sync_dist=True", "self.trainer.strategy.barrier()", "2", True),
        ("sync_dist=True", "self.seen.clear()", "2", False),
        ("sync_dist=False", "self.show(self.all_gather(self.seen))", "2", False),
        ("sync_dist=True", "self.show(self.all_gather(self.seen))", "0", False),
        ("sync_dist=True", "if not self.trainer.sanity_checking: self.show(self.all_gather(self.seen))", "2", False),
    ],
)
def test_the_first_read_of_the_sanity_check_beside_a_collective(sync: str, own: str, setting: str, told: bool) -> None:
    """Measured: rank 0 reduces what the sanity check's steps logged while rank 1 gathers in the module's hook: a hang."""
    files = {
        "model.py": MODULE.replace("{sync}", sync).replace("{own}", own),
        "train.py": f"import lightning.pytorch as pl\npl.Trainer(num_sanity_val_steps={setting})\n",
    }
    lines = ("print(sorted(trainer.callback_metrics))",)
    before = callback("on_validation_epoch_end", *lines)
    if told:
        found = check_told(UnguardedHook, before, reason="in the sanity check", files=files)
        assert "(model.py:" in found.reason and "read the metrics on every rank" in found.reason
    else:
        check_transformed(UnguardedHook, before, decorated("on_validation_epoch_end", *lines), files=files)


def test_a_hook_that_leaves_the_sanity_check_out_reads_what_is_reduced() -> None:
    files = {"model.py": MODULE.replace("{sync}", "sync_dist=True").replace("{own}", "self.trainer.strategy.barrier()")}
    lines = ("if not trainer.sanity_checking:", "    print(sorted(trainer.callback_metrics))")
    check_transformed(
        UnguardedHook, callback("on_validation_epoch_end", *lines), decorated("on_validation_epoch_end", *lines), files=files
    )
    plain = ("print(sorted(trainer.callback_metrics))",)
    check_transformed(UnguardedHook, callback("on_validation_end", *plain), decorated("on_validation_end", *plain), files=files)


def test_training_metrics_are_read_on_every_rank() -> None:
    check_nothing(UnguardedHook, callback("on_train_epoch_end", "metrics = trainer.callback_metrics", "print(metrics)"))


STATE = """
    def on_train_end(self, trainer, pl_module):
        print(time.time() - self.started)
"""


def test_state_that_only_decorated_hooks_read() -> None:
    lines = ("self.started = time.time()", "print('start')")
    imports = "import time\n" + IMPORTS
    before = callback("on_train_start", *lines, rest=STATE, imports=imports)
    rest = STATE.replace("    def", "    @rank_zero_only\n    def")
    after = callback(
        "on_train_start", *lines, rest=rest, imports="import time\n" + PLANNED, decorator="@rank_zero_only"
    )
    found = check_transformed(UnguardedHook, before, after)
    assert len({f.fix.group for f in found if f.fix}) == 1


def test_a_hook_that_sets_state_on_an_assumption_holds_back_no_reader() -> None:
    describe = "\n    def _describe(self, trainer):\n        print(len(trainer.datamodule.train_dataloader()))\n"
    lines = ("self.started = time.time()", "self._describe(trainer)")
    before = "import time\n" + callback("on_train_start", *lines, rest=describe + STATE)
    after = before.replace(IMPORTS, PLANNED).replace("    def on_train_end", "    @rank_zero_only\n    def on_train_end")
    check_transformed(UnguardedHook, before, after)


@pytest.mark.parametrize(
    "reader",
    [
        "    def setup(self, trainer, pl_module, stage):\n        self.x = self.started\n",
        "    def on_train_end(self, trainer, pl_module):\n        trainer.total = self.started\n",
        "    def state_dict(self):\n        return {'a': self.started}\n",
        "\ndef use(saver):\n    return saver.started\n",
    ],
)
def test_state_that_somebody_else_reads_keeps_the_hook(reader: str) -> None:
    check_nothing(UnguardedHook, callback("on_train_start", "self.started = 1", "print('start')", rest="\n" + reader))


def test_unknown_calls_beside_the_output_are_an_assumption() -> None:
    rest = "\n    def _describe(self, trainer):\n        table = trainer.table\n        print(table.described())\n"
    before = callback("on_train_start", "self._describe(trainer)", rest=rest)
    after = decorated("on_train_start", "self._describe(trainer)", rest=rest)
    found = check_transformed(UnguardedHook, before, after, unsafe=True)
    assert "described" in found[0].reason


@pytest.mark.parametrize(
    "call", ["trainer.datamodule.scores()", "self._scores(trainer)", "evaluate(pl_module)", "pl_module.evaluate()"]
)
def test_a_call_in_which_the_ranks_may_meet_keeps_the_hook(call: str) -> None:
    rest = f"\n    def _describe(self, trainer, pl_module):\n        print({call})\n"
    check_nothing(UnguardedHook, callback("on_train_start", "self._describe(trainer, pl_module)", rest=rest))


def test_a_collective_that_a_star_import_brings_is_seen() -> None:
    files = {
        "shown/__init__.py": "from .scores import *\n",
        "shown/scores.py": "import torch.distributed as dist\n\n\ndef evaluate(x):\n    dist.all_reduce(x)\n    return x\n",
    }
    rest = "\n    def _describe(self, trainer):\n        def show(x):\n            print(evaluate(x))\n\n        show(1)\n"
    source = callback("on_train_start", "self._describe(trainer)", rest=rest)
    check_nothing(UnguardedHook, source.replace("import torch\n", "import torch\nfrom shown import *\n"), files=files)


def test_output_that_can_stand_alone_under_a_test_is_no_reason_to_assume() -> None:
    rest = "\n    def _describe(self, trainer):\n        print(len(trainer.datamodule.train_dataloader()))\n"
    check_nothing(UnguardedHook, callback("on_train_start", "print('start')", "self._describe(trainer)", rest=rest))


@pytest.mark.parametrize(
    "line",
    [
        "trainer.strategy.barrier()",
        "trainer.save_checkpoint('a')",
        "folder = trainer.log_dir",
        "value = pl_module.acc.compute()",
        "pl_module.log('a', 1.0)",
        "x = torch.randn(2)",
        "y = pl_module(batch)",
        "raise ValueError",
        "trainer.should_stop = True",
        "pl_module.scale = 2",
        "self.schedule.step(pl_module)",
        "return -1",
    ],
)
def test_whatever_the_other_ranks_need_keeps_the_hook(line: str) -> None:
    check_nothing(UnguardedHook, callback("on_train_start", "print('start')", line))


@pytest.mark.parametrize(
    "hook", ["setup", "training_step", "validation_step", "configure_optimizers", "prepare_data", "on_save_checkpoint"]
)
def test_hooks_that_every_rank_needs_are_never_decorated(hook: str) -> None:
    check_nothing(UnguardedHook, callback(hook, "print('start')"))


@pytest.mark.parametrize(
    "line",
    [
        "print(f'rank {trainer.global_rank}')",
        "open(f'log-{trainer.local_rank}.txt', 'w').write('a')",
        "print(os.getpid())",
    ],
)
def test_output_of_the_rank_itself_stays(line: str) -> None:
    check_nothing(UnguardedHook, callback("on_train_start", line))


def test_hooks_that_are_guarded_stay() -> None:
    check_nothing(UnguardedHook, callback("on_fit_end", "if trainer.is_global_zero:", "    print('a')"))
    check_nothing(UnguardedHook, callback("on_fit_end", "if not trainer.is_global_zero:", "    return", "print('a')"))
    check_nothing(UnguardedHook, decorated("on_fit_end", "print('a')"))
    check_nothing(UnguardedHook, callback("on_fit_end", "trainer.logger.log_metrics({'a': 1})"))


def test_a_hook_that_only_creates_folders_stays() -> None:
    check_nothing(UnguardedHook, callback("on_train_start", "os.makedirs('a', exist_ok=True)"))


def test_what_steps_have_filled_in_is_told() -> None:
    source = """\
        import json
        import lightning.pytorch as pl

        class Model(pl.LightningModule):
            def validation_step(self, batch, batch_idx):
                self.rows.append(batch)

            def on_validation_epoch_end(self):
                with open("rows.json", "w") as f:
                    json.dump(self.rows, f)
        """
    check_told(UnguardedHook, source, reason="gather")
    lines = ("with open('a', 'a') as f:", "    f.write(str(pl_module.rows))")
    reader = callback("on_validation_epoch_end", *lines)
    check_told(UnguardedHook, reader, reason="gather", files={"model.py": textwrap.dedent(source)})
    source = IMPORTS + (
        "\nclass A(Callback):\n    def on_test_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):\n"
        "        with open('a', 'a') as f:\n            f.write(str(outputs))\n"
    )
    check_told(UnguardedHook, source, reason="`outputs`")


def test_no_flavour_of_lightning_is_told() -> None:
    files = {"base.py": "from lightning.pytorch import Callback\n\nclass Base(Callback):\n    pass\n"}
    source = "from base import Base\n\nclass A(Base):\n    def on_fit_end(self, trainer, pl_module):\n        print('a')\n"
    check_told(UnguardedHook, source, reason="no import here shows", files=files)


def test_a_class_of_nobody_stays() -> None:
    check_nothing(UnguardedHook, "class A(Base):\n    def on_fit_end(self, trainer, pl_module):\n        print('a')\n")
    assert not findings_of(UnguardedHook, "class A:\n    def on_fit_end(self):\n        print('a')\n")


TRANSFORMERS = """\
from transformers import TrainerCallback

class Log(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        \"\"\"One line each.\"\"\"
"""


def test_the_body_of_a_transformers_hook_is_guarded() -> None:
    before = TRANSFORMERS + "        # to the console\n        print(logs)\n        print(state.epoch)\n        return control\n"
    after = TRANSFORMERS + (
        "        # to the console\n        if state.is_world_process_zero:\n            print(logs)\n"
        "            print(state.epoch)\n        return control\n"
    )
    check_transformed(UnguardedHook, before, after)


@pytest.mark.parametrize(
    "line",
    ["control.should_save = True", "self.count += 1", "model(logs)", "self.trainer.evaluate()", "return logs or control"],
)
def test_a_transformers_hook_that_does_more_stays(line: str) -> None:
    check_nothing(UnguardedHook, TRANSFORMERS + f"        print(logs)\n        {line}\n        print(state)\n")


def test_a_transformers_hook_under_a_test_stays() -> None:
    check_nothing(UnguardedHook, TRANSFORMERS + "        if state.is_world_process_zero:\n            print(logs)\n")
    leaves = "        if not state.is_world_process_zero:\n            return\n        print(logs)\n"
    check_nothing(UnguardedHook, TRANSFORMERS + leaves)


def test_a_repository_s_own_tests() -> None:
    check_nothing(UnguardedHook, callback("on_train_start", "print('start')"), path="tests/test_saver.py")


def test_the_rank_that_raised_reports_it() -> None:
    head = "import lightning.pytorch as pl\n\n\nclass Report(pl.Callback):\n"
    source = head + "    def {}(self, trainer, pl_module, *rest):\n        print(rest)\n"
    check_nothing(UnguardedHook, source.format("on_exception"))
    assert findings_of(UnguardedHook, source.format("on_fit_end"))


COUNTED = """\
import json
import lightning.pytorch as pl
{extra}

class Progress(pl.Callback):
    def __init__(self, path):
        self.path, self.done = path, 0
{decorator}
    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        {step}
        with open(self.path, "w") as f:
            json.dump(self.done, f)
"""
PLANNED_HERE = {"extra": "from lightning.pytorch.utilities import rank_zero_only\n", "decorator": "\n    @rank_zero_only"}


@pytest.mark.parametrize(
    "step",
    ["self.done = trainer.global_step + 1", "self.done = trainer.current_epoch", "self.done += 1", "self.done = batch_idx + 1"],
)
def test_a_count_that_all_ranks_have_is_no_part_of_one(step: str) -> None:
    before, after = COUNTED.format(step=step, extra="", decorator=""), COUNTED.format(step=step, **PLANNED_HERE)
    check_transformed(UnguardedHook, before, after)


@pytest.mark.parametrize("step", ["self.done = outputs['loss'].item()", "self.done += len(batch)", "self.done = batch.sum()"])
def test_what_a_step_has_seen_is_still_told(step: str) -> None:
    check_told(UnguardedHook, COUNTED.format(step=step, extra="", decorator=""), reason="gather it on every rank")


HANDED = """
    import pickle

    import lightning.pytorch as pl

    class Model(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.found, self.names = [], ["a", "b"]

        def validation_step(self, batch, batch_idx):
            self.found.extend(self(batch))

        def on_validation_epoch_end(self):
            self.keep(self.{handed})

        def keep(self, rows):
            with open("rows.pkl", "wb") as f:
                pickle.dump(rows, f)
    """


def test_what_a_method_is_handed_of_the_own_share_is_gathered_first() -> None:
    reasons = {f.symbol: f.reason for f in findings_of(UnguardedHook, HANDED.format(handed="found"))}
    assert "`self.found` is filled in Model.validation_step" in reasons["Model.keep"]
    handed = findings_of(UnguardedHook, HANDED.format(handed="names"))
    assert [f.applicability for f in handed if f.symbol == "Model.keep"] == [Applicability.SAFE]


def test_a_hook_that_logs_one_line_of_many() -> None:
    head = "import logging\n" + IMPORTS + "\nlogger = logging.getLogger(__name__)\nlogging.basicConfig(level=logging.INFO)\n"
    steps = "".join(f"        logger.info('step {i}')\n" for i in range(3))
    arguments = "self, trainer, pl_module, outputs, batch, batch_idx"
    rest = f"\n    def on_train_batch_end({arguments}):\n{steps}        self.model.move(batch)\n"
    check_nothing(UnguardedHook, callback("on_train_epoch_start", "logger.info('start')", rest=rest, imports=head))
    assert findings_of(UnguardedHook, callback("on_train_epoch_start", "logger.info('start')", imports=head))


# What differs from rank to rank is said by each of them, and no repetition

SHARED_OUT = """\
import lightning.pytorch as pl
import numpy as np
import torch


class Net(pl.LightningModule):
    def {step}(self, batch, batch_idx):
        {kept}

    def {end}(self):
        {shown}
"""
KEPT = "self.scores.append(self.score(batch))"


def shown_at_the_end(shown: str, kept: str = KEPT, end: str = "on_test_epoch_end", step: str = "test_step") -> str:
    return SHARED_OUT.format(step=step, kept=kept, end=end, shown=shown.replace("\n", "\n        "))


@pytest.mark.parametrize(
    "source",
    [
        shown_at_the_end("print(f'score: {np.mean(self.scores):.3f}')"),
        shown_at_the_end("mean = np.mean([s['hits'] for s in self.scores])\nprint(f'hits: {mean}')"),
        shown_at_the_end("print('rows', torch.cat(self.scores).mean())", end="on_test_end"),
        shown_at_the_end("for i, kind in enumerate(self.kinds):\n    print(kind, np.array(self.scores[i]).std())",
                         kept="self.scores[batch_idx].append(self.score(batch))"),
        shown_at_the_end("rows = torch.stack(self.scores)\nbest = rows.max()\nprint(best)", end="on_validation_epoch_end",
                         step="validation_step"),
        shown_at_the_end("self.show()") + "\n    def show(self):\n        print(sum(self.scores) / len(self.scores))\n",
    ],
)  # fmt: skip
def test_a_number_of_the_own_share_is_no_repetition(source: str) -> None:
    check_nothing(UnguardedHook, source)


def test_a_number_of_the_own_share_that_a_base_class_keeps_is_no_repetition() -> None:
    base = """\
import lightning.pytorch as pl


class Base(pl.LightningModule):
    def keep(self, rows):
        self.rows.extend(rows)

    def score(self, batch):
        self.keep(self(batch))
"""
    heir = """\
from base import Base
import lightning.pytorch as pl


class Net(Base):
    def test_step(self, batch, batch_idx):
        self.score(batch)
"""
    end = "\n    def on_test_end(self):\n        print(sum(self.rows))\n"
    check_nothing(UnguardedHook, heir + end, files={"base.py": base})
    check_nothing(UnguardedHook, base + end, path="base.py", files={"net.py": heir})


@pytest.mark.parametrize(
    "shown",
    [
        "print(f'epoch {self.current_epoch} is done')",
        "print('tested on', len(self.kinds), 'kinds')",
        "print('score', self.trainer.callback_metrics['test/score'])",
        "print(f'took {time.time() - self.started:.1f} s')",
    ],
)
def test_what_all_ranks_say_alike_is_said_once(shown: str) -> None:
    before = "import time\n" + shown_at_the_end(shown, kept="self.log('test/score', self.score(batch), sync_dist=True)")
    found = findings_of(UnguardedHook, before)
    assert [f.fix.applicability for f in found if f.fix is not None] == [Applicability.SAFE]


def test_what_the_steps_have_gathered_is_said_once() -> None:
    gathering = shown_at_the_end("print(self.latest)", kept="self.keep(batch)")
    gathering += "\n    def keep(self, batch):\n        self.latest = self.all_gather(self.score(batch)).mean()\n"
    assert [f.applicability for f in findings_of(UnguardedHook, gathering)] == [Applicability.SAFE]


SCORED = """\
import lightning.pytorch as pl
import torch


class Scores(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.hits = torch.zeros(3)
        self.steps = 0
        self.limit = 3

    def forward(self, guesses, labels):
        self.steps += 1
        for guess, label in zip(guesses, labels):
            self.hits[label] += 1
        return (guesses - labels).square().mean()

    def show(self):
        share = self.hits / self.hits.sum()
        print("shares", share)


class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.scores = Scores()

    def test_step(self, batch, number):
        return self.scores(*batch)

    def on_test_epoch_end(self):
        self.scores.show()
"""


def test_what_another_object_has_counted_of_this_rank_s_samples_is_no_repetition() -> None:
    check_nothing(UnguardedHook, SCORED)
    check_nothing(UnguardedHook, SCORED.replace('"shares", share', '"rows", self.hits'))


@pytest.mark.parametrize("shown", ["self.limit", "self.steps"])
def test_what_another_object_counts_alike_on_all_ranks_is_one(shown: str) -> None:
    assert findings_of(UnguardedHook, SCORED.replace("self.hits / self.hits.sum()", shown))
