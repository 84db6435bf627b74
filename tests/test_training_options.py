"""The flags of transformers' TrainingArguments are tests for rank 0 under whatever name, in whatever file, the object goes."""

from __future__ import annotations

import ast

import pytest

from codemods.analysis.ranks.rank_sets import Ranks
from codemods.analysis.ranks.rank_tests import split_of
from codemods.checkpoints.unguarded_save import UnguardedSave
from codemods.store.project import Project
from ddpfix.testing import findings_of

HELPER = """import torch


def save(net, options):
    if options.should_save:
        torch.save(net.state_dict(), 'net.pt')
"""
HEAD = (
    "from dataclasses import dataclass\n\nfrom transformers import HfArgumentParser, Trainer, TrainingArguments\n\n"
    "from helpers import save\n\n\n@dataclass\nclass Data:\n    path: str = ''\n    should_save: bool = True\n\n\n"
    "@dataclass\nclass Own(TrainingArguments):\n    path: str = ''\n\n\n"
)
MAIN = HEAD + "def main(net):\n    {}\n    Trainer(model=net, args=given).train()\n    save(net, given)\n"
MADE = [
    "given = TrainingArguments('out')",
    "given = TrainingArguments(**load())",
    "given = Own('out')",
    "(given,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()",
    "data, given = HfArgumentParser((Data, Own)).parse_args_into_dataclasses()",
    "parser = HfArgumentParser((TrainingArguments, Data))\n    given, data = parser.parse_json_file('a.json')",
]
OTHERS = [
    "given = Data()",
    "given = load()",
    "given, options = HfArgumentParser((Data, Own)).parse_args_into_dataclasses()",
    "given = Own('out') if big else Data()",
    "given, rest = HfArgumentParser(classes()).parse_args_into_dataclasses()",
]


def ranks_of(made: str, helper: str = HELPER) -> Ranks | None:
    """For which ranks the test of the helper is true."""
    project = Project.of({"train.py": MAIN.format(made).encode(), "helpers.py": helper.encode()})
    module = project.module("helpers.py")
    assert module is not None
    found = split_of(module, module.nodes(ast.If)[0].test, project)
    return found.true if found is not None else None


@pytest.mark.parametrize("made", MADE)
def test_its_flag_is_a_test_for_rank_zero(made: str) -> None:
    assert ranks_of(made) is Ranks.ZERO
    files = {"helpers.py": HELPER, "train.py": MAIN.format(made)}
    assert not any(findings_of(UnguardedSave, text, files, path=path) for path, text in files.items())


@pytest.mark.parametrize("made", OTHERS)
def test_the_flag_of_another_object(made: str) -> None:
    assert ranks_of(made) is None


def test_through_a_field() -> None:
    kept = (
        "import torch\n\n\nclass Saver:\n    def __init__(self, options):\n        self.options = options\n\n"
        "    def save(self, net):\n        if self.options.should_save:\n            torch.save(net, 'net.pt')\n"
    )
    for made, ranks in ((MADE[0], Ranks.ZERO), (OTHERS[0], None)):
        program = MAIN.replace("save(net, given)", "save(given).save(net)").replace("import save", "import Saver as save")
        project = Project.of({"train.py": program.format(made).encode(), "helpers.py": kept.encode()})
        module = project.module("helpers.py")
        assert module is not None
        found = split_of(module, module.nodes(ast.If)[0].test, project)
        assert (found.true if found is not None else None) is ranks


def test_by_what_a_parameter_is_noted_as() -> None:
    noted = HELPER.replace("import torch\n", "import torch\nfrom transformers import TrainingArguments\n")
    assert ranks_of("given = load()", noted.replace("options)", "options: TrainingArguments)")) is Ranks.ZERO
    other = noted.replace("TrainingArguments", "TrainerControl").replace("options)", "options: TrainerControl)")
    assert ranks_of("given = load()", other) is None
