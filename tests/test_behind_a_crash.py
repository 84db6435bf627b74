"""Noise behind a line that is reported as the end of each run of several processes."""

from __future__ import annotations

import textwrap

import pytest

from codemods.api.codemod import DdpCodemod
from codemods.checkpoints.attribute_of_wrapper import AttributeOfWrapper
from codemods.engine.find import find_in
from codemods.engine.fix_source import fix_project, safe
from codemods.ranks.unguarded_print import UnguardedPrint
from codemods.store.project import Project
from ddpfix.testing import project_of

PROGRAM = """\
from accelerate import Accelerator
from transformers import AutoModel


class Runner:
    def __init__(self):
        self.accelerator = Accelerator()
        self.model = AutoModel.from_pretrained("bert-base-uncased")
        self.loader, self.optimizer = load(self.model)

    def run(self, args):
        self.model, self.loader = self.accelerator.prepare(self.model, self.loader)
        {body}

    def ask(self):
        return self.model.config.hidden_size


if __name__ == "__main__":
    Runner().run(parse())
"""
TEXT = {"README.md": "accelerate launch --multi_gpu --num_processes 4 module.py\n"}
BOTH: tuple[type[DdpCodemod], ...] = (AttributeOfWrapper, UnguardedPrint)


def source_of(body: str) -> str:
    return PROGRAM.format(body=textwrap.indent(body, " " * 8).lstrip())


def codes(project: Project, chosen: tuple[type[DdpCodemod], ...] = BOTH) -> set[str]:
    module = project.module("module.py")
    assert module is not None
    return {f.code for f in find_in(module, project, [c() for c in chosen])}


def told(body: str, chosen: tuple[type[DdpCodemod], ...] = BOTH) -> set[str]:
    return codes(project_of(source_of(body), TEXT), chosen)


@pytest.mark.parametrize(
    "body",
    [
        "size = self.model.config.hidden_size\nprint('size', size)",
        "self.model.config.output_attentions = False\nprint('off')",
        "for batch in range(args.steps):\n    size = self.model.config.hidden_size\n    print('size', size)",
        "size = self.ask()\nprint('size', size)",
        "print('start')\nsize = self.model.config.hidden_size",
        "if args.told:\n    print('start')\nsize = self.model.config.hidden_size",
    ],
)
def test_noise_that_no_run_of_several_processes_makes(body: str) -> None:
    assert told(body) == {"DDP507"}
    assert "DDP203" in told(body, (UnguardedPrint,))  # nobody says what else ends these runs


@pytest.mark.parametrize(
    "body",
    [
        # a run comes past the line
        "if args.told:\n    size = self.model.config.hidden_size\nprint('done')",
        "size = args.size or self.model.config.hidden_size\nprint('size', size)",
        "for batch in self.loader:\n    size = self.model.config.hidden_size\nprint('done')",
        # it trains for hours before it ends there
        "for batch in self.loader:\n    loss = self.model(batch)\n    self.accelerator.backward(loss)\n    print('one', batch)\n"
        "size = self.model.config.hidden_size",
        # the user has said that it is none
        "size = self.model.config.hidden_size  # ddpfix: ignore[DDP507] one process\nprint('size', size)",
    ],
)
def test_noise_that_is_made_in_a_run_of_several_processes(body: str) -> None:
    assert "DDP203" in told(body)


def test_noise_is_told_as_soon_as_the_line_is_put_right() -> None:
    project = project_of(source_of("size = self.model.config.hidden_size\nprint('size', size)"), TEXT)
    work = {"module.py": [c() for c in BOTH]}
    changed = fix_project(project, lambda _project, _paths: work, ["module.py"], safe).changed["module.py"]
    assert b"unwrap_model(self.model).config" in changed
    assert b"self.accelerator.print('size', size)" in changed
