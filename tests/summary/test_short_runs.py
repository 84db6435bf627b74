"""What is put into a command so that its run is short."""

from __future__ import annotations

import pytest

from ddpfix.summary import Launch, launches

START = "import argparse\nimport torch.distributed as dist\ndist.init_process_group('gloo')\nparser = argparse.ArgumentParser()\n"
EPOCHS = START + "parser.add_argument('--max-epochs', type=int, default=90)\n"
STEPS = START + "parser.add_argument('--max_steps', type=int)\n"
END = "args = parser.parse_args()\nprint('NEW')\nfor epoch in range(args.{}):\n    pass\n"


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
        (STEPS, "", " --max_steps 10", "--max_steps 10"),
        (STEPS + "parser.set_defaults(x=1)\n", "", "", ""),
        (STEPS, " --max_steps -1", " --max_steps -1", ""),
    ],
)
def test_the_number_of_epochs_or_steps(program: str, given: str, behind: str, short: str) -> None:
    found = shown(program + END.format("max_steps" if program.startswith(STEPS) else "max_epochs"), given)
    assert found.command.partition("main.py")[2] == behind
    assert found.short == short


@pytest.mark.parametrize(
    "loop",
    [
        "for epoch in range(args.max_epochs):\n    pass\n",
        "for epoch in tqdm(range(args.start, args.max_epochs)):\n    pass\n",
        "last = args.start + args.max_epochs\nfor epoch in range(last):\n    pass\n",
        "class Loop:\n    def __init__(self):\n        self.last = int(args.max_epochs)\n\n    def go(self):\n"
        "        while self.n < self.last:\n            pass\n",
        "while True:\n    if args.max_epochs and n >= args.max_epochs:\n        break\n",
        "from lightning import Trainer\nTrainer(max_epochs=args.max_epochs)\n",
    ],
)
def test_an_option_that_is_shown_to_end_the_loop(loop: str) -> None:
    body = EPOCHS + "args = parser.parse_args()\nprint('NEW')\n" + loop
    assert shown(body).short == "--max-epochs 1"
    assert shown(body.replace("args.max_epochs", "args.num_steps")).short == ""  # `--max-epochs` ends nothing
    assert shown(body.replace("print(", "vars(args)['max_epochs'] = 3\nargs.max_epochs = 3\nprint(")).short == ""


def test_a_key_of_a_trainer() -> None:
    body = START + "args = parser.parse_args()\nprint('NEW')\nfrom lightning import Trainer\n"
    assert shown(body + "Trainer(**read()).fit(None)\n", " trainer.max_epochs=50").short == "trainer.max_epochs=1"
    assert shown(body + "Trainer(**read()).test(None)\n", " trainer.max_epochs=50").short == ""


def test_a_count_that_a_schedule_alone_is_handed() -> None:
    body = EPOCHS + "args = parser.parse_args()\nprint('NEW')\nschedule = Schedule(max_epochs=args.max_epochs)\n"
    assert shown(body).short == "" and shown(body, " --max-epochs 20").command.endswith(" --max-epochs 20")


@pytest.mark.parametrize(
    "option",
    ["--warmup_epochs", "--start-epoch", "--save_every_epochs", "--eval_epochs", "--num_steps", "--epoch_step"],
)
def test_other_numbers_are_left(option: str) -> None:
    name = option.lstrip("-").replace("-", "_")
    found = shown(START + f"parser.add_argument('{option}', type=int, default=5)\n" + END.format(name), f" {option} 7")
    assert found.command.endswith(f"main.py {option} 7") and not found.short


def test_a_program_without_such_an_option_is_left() -> None:
    for parser in ("", "parser.add_argument('--epochs', action='store_true')\n", PARTS):
        assert shown(START + parser + END.format("epochs")).command.endswith("main.py")


PARTS = "subs = parser.add_subparsers()\nsubs.add_parser('fit').add_argument('--epochs')\n"


def test_an_option_of_another_program_is_not_given() -> None:
    other = "import argparse\n\n\nif __name__ == '__main__':\n    parser = argparse.ArgumentParser()\n"
    other += "    parser.add_argument('--epochs', default=3)\n"
    assert shown("import other\n" + START + END.format("epochs"), other=other).short == ""
    shared = "def add(parser):\n    parser.add_argument('--epochs', default=3)\n"
    assert shown("import shared\n" + START + END.format("epochs"), shared=shared).short == "--epochs 1"


def test_what_is_done_in_some_epochs_only_is_not_lost() -> None:
    body = "args = parser.parse_args()\n\n\ndef report():\n    print('NEW')\n\n\nfor epoch in range(args.max_epochs):\n"
    rare = shown(EPOCHS + body + "    if epoch % 10 == 0:\n        report()\n", " --max-epochs 20")
    assert rare.command.endswith("--max-epochs 20") and not rare.short
    assert shown(EPOCHS + body + "    report()\n", " --max-epochs 20").short == "--max-epochs 1"
    refused = body + "    if args.max_epochs % 2:\n        raise ValueError\n    report()\n"
    assert shown(EPOCHS + refused, " --max-epochs 20").short == "--max-epochs 1"


def test_what_trains_nothing_is_short() -> None:
    test = EPOCHS + "parser.add_argument('--mode')\n" + END.format("max_epochs")
    for found in (shown(test, " --mode test"), shown(EPOCHS + END.format("max_epochs"), script="evaluate.py")):
        assert found.command and "epochs" not in found.command


def test_one_epoch_to_load_is_no_number_of_them() -> None:
    program = START + "parser.add_argument('--epoch', type=int)\nargs = parser.parse_args()\nprint('NEW')\n"
    assert shown(program, " --epoch 40").command.endswith("main.py --epoch 40")
    loop = "for epoch in range(args.epoch):\n    pass\n"
    assert shown(program + loop, " --epoch 40").short == "--epoch 1"


def test_a_switch_that_sounds_like_another_kind_of_run() -> None:
    switch = EPOCHS + "parser.add_argument('--embed_norm', action='store_true')\n" + END.format("max_epochs")
    assert shown(switch, " --embed_norm").short == "--max-epochs 1"
    only = EPOCHS + "parser.add_argument('--eval_only', action='store_true')\n" + END.format("max_epochs")
    assert shown(only, " --eval_only").short == ""


def test_options_that_classes_make() -> None:
    head = START + "from transformers import HfArgumentParser, TrainingArguments\n"
    head += "(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()\nprint('NEW')\n"
    assert shown(head).short == ""  # it trains nothing
    head += "from transformers import Trainer\ntrainer = Trainer(args=args)\ntrainer.train()\n"
    assert shown(head).short == "--max_steps 10"
    made = "import draccus\n" + START + "class Settings:\n    max_steps: int = 100\n\n\n@draccus.wrap()\n"
    loop = "def go(cfg: Settings):\n    print('NEW')\n    for i in range(cfg.max_steps):\n        pass\n\n\ngo()\n"
    assert shown(made + loop).short == "--max_steps 10"


def test_keys_that_the_main_function_of_hydra_asks_for() -> None:
    program = "import hydra\nimport torch.distributed as dist\n\n\n@hydra.main(config_name='config')\ndef go(cfg):\n"
    program += "    dist.init_process_group('gloo')\n    print('NEW', cfg.data.max_epochs, cfg.data.warmup_epochs)\n"
    program += "    for epoch in range(cfg.data.max_epochs):\n        pass\n\n\ngo()\n"
    assert shown(program).short == "data.max_epochs=1"
