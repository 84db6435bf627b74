"""DDP211: files of one name to which each rank writes its own part of the data."""

from __future__ import annotations

import pytest

from codemods.checkpoints.unguarded_save import UnguardedSave
from codemods.ranks.same_file_name_on_every_rank import SameFileNameOnEveryRank
from codemods.ranks.unguarded_file_io import UnguardedFileIo
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

RULE = SameFileNameOnEveryRank
HEAD = (
    "import json\nimport os\nimport time\n\nimport numpy as np\nimport torch\nimport torch.distributed as dist\n"
    "from torch.utils.data import DataLoader, DistributedSampler\n\n\n"
)
OWN = "    loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))\n    found = []\n    for x in loader:\n"
FILL = f"{OWN}        found.extend(net(x).tolist())\n"
MAIN = (
    "\n\ndef main(data):\n    dist.init_process_group('nccl')\n    predict(torch.nn.Linear(4, 2).cuda(), data, 'out')\n\n\n"
    "if __name__ == '__main__':\n    main(torch.randn(64, 4))\n"
)


def script(*lines: str, fill: str = FILL, main: str = MAIN) -> str:
    return f"{HEAD}def predict(net, data, out):\n{fill}{''.join(f'    {line}' + chr(10) for line in lines)}{main}"


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_transformed(RULE, before, after, unsafe=True)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (("with open(os.path.join(out, 'found.json'), 'w') as f:", "    json.dump(found, f)"),
         ("with open(os.path.join(out, f'found-rank{dist.get_rank()}.json'), 'w') as f:", "    json.dump(found, f)")),
        (("np.save(out + '/' + 'found.npy', found)",), ()),
        (("np.save(f'{out}/found.npy', np.asarray(found))",),
         ("np.save(f'{out}/found-rank{dist.get_rank()}.npy', np.asarray(found))",)),
        (("path = os.path.join(out, 'found.npy')", "np.save(path, found)"),
         ("path = os.path.join(out, f'found-rank{dist.get_rank()}.npy')", "np.save(path, found)")),
        (("rank = dist.get_rank()", "np.save(os.path.join(out, 'found.npy'), found)"),
         ("rank = dist.get_rank()", "np.save(os.path.join(out, f'found-rank{rank}.npy'), found)")),
        (("with open('found.txt', 'w') as f:", "    for row in found:", "        f.write(str(row))"),
         ("with open(f'found-rank{dist.get_rank()}.txt', 'w') as f:", "    for row in found:", "        f.write(str(row))")),
    ],
)  # fmt: skip
def test_the_rank_in_the_name(before: tuple[str, ...], after: tuple[str, ...]) -> None:
    if not after:
        check_told(RULE, script(*before), reason="put the rank into the name")
        return
    (found,) = check_transformed(RULE, script(*before), script(*after), unsafe=True)
    assert "only the part of the rank that writes last is left" in found.message


def test_one_fault_is_told_once() -> None:
    source = script("with open('found.json', 'w') as f:", "    json.dump(found, f)")
    assert not findings_of(UnguardedFileIo, source)


def test_a_group_that_is_not_always_there() -> None:
    main = MAIN.replace("    dist.init", "    if len(data) > 1:\n        dist.init")
    spelled = "dist.get_rank() if dist.is_initialized() else 0"
    check_transformed(RULE, script("np.save('found.npy', found)", main=main),
                      script(f"np.save(f'found-rank{{{spelled}}}.npy', found)", main=main), unsafe=True)  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "files", "reason"),
    [
        (("np.save('found.npy', found)",), {"read.py": "import numpy\n\nrows = numpy.load('found.npy')\n"}, "read.py:3"),
        (("np.save(target(out), found)",), {}, "put the rank into the name"),
        (("np.save('found{}.npy', found)",), {}, "put the rank into the name"),
    ],
)
def test_what_is_told(lines: tuple[str, ...], files: dict[str, str], reason: str) -> None:
    check_told(RULE, script(*lines) + "\n\ndef target(out):\n    return out + '/found'\n", reason=reason, files=files)


@pytest.mark.parametrize(
    "source",
    [
        script("np.save(f'found-{dist.get_rank()}.npy', found)"),
        script("if dist.get_rank() == 0:", "    np.save('found.npy', found)"),
        script("whole = [None] * dist.get_world_size()", "dist.all_gather_object(whole, found)", "np.save('found.npy', whole)"),
        script("with open('found.txt', 'a') as f:", "    f.write(str(found))"),
        script("np.save(f'found-{time.time()}.npy', found)"),
        script("np.save('found.npy', len(data))"),
        script("np.save('found.npy', found)", fill=FILL.replace(", sampler=DistributedSampler(data)", "")),
        script("np.save('found.npy', found)", main="\n\npredict(None, [], '')\n"),
        script("torch.save(found, 'found.pt')"),
    ],
)
def test_nothing_is_said(source: str) -> None:
    check_nothing(RULE, source)


