"""DDP204 where the folder of a Trainer of transformers is named after each process's own clock."""

from __future__ import annotations

import pytest

from codemods.ranks.makedirs_race import MakedirsRace
from ddpfix.testing import check_nothing, check_told

HEAD = """import time
from transformers import HfArgumentParser, Trainer, TrainingArguments


def main(model, data):
    {made}
    {name}
    trainer = Trainer(model=model, args=args, train_dataset=data)
    trainer.train()
"""
PARSED = "args = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()[0]"
STAMP = "stamp = time.strftime('%H%M%S')"
FOLDER = "args.output_dir = f'{args.output_dir}/{stamp}'"


def program(*name: str, made: str = PARSED) -> str:
    return HEAD.format(made=made, name="\n    ".join(name) or "pass")


@pytest.mark.parametrize(
    "source",
    [
        program(STAMP, FOLDER),
        program("args.output_dir += time.strftime('-%H%M%S')"),
        program(STAMP, FOLDER, "args.output_dir += '-tuned'"),
        program(made=f"{STAMP}\n    args = TrainingArguments(output_dir=f'runs/{{stamp}}', num_train_epochs=3)"),
    ],
)
def test_a_folder_of_each_clock(source: str) -> None:
    found = check_told(MakedirsRace, source, reason="take the time on rank 0 and broadcast it")
    assert "save their parts of one state into folders of their own" in found.message
    assert "strftime" in source.splitlines()[found.span.line - 1]


@pytest.mark.parametrize(
    "source",
    [
        program(),
        program(STAMP, FOLDER, "args.output_dir = 'runs/last'"),  # another name in the end
        program(STAMP, "args.run_name = stamp"),
        program(STAMP, "if not args.output_dir:", "    args.output_dir = stamp"),  # where none is given
        program(STAMP, "stamp = broadcast_object_list([stamp])[0]", FOLDER),
        program("args.output_dir = f\"runs/{time.strftime('%Y%m%d')}\""),  # the ranks start on one day
        program(STAMP, FOLDER).replace("trainer.train()", "trainer.evaluate()"),
        program(made=f"{STAMP}\n    args = TrainingArguments(output_dir=f'runs/{{stamp}}', save_strategy='no')"),
        program(made=f"{STAMP}\n    args = TrainingArguments(output_dir=f'runs/{{stamp}}', save_only_model=True)"),
    ],
)
def test_one_folder_or_nothing_of_the_ranks_in_it(source: str) -> None:
    check_nothing(MakedirsRace, source)
