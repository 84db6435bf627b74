"""DDP106: numbers of an own share that come to rank 0 by a run, a setting or a base class, or in parts."""

from __future__ import annotations

import pytest

from codemods.metrics.unreduced_number import UnreducedNumber
from codemods.ranks.tracker_on_every_rank import TrackerOnEveryRank
from ddpfix.testing import check_nothing, check_told, findings_of

RULE = UnreducedNumber
HEAD = """\
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


"""
WHY = "reduce sums and counts over the ranks first"

# A run that rank 0 alone starts

TRACKED = (
    "import wandb\n"
    + HEAD
    + """\
def train(model, data, loss_of):
    loader = DataLoader(data, 8, sampler=DistributedSampler(data))
    total = 0.0
    with torch.no_grad():
        for batch in loader:
            total += loss_of(model(batch)).item()
    val_loss = total / len(loader)
    {reduced}
    if {test}:
        wandb.log({{"val_loss": val_loss}})


def main(model, data, loss_of):
    dist.init_process_group("nccl")
    {start}
    train(model, data, loss_of)


if __name__ == "__main__":
    main(torch.nn.Linear(2, 2), [], torch.nn.functional.mse_loss)
"""
)
START = "if dist.get_rank() == 0:\n        wandb.init(project='p')"


@pytest.mark.parametrize("test", ["wandb.run", "wandb.run is not None"])
def test_under_a_test_of_the_run_that_rank_0_alone_starts(test: str) -> None:
    source = TRACKED.format(test=test, start=START, reduced="pass")
    check_told(RULE, source, reason=WHY)
    check_nothing(TrackerOnEveryRank, source)


def test_a_run_of_every_rank_and_what_is_reduced() -> None:
    check_nothing(RULE, TRACKED.format(test="wandb.run", start="wandb.init(project='p', group='g')", reduced="pass"))
    mean = "val_loss = torch.tensor(val_loss); dist.all_reduce(val_loss)"
    check_nothing(RULE, TRACKED.format(test="wandb.run", start=START, reduced=mean))


def test_a_second_start_of_a_run_in_what_the_file_imports() -> None:
    """Every rank has a run by then: it is no test of the rank."""
    source = TRACKED.format(test="wandb.run", start=f"{START}\n    runs.begin()", reduced="pass").replace(
        "import wandb\n", "import wandb\nimport runs\n", 1
    )
    check_nothing(RULE, source, files={"runs.py": "import wandb\n\n\ndef begin():\n    wandb.init(project='p', group='g')\n"})


def test_a_main_that_the_block_below_passes_over() -> None:
    source = TRACKED.format(test="wandb.run", start=START, reduced="pass")
    source = source.replace(
        'if __name__ == "__main__":\n    main', 'def generate(*given):\n    pass\n\n\nif __name__ == "__main__":\n    generate'
    )
    check_nothing(RULE, source)
    check_told(RULE, source, reason=WHY, files={"other.py": "import module\n\nmodule.main(None, [], None)\n"})


# What a constructor is handed

BASE = """\
class Evaluator:
    def __init__(self, loader, folder):
        self.loader, self.rank = loader, dist.get_rank()

    def log(self, scores):
        if self.rank == 0:
            print(scores["accuracy"])


class Classes(Evaluator):
    def __init__(self, loader, folder, classes=2):
        super().__init__(loader, folder)
        self.classes = classes

    def evaluate(self, model):
        hits, rows = 0, 0
        for x, y in self.loader:
            hits += (model(x).argmax(1) == y).sum().item()
            rows += len(y)
        accuracy = hits / rows
        self.log({"accuracy": accuracy})
"""
OTHER = "\n\nclass Depth(Evaluator):\n    def __init__(self, loader, folder):\n        super().__init__({handed}, folder)\n"
USE = "\n\ndef main(model, data):\n    loader = {loader}\n    {made}.evaluate(model)\n"
SHARED = "DataLoader(data, 8, sampler=DistributedSampler(data, shuffle=False))"
SETTING = {"configs/task.yaml": "evaluator:\n  _target_: module.Classes\n  classes: 4\n"}


