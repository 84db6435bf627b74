"""The check on the product itself: a fix after which some ranks would wait for others is withdrawn and told."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Finding, InsertAfter, RemoveStatement, SetKeyword, WrapInGuard
from codemods.engine.fix_source import FixResult, fix_project
from codemods.files.source import SourceModule
from codemods.ranks.makedirs_race import MakedirsRace
from codemods.store.project import Project

HEAD = "import torch\nimport torch.distributed as dist\n\n\n"


class Planted(DdpCodemod):
    """Bad on purpose: it puts every barrier under a test of the rank."""

    code = "DDP999"
    TRIGGERS = ((b"barrier",),)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        for call in module.calls_named("barrier"):
            statement = module.statement_of(call)
            if not isinstance(module.parent(statement), ast.If):
                span = module.span(statement)
                edit = WrapInGuard(module.path, span, "dist.get_rank() == 0", span)
                yield self.finding(module, statement, "planted", level=Applicability.SAFE, edits=[edit])


class PlantedRemoval(DdpCodemod):
    """Bad on purpose: it takes the barrier out of the function `wait`."""

    code = "DDP998"
    TRIGGERS = ((b"barrier",),)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        for call in module.calls_named("barrier"):
            function = module.function_of(call)
            if function is not None and function.name == "wait":
                statement = module.statement_of(call)
                edit = RemoveStatement(module.path, module.span(statement))
                yield self.finding(module, statement, "planted", level=Applicability.SAFE, edits=[edit])


class PlantedSync(DdpCodemod):
    """Right alone: a training value is reduced at the end of the epoch."""

    code = "DDP996"
    TRIGGERS = ((b"self.log",),)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        for call in module.calls_named("log"):
            if not any(k.arg == "sync_dist" for k in call.keywords):
                edit = SetKeyword(module.path, module.span(call), "sync_dist", "True")
                yield self.finding(module, call, "planted", level=Applicability.SAFE, edits=[edit])


class PlantedBarrier(DdpCodemod):
    """Right alone: all ranks wait at the end of a hook."""

    code = "DDP997"
    TRIGGERS = ((b"on_train_epoch_end",),)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        for function in module.functions:
            if function.name == "on_train_epoch_end" and "barrier" not in module.text_of(function):
                edit = InsertAfter(module.path, module.span(function.body[-1]), "self.trainer.strategy.barrier()")
                yield self.finding(module, function, "planted", level=Applicability.SAFE, edits=[edit])


def fixed(files: dict[str, str], *codemods: DdpCodemod) -> FixResult:
    project = Project.of({path: text.encode() for path, text in files.items()})
    return fix_project(project, lambda p, paths: dict.fromkeys(paths, codemods), sorted(files))


def test_a_barrier_that_only_one_rank_would_reach() -> None:
    made = fixed({"a.py": f"{HEAD}def save(x):\n    torch.save(x, 'p')\n    dist.barrier()\n"}, Planted())
    assert made.changed == {} and made.fixed == ()
    ((finding, reason),) = made.withdrawn
    assert finding.code == "DDP999"
    assert reason == (
        "with it rank 0 would come to torch.distributed.barrier (a.py:8) without the other ranks: the run would hang"
    )


def test_the_other_fixes_of_the_file_are_made() -> None:
    source = f"import os\n{HEAD}def main(x):\n    os.makedirs('runs')\n    dist.barrier()\n"
    made = fixed({"a.py": source}, Planted(), MakedirsRace())
    assert [f.code for f in made.fixed] == ["DDP204"]
    assert [f.code for f, _ in made.withdrawn] == ["DDP999"]
    assert b"    os.makedirs('runs', exist_ok=True)\n    dist.barrier()\n" in made.changed["a.py"]


def test_a_caller_in_another_file_is_looked_at_too() -> None:
    files = {
        "work/waiting.py": f"{HEAD}def save(x):\n    write(x)\n    dist.barrier()\n\n\ndef wait():\n    dist.barrier()\n",
        "train.py": (
            "import torch.distributed as dist\nfrom work.waiting import save, wait\n\n\ndef main(x):\n"
            "    if dist.get_rank() == 0:\n        save(x)\n    else:\n        wait()\n"
        ),
    }
    made = fixed(files, PlantedRemoval())
    assert made.changed == {}
    assert [reason for _, reason in made.withdrawn] == [
        "with it rank 0 would come to save() (train.py:7) without the other ranks: the run would hang"
    ]


def test_where_nobody_calls_it_by_rank_the_same_fix_is_made() -> None:
    source = f"{HEAD}def wait():\n    dist.barrier()\n    print(1)\n\n\nwait()\n"
    assert [f.code for f in fixed({"a.py": source}, PlantedRemoval()).fixed] == ["DDP998"]


CLASS = """
import lightning.pytorch as pl


class Net(pl.LightningModule):
    def training_step(self, batch, batch_idx):
        loss = self.net(batch)
        self.log("loss", loss, on_epoch=True)
        return loss
"""
HOOK = """
    def on_train_epoch_end(self):
        self.done += 1
"""


def test_two_fixes_of_a_class_that_are_right_only_one_at_a_time() -> None:
    made = fixed({"a.py": CLASS + HOOK}, PlantedSync(), PlantedBarrier())
    assert [f.code for f in made.fixed] == ["DDP997"]
    ((finding, reason),) = made.withdrawn
    assert finding.code == "DDP996" and "would reduce the training value of a.py:8" in reason
    alone = fixed({"a.py": CLASS + HOOK}, PlantedSync())
    assert [f.code for f in alone.fixed] == ["DDP996"] and alone.withdrawn == ()


def test_the_two_classes_may_stand_in_two_files() -> None:
    callback = f"import lightning.pytorch as pl\n\n\nclass Watch(pl.Callback):{HOOK}".replace("(self)", "(self, trainer, m)")
    made = fixed({"a.py": CLASS, "b.py": callback}, PlantedSync(), PlantedBarrier())
    assert [f.code for f, _ in made.withdrawn] == ["DDP996"]