def test_tests_of_the_repository() -> None:
    check_nothing(RULE, script("np.save('found.npy', found)"), path="tests/test_predict.py")


# Modes of one process


def _started(*lines: str) -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return (
        "\n\ndef main(args, data):\n    if args.distributed:\n        dist.init_process_group('nccl')\n"
        f"{body}\n\nif __name__ == '__main__':\n    main(args, torch.randn(64, 4))\n"
    )


_CALL = "predict(torch.nn.Linear(4, 2).cuda(), data, 'out')"


@pytest.mark.parametrize(
    "lines",
    [
        ("assert not args.distributed", _CALL),
        ("if args.mode == 'predict':", "    assert(not args.dist_train)", "    print('predict')", f"    {_CALL}"),
        ("if args.distributed:", "    raise NotImplementedError('one process only')", _CALL),
    ],
)
def test_a_mode_that_several_processes_do_not_get_to(lines: tuple[str, ...]) -> None:
    source = script("with open('found.json', 'w') as f:", "    json.dump(found, f)", main=_started(*lines))
    check_nothing(RULE, source)


@pytest.mark.parametrize(
    "lines",
    [
        ("assert args.distributed", _CALL),
        ("if args.mode == 'show':", "    assert not args.distributed", "    print('show')", _CALL),
        ("assert not args.debug", _CALL),
        ("if not args.distributed:", "    raise ValueError('start it with torchrun')", _CALL),
    ],
)
def test_what_several_processes_get_to(lines: tuple[str, ...]) -> None:
    source = script("with open('found.json', 'w') as f:", "    json.dump(found, f)", main=_started(*lines))
    assert len(findings_of(RULE, source)) == 1


# What a BasePredictionWriter is handed

WRITER = """import json
import os

import lightning.pytorch as pl
import numpy as np
import torch
from lightning.pytorch.callbacks import BasePredictionWriter


class Writer(BasePredictionWriter):
    def __init__(self, folder):
        super().__init__("batch_and_epoch")
        self.folder = folder

    def write_on_{hook}:
{body}

def main(model, data):
    trainer = pl.Trainer(devices=2, callbacks=[Writer("out")])
    trainer.predict(model, data)


if __name__ == "__main__":
    main(parse(), read())
"""
EPOCH = "epoch_end(self, trainer, pl_module, predictions, batch_indices)"
BATCH = "batch_end(self, trainer, pl_module, prediction, batch_indices, batch, batch_idx, dataloader_idx)"


def writer(hook: str, *lines: str) -> str:
    return WRITER.format(hook=hook, body="".join(f"        {line}\n" for line in lines))


def test_predictions_of_each_rank_get_its_name() -> None:
    before = ("with open(os.path.join(self.folder, 'found.json'), 'w') as f:", "    json.dump([len(p) for p in predictions], f)")
    after = (before[0].replace("'found.json'", "f'found-rank{trainer.global_rank}.json'"), before[1])
    check_transformed(RULE, writer(EPOCH, *before), writer(EPOCH, *after), unsafe=True)


@pytest.mark.parametrize(
    ("hook", "lines"),
    [
        (EPOCH, ("np.save(self.folder + '/found', torch.cat(predictions).numpy())",)),
        (EPOCH, ("rows = [p.tolist() for p in predictions]", "with open(self.folder, 'w') as f:", "    f.write(str(rows))")),
        (BATCH, ("np.save(f'{self.folder}/{batch_idx}', prediction.numpy())",)),
    ],
)  # fmt: skip
def test_predictions_under_a_name_that_is_not_written_out(hook: str, lines: tuple[str, ...]) -> None:
    assert "its own" in check_told(RULE, writer(hook, *lines), reason="rank into the name").message