def test_a_loader_that_a_class_hands_to_its_base() -> None:
    made = "Classes(loader, 'out')"
    check_told(RULE, HEAD + BASE + USE.format(loader=SHARED, made=made), reason=WHY)
    check_nothing(RULE, HEAD + BASE + USE.format(loader="DataLoader(data, 8)", made=made))


def test_classes_that_hand_their_base_different_things() -> None:
    """Which loader the base holds hangs on the class of the object."""
    source = (
        HEAD
        + BASE
        + OTHER.format(handed="DataLoader(list(loader), 8)")
        + USE.format(loader=SHARED, made="Classes(loader, 'out')")
    )
    check_nothing(RULE, source + "\n\ndef depth(data):\n    return Depth(data, 'out')\n")


def test_a_loader_that_is_handed_over_with_a_setting() -> None:
    made = "instantiate(cfg.task.evaluator, loader=loader, folder='out')"
    source = "from hydra.utils import instantiate\n" + HEAD + BASE + USE.format(loader=SHARED, made=made)
    source = source.replace("def main(model", "def main(cfg, model")
    check_told(RULE, source, reason=WHY, files=SETTING)


@pytest.mark.parametrize(
    ("loader", "key", "target"),
    [
        ("DataLoader(data, 8)", "evaluator", "module.Classes"),
        (SHARED, "trainer", "module.Classes"),
        (SHARED, "evaluator", "other.Classes"),
    ],
)
def test_settings_of_another_class_or_key_and_a_whole_loader(loader: str, key: str, target: str) -> None:
    made = "instantiate(cfg.task.evaluator, loader=loader, folder='out')"
    source = "from hydra.utils import instantiate\n" + HEAD + BASE + USE.format(loader=loader, made=made)
    source = source.replace("def main(model", "def main(cfg, model")
    check_nothing(RULE, source, files={"configs/task.yaml": f"{key}:\n  _target_: {target}\n"})


# What rank 0 of an accelerator decides by itself

EITHER = (
    "from accelerate import Accelerator\n"
    + HEAD
    + """\
def evaluate(model, loader, best, accelerator=None):
    errors, rows = 0.0, 0
    for x, y in loader:
        errors += (model(x) - y).abs().sum().item()
        rows += len(y)
    error = errors / rows
    if accelerator is None or accelerator.is_main_process:
        if error < best:
            best = error
            torch.save(model.state_dict(), "best.pt")
    return best


def main(model, data):
    accelerator = Accelerator()
    loader = accelerator.prepare(DataLoader(data, 8))
    evaluate(model, loader, 9.0, accelerator)
"""
)


def test_the_main_process_decides_by_its_share() -> None:
    found = check_told(RULE, EITHER, reason=WHY)
    assert "is what rank 0 has of its own share" in found.message


# The accuracy of an epoch

TRAINED = (
    HEAD
    + """\
def train(args, model, data, loss_of, optimizer):
    if args.distribution:
        dist.init_process_group("nccl")
        rank = dist.get_rank()
    loader = {loader}
    for epoch in range(9):
        total, hits, rows = 0.0, 0, 0
        for x, y in loader:
            optimizer.zero_grad()
            output = model(x)
            loss = loss_of(output, y)
            loss.backward()
            optimizer.step()
            total += loss.item()
            hits += (output.argmax(1) == y).sum().item()
            rows += len(y)
            {inside}
        {behind}
        if rank == 0 or not args.distribution:
            print(f"epoch {{epoch}}: {{{shown}}}")
"""
)
ACCURACY = "accuracy = 100 * hits / rows"


