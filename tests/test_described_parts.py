"""Settings that describe a model: which of its modules a Trainer calls, and which arguments nobody turns on."""

from __future__ import annotations

import ast

import pytest

from codemods.analysis.class_index import find_class
from codemods.analysis.files.never_true import is_never_asked_for
from codemods.analysis.ranks.described_parts import is_only_a_part
from codemods.store.project import Project
from ddpfix.testing import project_of

NETS = """\
import lightning.pytorch as pl


class Painter(pl.LightningModule):
    def __init__(self, coder, averaged=True, pace=None):
        super().__init__()
        self.averaged = averaged
        self.paced = pace is not None

    def on_train_start(self):
        if self.averaged:
            print("with averaged weights")
        if self.paced:
            print("at a pace")


class Coder(pl.LightningModule):
    def configure_optimizers(self):
        print("the coder's rate")
"""
SETTINGS = """\
model:
  target: nets.Painter
  params:
    averaged: false
    coder:
      target: nets.Coder
"""


def built(settings: str, source: str = NETS, **more: str) -> Project:
    return project_of("x = 1\n", {"nets.py": source, "conf/painter.yaml": settings, **more})


def part(project: Project, name: str) -> bool:
    module = project.module("nets.py")
    assert module is not None
    site = find_class(project, module, name)
    assert site is not None
    return is_only_a_part(project, site)


def never(project: Project, text: str) -> bool:
    module = project.module("nets.py")
    assert module is not None
    prints = (c for c in module.nodes(ast.Call) if ast.unparse(c.func) == "print")
    return is_never_asked_for(project, module, next(c for c in prints if text in ast.unparse(c)))


def test_what_stands_below_another_object_is_a_part() -> None:
    project = built(SETTINGS)
    assert part(project, "Coder")
    assert not part(project, "Painter")


@pytest.mark.parametrize("words", [("_target_", "init_args"), ("class_path", "init_args")])
def test_the_words_of_other_frameworks(words: tuple[str, str]) -> None:
    assert part(built(SETTINGS.replace("target", words[0]).replace("params", words[1])), "Coder")


def test_settings_of_its_own_make_it_the_outermost() -> None:
    project = built(SETTINGS, **{"conf/coder.yaml": "model:\n  target: nets.Coder\n"})
    assert not part(project, "Coder")


@pytest.mark.parametrize(
    ("path", "text"),
    [("train.py", "from nets import Coder\n\nTrainer().fit(Coder())\n"), ("run.sh", "python train.py --model nets.Coder\n")],
)
def test_who_else_may_make_it(path: str, text: str) -> None:
    assert not part(built(SETTINGS, **{path: text}), "Coder")


def test_another_file_of_that_name_is_no_description() -> None:
    assert not part(built(SETTINGS.replace("nets.Coder", "other.Coder")), "Coder")


def test_an_argument_that_all_settings_leave_off() -> None:
    project = built(SETTINGS)
    assert never(project, "averaged")
    assert never(project, "pace")


def test_an_argument_that_is_on_by_default_or_in_one_of_them() -> None:
    assert not never(built(SETTINGS.replace("    averaged: false\n", "")), "averaged")
    assert not never(built(SETTINGS, **{"conf/other.yaml": SETTINGS.replace("false", "true")}), "averaged")
    assert not never(built(SETTINGS.replace("averaged: false", "pace: 3")), "pace")


def test_an_heir_that_is_described_counts_and_may_turn_it_on() -> None:
    heir = "\n\nclass Quick(Painter):\n    def __init__(self, **given):\n        super().__init__(None, **given)\n"
    described = SETTINGS.replace("nets.Painter", "nets.Quick")
    assert never(built(described, NETS + heir), "averaged")
    loud = heir.replace("**given)\n", "averaged=True, **given)\n")
    assert not never(built(described, NETS + loud), "averaged")


def test_a_program_that_makes_one_may_turn_it_on() -> None:
    program = "from nets import Painter\n\nnet = Painter(None, averaged=True)\n"
    assert not never(built(SETTINGS, **{"train.py": program}), "averaged")


def test_a_template_that_is_not_read() -> None:
    assert not part(built("model: {% if x %}\n  target: nets.Coder\n"), "Coder")
