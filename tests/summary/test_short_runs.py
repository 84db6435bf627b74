"""What is put into a command so that its run is short."""

from __future__ import annotations

import pytest

from ddpfix.summary import Launch, launches

START = "import argparse\nimport torch.distributed as dist\ndist.init_process_group('gloo')\nparser = argparse.ArgumentParser()\n"
EPOCHS = START + "parser.add_argument('--max-epochs', type=int, default=90)\n"
STEPS = START + "parser.add_argument('--max_steps', type=int)\n"
END = "args = parser.parse_args()\nprint('NEW')\n"


def shown(program: str, given: str = "", *, script: str = "main.py", **beside: str) -> Launch:
    texts = {script: program, "run.sh": f"torchrun {script}{given}\n", **{f"{k}.py": text for k, text in beside.items()}}
    old = {path: text.replace("NEW", "OLD").encode() for path, text in texts.items()}
    changed = {path: text.encode() for path, text in texts.items() if "NEW" in text}
    (found,) = launches(old, old.get, changed)
    return found


@pytest.mark.parametrize(
    ("program", "given", "behind", "short"),
    [
        (EPOCHS, "", " --max-epochs 1", "--max-epochs 1"),
        (EPOCHS, " --max-epochs 20", " --max-epochs 1", "--max-epochs 1"),
        (EPOCHS, " --max-epochs=$N", " --max-epochs=1", "--max-epochs 1"),
        (EPOCHS, " --max-epochs 1", " --max-epochs 1", ""),
        (START, " --N_EPOCHS 300", " --N_EPOCHS 1", "--N_EPOCHS 1"),
        (START, " trainer.max_epochs=50", " trainer.max_epochs=1", "trainer.max_epochs=1"),
        (STEPS, "", " --max_steps 10", "--max_steps 10"),
        (STEPS + "parser.set_defaults(x=1)\n", "", " --max_steps 10", "--max_steps 10"),
        (STEPS + "parser.add_argument('--epochs')\n", " --max_steps -1 --epochs 3", " --max_steps -1 --epochs 1", "--epochs 1"),
    ],
)
def test_the_number_of_epochs_or_steps(program: str, given: str, behind: str, short: str) -> None:
    found = shown(program + END, given)
    assert found.command.partition("main.py")[2] == behind
    assert (found.short, found.endless) == (short, False)


@pytest.mark.parametrize(
    "option",
    ["--warmup_epochs", "--start-epoch", "--save_every_epochs", "--eval_epochs", "--num_steps", "--epoch_step"],
)
def test_other_numbers_are_left(option: str) -> None:
    found = shown(START + f"parser.add_argument('{option}', type=int, default=5)\n" + END, f" {option} 7")
    assert found.command.endswith(f"main.py {option} 7") and found.endless


def test_a_program_without_such_an_option_is_stopped_by_hand() -> None:
    assert shown(START + END).endless
    switch = START + "parser.add_argument('--epochs', action='store_true')\n" + END
    assert shown(switch).command.endswith("main.py")
    parts = START + "subs = parser.add_subparsers()\nsubs.add_parser('fit').add_argument('--epochs')\n" + END
    assert shown(parts).command.endswith("main.py") and shown(parts).endless


def test_an_option_of_another_program_is_not_given() -> None:
    other = "import argparse\n\n\nif __name__ == '__main__':\n    parser = argparse.ArgumentParser()\n"
    other += "    parser.add_argument('--epochs', default=3)\n"
    assert shown("import other\n" + START + END, other=other).endless
    shared = "def add(parser):\n    parser.add_argument('--epochs', default=3)\n"
    assert shown("import shared\n" + START + END, shared=shared).short == "--epochs 1"


def test_what_is_done_in_some_epochs_only_is_not_lost() -> None:
    body = "args = parser.parse_args()\n\n\ndef report():\n    print('NEW')\n\n\nfor epoch in range(args.max_epochs):\n"
    rare = shown(EPOCHS + body + "    if epoch % 10 == 9:\n        report()\n", " --max-epochs 20")
    assert rare.command.endswith("--max-epochs 20") and rare.endless
    assert shown(EPOCHS + body + "    report()\n", " --max-epochs 20").short == "--max-epochs 1"
    refused = body + "    if args.max_epochs % 2:\n        raise ValueError\n    report()\n"
    assert shown(EPOCHS + refused, " --max-epochs 20").short == "--max-epochs 1"


def test_what_trains_nothing_is_short() -> None:
    test = EPOCHS + "parser.add_argument('--mode')\n" + END
    for found in (shown(test, " --mode test"), shown(EPOCHS + END, script="evaluate.py")):
        assert "epochs" not in found.command and not found.endless


def test_one_epoch_to_load_is_no_number_of_them() -> None:
    program = START + "parser.add_argument('--epoch', type=int)\n" + END
    assert shown(program, " --epoch 40").command.endswith("main.py --epoch 40")
    loop = "for epoch in range(args.epoch):\n    pass\n"
    assert shown(program + loop, " --epoch 40").short == "--epoch 1"


def test_a_switch_that_sounds_like_another_kind_of_run() -> None:
    switch = EPOCHS + "parser.add_argument('--embed_norm', action='store_true')\n" + END
    assert shown(switch, " --embed_norm").short == "--max-epochs 1"
    only = EPOCHS + "parser.add_argument('--eval_only', action='store_true')\n" + END
    assert shown(only, " --eval_only").short == ""


def test_options_that_classes_make() -> None:
    head = START + "from transformers import HfArgumentParser, TrainingArguments\n"
    head += "(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()\nprint('NEW')\n"
    assert shown(head).short == "--max_steps 10"
    made = "import draccus\n" + START + "class Settings:\n    max_steps: int = 100\n\n\n@draccus.wrap()\n"
    assert shown(made + "def go(cfg: Settings):\n    print('NEW')\n\n\ngo()\n").short == "--max_steps 10"


def test_keys_that_the_main_function_of_hydra_asks_for() -> None:
    program = "import hydra\nimport torch.distributed as dist\n\n\n@hydra.main(config_name='config')\ndef go(cfg):\n"
    program += "    dist.init_process_group('gloo')\n    print('NEW', cfg.data.max_epochs, cfg.data.warmup_epochs)\n\n\ngo()\n"
    assert shown(program).short == "data.max_epochs=1"
