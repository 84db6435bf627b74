"""Data sets that draw their samples themselves, under the Trainer of transformers."""

from __future__ import annotations

import pytest

from codemods.data_loading.same_random_numbers import SameRandomNumbers
from ddpfix.testing import check_nothing, findings_of

DATA = """\
import random

from torch.utils.data import Dataset


class Mixed(Dataset):
    def __init__(self, scenes, faces):
        self.scenes, self.faces = scenes, faces

    def __len__(self):
        return len(self.scenes) + len(self.faces)

    def __getitem__(self, index):
        if random.random() < 0.3:
            return self.scenes[random.randint(0, len(self.scenes) - 1)]
        return self.faces[random.randint(0, len(self.faces) - 1)]
"""
PROGRAM = """\
import transformers
from transformers import Trainer

from mixed import Mixed


class FittingTrainer(Trainer):
    def log_all(self):
        return 1


def main(net, scenes, faces):
    parser = transformers.HfArgumentParser(transformers.TrainingArguments)
    (settings,) = parser.parse_args_into_dataclasses()
    data = Mixed(scenes, faces)
    FittingTrainer(model=net, args=settings, train_dataset=data).train()


if __name__ == "__main__":
    main(None, [], [])
"""
RUN = "deepspeed --include localhost:0,1 fit.py --dataloader_num_workers 4\n"
OLD, NEW, OPEN = "transformers==4.40.0\n", "transformers==4.52.4\n", "transformers>=4.40\n"


def files(data: str = DATA, run: str = RUN, pin: str = OLD) -> dict[str, str]:
    return {"mixed.py": data, "run.sh": run, "requirements.txt": pin}


def test_a_data_set_that_the_trainer_is_given() -> None:
    found = findings_of(SameRandomNumbers, PROGRAM, path="fit.py", files=files())
    assert [(f.path, f.span.line) for f in found] == [("mixed.py", 15)]
    assert "the Trainer seeds every rank alike: all ranks train on the same samples" in found[0].message


def test_a_data_set_among_others_that_go_along() -> None:
    together = "    parts = dict(train_dataset=data, eval_dataset=None)\n    FittingTrainer("
    text = PROGRAM.replace("    FittingTrainer(", together).replace("train_dataset=data).", "**parts).")
    assert findings_of(SameRandomNumbers, text, path="fit.py", files=files())


def test_a_draw_in_a_method_of_the_data_set() -> None:
    picked = "random.choice(self.scenes)\n\n    def one(self):\n        return random.choice(self.faces)\n"
    data = DATA[: DATA.index("        if random")] + "        return self.one()\n\n    def other(self):\n        return " + picked
    found = findings_of(SameRandomNumbers, PROGRAM, path="fit.py", files=files(data))
    assert [f.span.line for f in found] == [20]


@pytest.mark.parametrize(("run", "pin"), [(RUN.replace(" --dataloader_num_workers 4", ""), NEW), (RUN.split(" --data")[0], OPEN)])
def test_the_process_itself_draws(run: str, pin: str) -> None:
    assert findings_of(SameRandomNumbers, PROGRAM, path="fit.py", files=files(run=run, pin=pin))


@pytest.mark.parametrize("pin", [NEW, OPEN, "transformers\n"])
def test_workers_whose_seed_may_hold_the_rank(pin: str) -> None:
    check_nothing(SameRandomNumbers, PROGRAM, path="fit.py", files=files(pin=pin))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if random.random() < 0.3", "if index % 3"),  # the index decides, too
        ("random.random() < 0.3", "index in random.sample(self.faces, 2)"),
        ("class Mixed(", "class MixedTest("),
        ("import random\n", "import random\n\nrandom.seed(int(os.environ['RANK']))\n"),
    ],
)
def test_data_sets_that_the_ranks_do_not_draw_alike(old: str, new: str) -> None:
    name = "MixedTest" if "MixedTest" in new else "Mixed"
    check_nothing(SameRandomNumbers, PROGRAM.replace("Mixed", name), path="fit.py", files=files(DATA.replace(old, new)))


def test_one_process() -> None:
    check_nothing(SameRandomNumbers, PROGRAM, path="fit.py", files=files(run="python fit.py --dataloader_num_workers 4\n"))


def test_loaders_of_its_own() -> None:
    own = "    def get_train_dataloader(self):\n        return loader_of(self.train_dataset)\n"
    text = PROGRAM.replace("    def log_all(self):\n        return 1\n", own)
    check_nothing(SameRandomNumbers, text, path="fit.py", files=files())


def test_one_finding_beside_a_seed_of_the_project() -> None:
    text = PROGRAM.replace("import Trainer\n", "import Trainer, set_seed\n").replace("    data =", "    set_seed(3)\n    data =")
    text = text.replace("import transformers\n", "import accelerate\nimport transformers\n")
    assert len(findings_of(SameRandomNumbers, text, path="fit.py", files=files())) == 1