def test_what_an_epoch_of_the_training_came_to_is_left_alone() -> None:
    """Neither decides, and nobody takes it for the result: an estimate over a share that is dealt anew."""
    for behind, shown in ((ACCURACY, "accuracy"), ("loss_of_epoch = total / len(loader)", "loss_of_epoch")):
        check_nothing(RULE, TRAINED.format(loader=SHARED, inside="pass", behind=behind, shown=shown))


def test_what_an_epoch_of_the_training_came_to_and_decides() -> None:
    best = f"{ACCURACY}\n        if accuracy > args.best:\n            torch.save(model.state_dict(), 'best.pt')"
    found = check_told(RULE, TRAINED.format(loader=SHARED, inside="pass", behind=best, shown="rows"), reason=WHY)
    assert "which result is the best" in found.message


def test_an_accuracy_so_far_and_one_that_is_reduced() -> None:
    inside = f"{ACCURACY}\n            if dist.get_rank() == 0: print(accuracy)"
    check_nothing(RULE, TRAINED.format(loader=SHARED, inside=inside, behind="pass", shown="rows"))
    reduced = "sums = torch.tensor([hits, rows]); dist.all_reduce(sums); accuracy = 100 * sums[0] / sums[1]"
    check_nothing(RULE, TRAINED.format(loader=SHARED, inside="pass", behind=reduced, shown="accuracy"))


# Sums that are kept by the parts of a loss

BY_PARTS = (
    HEAD
    + """\
def one_epoch(model, loader, optimizer):
    sums, rounds = {{}}, 0
    for x in loader:
        {made}
        {step}
        for name in found:
            sums[name] = sums.get(name, 0) + found[name].item()
        rounds += 1
    for name in sums.keys():
        sums[name] = sums[name] / rounds
    return sums


def main(model, data, optimizer, writer):
    dist.init_process_group("nccl")
    loader = {loader}
    model.train()
    sums = one_epoch(model, loader, optimizer)
    if dist.get_rank() == 0:
        for name, value in sums.items():
            writer.add_scalar("mean_" + name, value, 1)
"""
)
PARTS = "output = model(x)\n        found = output['losses']"


def test_a_loop_over_the_losses_of_a_batch_belongs_to_the_loop_that_trains() -> None:
    check_nothing(RULE, BY_PARTS.format(made=PARTS, step="found['loss'].backward()", loader=SHARED))


def test_the_same_loop_in_an_evaluation_is_told() -> None:
    found = check_told(RULE, BY_PARTS.format(made=PARTS, step="pass", loader=SHARED).replace("one_epoch", "evaluate"), reason=WHY)
    assert "as the result" in found.message


# Entries that are reduced one by one, in a block whose test hangs on the rank

ENTRIES = (
    HEAD
    + """\
def main(model, data, names, score, writer, folder):
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    first = 0
    if rank == 0:
        first = torch.load(folder)["step"]
    errors = {{name: 0.0 for name in names}}
    loader = DataLoader(data, 8, sampler=DistributedSampler(data, shuffle=False))
    for step in range(first, 9):
        if step % 3 == 0:
            errors = {{name: 0.0 for name in names}}
            for n, x in enumerate(loader):
                found = score(model(x))
                for name in errors.keys():
                    errors[name] += (found[name].item() - errors[name]) / (n + 1)
            {reduced}
        if rank == 0:
            for name in errors.keys():
                writer.add_scalar(name + "/valid_loss", errors[name], step)
"""
)
REDUCED = """for name in errors.keys():
                parts = [0.0] * dist.get_world_size()
                dist.all_gather_object(parts, errors[name])
                errors[name] = sum(parts) / len(parts)"""


def test_entries_that_are_reduced_where_the_way_hangs_on_the_rank() -> None:
    check_nothing(RULE, ENTRIES.format(reduced=REDUCED))
    one = REDUCED.replace("errors[name] = sum", "errors['loss'] = sum")
    for left_as_they_are in ("pass", one):
        assert findings_of(RULE, ENTRIES.format(reduced=left_as_they_are))