@pytest.mark.parametrize(
    ("hook", "lines"),
    [
        (EPOCH, ("np.save(f'{self.folder}/found-{trainer.global_rank}.npy', torch.cat(predictions).numpy())",)),
        (EPOCH, ("with open(self.folder + '/found.txt', 'a') as f:", "    f.write(str(predictions))")),
        (EPOCH, ("found = pl_module.all_gather(torch.cat(predictions))", "np.save(self.folder + '/found.npy', found.numpy())")),
        (EPOCH, ("if trainer.is_global_zero:", "    np.save(self.folder + '/found.npy', torch.cat(predictions).numpy())")),
        (BATCH, ("for name, row in zip(batch['name'], prediction):", "    np.save(f'{self.folder}/{name}.npy', row.numpy())")),
        (BATCH, ("np.save(f'{self.folder}/{batch_indices[0]}.npy', prediction.numpy())",)),
    ],
)  # fmt: skip
def test_predictions_that_lose_nothing_here(hook: str, lines: tuple[str, ...]) -> None:
    check_nothing(RULE, writer(hook, *lines))


def test_lines_that_are_added_stay_those_of_their_rank() -> None:
    lines = ("with open(self.folder + '/found.csv', 'a') as f:", "    for row in prediction:", "        print(row, file=f)")
    check_nothing(UnguardedFileIo, writer(BATCH, *lines))


def test_predictions_of_one_device() -> None:
    source = writer(EPOCH, "np.save(self.folder + '/found.npy', torch.cat(predictions).numpy())")
    check_nothing(RULE, source.replace("devices=2", "devices=1"))


@pytest.mark.parametrize(
    "line",
    [
        "json.dump(found, open('found.json', 'w'))",
        "json.dump(found, fp=open(os.path.join(out, 'found.json'), 'w'))",
        "print(found, file=open('found.txt', 'w'))",
    ],
)
def test_a_file_that_is_opened_where_it_is_handed_on(line: str) -> None:
    assert findings_of(RULE, script(line))
    assert not findings_of(UnguardedFileIo, script(line))


@pytest.mark.parametrize(
    "line",
    [
        "json.dump({'rows': 3}, open('found.json', 'w'))",
        "json.dump(found, open(f'found{dist.get_rank()}.json', 'w'))",
        "json.load(open('found.json'))",
    ],
)
def test_nothing_of_its_own_is_handed_on(line: str) -> None:
    check_nothing(RULE, script(line))


PREDICTED = """import json
import lightning.pytorch as pl
import torch.distributed as dist


def run(net, loader, path):
    trainer = pl.Trainer(accelerator="gpu", devices=4, strategy="ddp")
    rows = trainer.predict(net, loader)
    with open(path + "/rows.json", "w") as f:
        json.dump(rows, f)


if __name__ == "__main__":
    run(make_net(), make_loader(), "out")
"""


def test_what_the_predict_of_lightning_returns_is_of_the_own_share() -> None:
    assert findings_of(RULE, PREDICTED)
    (saved,) = findings_of(UnguardedSave, PREDICTED[: PREDICTED.index("    with")] + "    torch.save(rows, path)\n")
    assert saved.fix is None or not saved.fix.edits  # a guard would leave out what the others predict


@pytest.mark.parametrize(
    ("old", "new"),
    [("    with open", "    every = [None] * 4\n    dist.all_gather_object(every, rows)\n    rows = every\n    with open"),
     ("devices=4", "devices=1"), ("trainer.predict(net, loader)", "trainer.validate(net, loader)"),
     ("    with open", "    if not trainer.is_global_zero:\n        return\n    with open")],
)  # fmt: skip
def test_predictions_that_are_not_of_the_own_share(old: str, new: str) -> None:
    assert old in PREDICTED
    check_nothing(RULE, PREDICTED.replace(old, new))


@pytest.mark.parametrize(
    ("fill", "shown"),
    [
        (f"{OWN}        np.save(os.path.join(out, 'seen.npy'), net(x))\n", True),
        (f"{OWN}        with open('seen.json', 'w') as f:\n            json.dump(net(x).tolist(), f)\n", True),
        (f"{FILL}        np.save('seen.npy', np.asarray(found))\n", False),  # the batches so far
        (f"{OWN}        y = net(x)\n    for epoch in range(3):\n        np.save('seen.npy', y)\n", False),
    ],
)
def test_what_each_round_writes_anew_is_there_to_look_at(fill: str, shown: bool) -> None:
    (found,) = findings_of(RULE, script(fill=fill))
    assert ("it holds one batch with one process, too" in found.reason) is shown, found.reason
    assert bool(found.edits) is not shown


def test_the_batch_that_is_asked_for_by_next() -> None:
    fill = (
        "    rows = iter(DataLoader(data, sampler=DistributedSampler(data)))\n    for i in range(9):\n        x = next(rows)\n"
        "        if i == 0:\n            np.save('seen.npy', x)\n"
    )
    check_told(RULE, script(fill=fill), reason="it holds one batch with one process, too")
