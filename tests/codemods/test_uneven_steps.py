"""DDP411: unequal shares, unequal numbers of steps."""

from __future__ import annotations

import pytest

from codemods.data_loading.uneven_steps import UnevenSteps
from ddpfix.testing import check_nothing, check_told, findings_of

RULE = UnevenSteps
HEAD = """\
import itertools
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, IterableDataset
from torch.utils.data.distributed import DistributedSampler


"""
WHY = "give every rank as many rounds"


def train(loader: str, *, before: str = "", body: str = "loss_of(model(batch)).backward()") -> str:
    return (
        f"{HEAD}def train(net, rows, batch_size, loss_of):\n    rank, world_size = dist.get_rank(), dist.get_world_size()\n"
        f"    model = DDP(net)\n{before}    for batch in {loader}:\n        {body}\n"
    )


def share_class(body: str, *, base: str = "Dataset") -> str:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    loop = train("DataLoader(Share(rows, rank, world_size), batch_size=4)").removeprefix(HEAD)
    return f"{HEAD}class Share({base}):\n{lines}\n\n{loop}"


def test_the_example_of_the_documentation() -> None:
    sections = RULE.sections()
    before, after = (sections[s].removeprefix("```python\n").removesuffix("```") for s in ("Example", "Use instead"))
    check_told(RULE, before, reason=WHY)
    check_nothing(RULE, after)


@pytest.mark.parametrize(
    "loader",
    ["DataLoader(rows[rank::world_size], batch_size=4)", "rows[rank::world_size]", "tqdm(rows[rank::world_size])",
     "itertools.islice(rows, rank, None, world_size)", "range(rank, len(rows), world_size)",
     "enumerate(DataLoader(rows[dist.get_rank()::dist.get_world_size()], 4))"],
)  # fmt: skip
def test_a_share_by_the_rank_under_a_collective(loader: str) -> None:
    check_told(RULE, train(loader), reason=WHY)


def test_a_share_that_a_data_set_takes_in_its_constructor() -> None:
    source = share_class(
        "def __init__(self, rows, rank, world_size):\n    self.rows = rows[rank::world_size]\n\n"
        "def __len__(self):\n    return len(self.rows)\n"
    )
    check_told(RULE, source, reason=WHY)


def test_a_share_of_a_stream() -> None:
    source = share_class(
        "def __init__(self, rows, rank, world_size):\n    self.rows, self.rank, self.world_size = rows, rank, world_size\n\n"
        "def __iter__(self):\n    yield from self.rows[self.rank :: self.world_size]\n",
        base="IterableDataset",
    )
    check_told(RULE, source, reason=WHY)


def test_a_training_loader_that_a_hook_of_lightning_gives() -> None:
    source = (
        "import lightning.pytorch as pl\nfrom torch.utils.data import DataLoader\n\n\n"
        "class Data(pl.LightningDataModule):\n    def train_dataloader(self):\n"
        "        return DataLoader(self.rows[self.trainer.global_rank :: self.trainer.world_size], batch_size=4)\n"
    )
    check_told(RULE, source, reason=WHY)


def test_uneven_batches_of_accelerate() -> None:
    source = "from accelerate import Accelerator\n\naccelerator = Accelerator(even_batches=False)\n"
    check_told(RULE, source, reason="join_uneven_inputs")


# Right


@pytest.mark.parametrize(
    ("before", "loader"),
    [
        ("", "DataLoader(rows, batch_size=4, sampler=DistributedSampler(rows))"),
        ("    n = len(rows) // world_size * world_size\n", "DataLoader(rows[:n][rank::world_size], batch_size=4)"),
        ("    rows += rows[: -len(rows) % world_size]\n", "rows[rank::world_size]"),
        ("    each = len(rows) // world_size\n", "rows[rank * each : (rank + 1) * each]"),
        ("    rows = rows[: len(rows) - len(rows) % world_size]\n", "rows[rank::world_size]"),
        ("    steps = 100\n", "range(steps)"),
    ],
)
def test_shares_of_equal_length(before: str, loader: str) -> None:
    check_nothing(RULE, train(loader, before=before))


def test_a_loop_that_waits_for_nobody() -> None:
    check_nothing(RULE, train("rows[rank::world_size]", body="print(batch)"))


def test_a_number_of_steps_that_is_reduced() -> None:
    before = (
        "    own = DataLoader(rows[rank::world_size], batch_size=4)\n    steps = torch.tensor(len(own))\n"
        "    dist.all_reduce(steps, op=dist.ReduceOp.MIN)\n"
    )
    check_nothing(RULE, train("zip(range(int(steps)), own)", before=before))


def test_a_file_that_one_process_runs() -> None:
    source = "def train(rows, rank, n, model):\n    for batch in rows[rank::n]:\n        model(batch).backward()\n"
    check_nothing(RULE, source)


def test_uneven_batches_that_are_dropped_or_joined() -> None:
    head = "from accelerate import Accelerator\nfrom torch.utils.data import DataLoader\n\n"
    head += "accelerator = Accelerator(even_batches=False)\n"
    check_nothing(RULE, f"{head}loader = DataLoader(rows, 8, drop_last=True)\n")
    check_nothing(RULE, f"{head}with accelerator.join_uneven_inputs([model]):\n    train()\n")


def test_a_test_of_the_repository() -> None:
    check_nothing(RULE, train("rows[rank::world_size]"), path="tests/test_train.py")


# Keys that the rank's own batches made

COUNTED = (
    f"{HEAD}from collections import Counter, defaultdict\n\n\n{{before}}def count(model, rows):\n    found = {{made}}\n"
    "    for batch in DataLoader(rows, sampler=DistributedSampler(rows)):\n        for word in batch['words']:\n"
    "            {put}\n"
    "    for word, number in found.items():\n        dist.all_reduce(number)\n"
)


@pytest.mark.parametrize(
    ("made", "put"),
    [("{}", "found[word] = found.get(word, 0) + 1"), ("{}", "found[f'count/{word}'] = model(word)"),
     ("defaultdict(float)", "found[word] += 1"), ("Counter()", "found[word] += 1"),
     ("defaultdict(list)", "found[word].append(model(word))")],
)  # fmt: skip
def test_a_collective_for_each_key_of_own_batches(made: str, put: str) -> None:
    check_told(RULE, COUNTED.format(before="", made=made, put=put), reason="the same keys")


def test_keys_that_helpers_put_in() -> None:
    before = (
        "def add(found, key, value):\n    if key not in found:\n        found[key] = torch.zeros(())\n"
        "    found[key] += value\n\n\n"
        "def more(words, found):\n    for word in sorted(set(words)):\n        add(found, f'count/{word}', 1)\n\n\n"
    )
    check_told(RULE, COUNTED.format(before=before, made="{}", put="more(word, found)"), reason="the same keys")


SCORED = f"""\
{HEAD}

def share(scores):
    out = {{}}
    for name, value in scores.items():
        number = torch.tensor(value)
        dist.all_reduce(number)
        out[name] = number.item()
    return out


def score(model, rows):
    for batch in DataLoader(rows, sampler=DistributedSampler(rows)):
        scores = {{"loss": model(batch).item()}}
        kept = batch["kept"].sum().item()
        if kept > 0:
            scores["hits"] = batch["hits"].sum().item() / kept
        scores = share(scores)
        print(scores)
"""


def test_a_key_that_the_own_batch_decides_on() -> None:
    check_told(RULE, SCORED, reason="the same keys")
    check_told(RULE, SCORED.replace("scores = share(", "share("), reason="the same keys")
    check_told(RULE, SCORED.replace('{"loss": model(batch).item()}', "dict(loss=model(batch).item())"), reason="the same keys")


@pytest.mark.parametrize(
    ("what", "old", "new"),
    [
        ("the key is there already", 'scores = {"loss"', 'scores = {"hits": 0.0, "loss"'),
        ("it is given anyway", "        scores = share", '        scores["hits"] = 0.0\n        scores = share'),
        ("all ranks have one setting", "if kept > 0:", "if model.counts:"),
        ("the number is reduced", "        if kept",
         "        dist.all_reduce(batch['kept'])\n        kept = batch['kept']\n        if kept"),
        ("the whole dictionary is a batch's own", 'scores = {"loss"', 'if kept_before:\n            scores = {"loss"'),
        ("nothing is reduced for a key", "        dist.all_reduce(number)\n", ""),
        ("a fixed key is asked for", "for name, value in scores.items()", 'for name, value in [("loss", scores["loss"])]'),
    ],
)  # fmt: skip
def test_keys_that_all_ranks_have(what: str, old: str, new: str) -> None:
    check_nothing(RULE, SCORED.replace(old, new, 1))


@pytest.mark.parametrize(
    ("made", "put"),
    [("{}", "found['all'] = model(word)"), ("Counter()", "found['all'] += 1"),
     ("defaultdict(list)", "found['all'].append(model(word))"),
     ("{}", "for name in ('a', 'b'):\n                found[name] = model(word)[name]")],
)  # fmt: skip
def test_keys_that_are_written_out(made: str, put: str) -> None:
    check_nothing(RULE, COUNTED.format(before="", made=made, put=put))


def test_a_list_that_is_filled_on_both_ways() -> None:
    source = (
        f"{HEAD}def read(jobs, rank):\n    rows = []\n    if rank == 0:\n        for job in tqdm(jobs):\n"
        f"            rows.append(job.result())\n"
        "    else:\n        for job in jobs:\n            rows.append(job.result())\n    return rows\n\n\n"
        "def train(net, jobs, rank):\n    model = DDP(net)\n    for row in DataLoader(read(jobs, rank), batch_size=2):\n"
        "        model(row).sum().backward()\n"
    )
    check_nothing(RULE, source)


GATHERED = (
    "def show(net, rows, sizes):\n    rank = dist.get_rank()\n    rows = torch.split(rows, sizes)[rank]\n"
    "    parts = [{} for _ in range(2)]\n    for m in range(2):\n        found = net(rows)\n        for key in found:\n"
    "            if found[key].sum() > 0:\n                MADE\n"
    "    for m in range(len(parts)):\n        dist.all_reduce(parts[m]['x'])\n"
)


@pytest.mark.parametrize(
    "made",
    ["parts[m][key] = [found[key]]", "parts[m][key].append(found[key])",
     "parts[m][key].extend([found[key]])"],
)  # fmt: skip
def test_parts_that_are_filled_and_stay_as_many(made: str) -> None:
    check_nothing(RULE, HEAD + GATHERED.replace("MADE", made))


def test_rows_of_the_own_share_that_are_gone_through() -> None:
    source = GATHERED.replace("MADE", "parts[m][key] = found[key]").replace("torch.split(rows, sizes)[rank]", "rows[rank::2]")
    check_told(RULE, HEAD + source.replace("range(len(parts))", "rows"), reason=WHY)


def test_a_count_of_the_rows_of_a_batch() -> None:
    body = "kept = [row for row in batch if row]\n        for i in range(0, len(kept), 4):\n            dist.all_reduce(total)"
    loader = "DataLoader(rows, sampler=DistributedSampler(rows))"
    check_told(RULE, train(loader, body=body), reason=WHY)
    check_nothing(RULE, train(loader, body=body.replace(" if row", " for _ in range(batch_size)")))


def test_rounds_that_the_rank_decides() -> None:
    before = "    first = 0\n    if rank == 0:\n        first = torch.load('last.pt')\n"
    source = train("range(first, 9)", before=before, body="loss_of(model(net)).backward()")
    found = findings_of(RULE, source)
    assert all("the rank decides how often" in f.message and "broadcast_object_list" in f.reason for f in found)


def test_a_place_for_each_rank_in_one_list() -> None:
    before = "    done = load_counts()\n    first = done[rank]\n"
    check_nothing(RULE, train("range(first, 100)", before=before))
    assert findings_of(RULE, train("range(first, 100)", before="    first = rank * 3\n"))


# A store that holds the rank under a key, and dicts under constant names

STORE = (
    "import torch.distributed as dist\n\n\nclass Settings:\n    def __init__(self, rows):\n        self.rows = rows\n\n"
    "    def put(self, key, value):\n        self.rows[key] = value\n\n"
    "    def __getitem__(self, key):\n        return self.rows[key]\n\n\n"
    "class Run:\n    def __init__(self, settings):\n        self.rounds = settings['rounds']\n\n"
    "    def go(self, loss):\n        for n in range(self.rounds):\n            dist.all_reduce(loss)\n\n\n"
    "def main(rows, loss):\n    settings = Settings(rows)\n    settings.put({key}, dist.get_rank())\n    Run(settings).go(loss)\n"
)


def test_the_rank_under_a_key_of_its_own() -> None:
    check_nothing(RULE, STORE.format(key="'rank'"))
    check_told(RULE, STORE.format(key="rows"), reason="the rank decides")  # under which key it stands, is not shown


TERMS = (
    f"{HEAD}def terms(x, flag):\n    found = {{}}\n    found['a'] = torch.where(x == 0, x, -x)\n"
    "    if flag:\n        found['b'] = x.mean()\n    return found\n\n\n"
    "def train(rows, flag):\n    for x in DataLoader(rows, sampler=DistributedSampler(rows)):\n        each = terms(x, flag)\n"
    "        LOOP\n            dist.all_reduce(value)\n"
)


def test_terms_under_constant_names() -> None:
    check_nothing(RULE, TERMS.replace("LOOP", "for name, value in each.items():"))
    check_nothing(RULE, TERMS.replace("LOOP", "for value in list(each.values()):"))


def test_terms_that_are_picked_by_what_they_hold() -> None:
    picked = "kept = {k: v for k, v in each.items() if v.sum() > 0}\n        for value in kept.values():"
    check_told(RULE, TERMS.replace("LOOP", picked), reason="the same keys")


@pytest.mark.parametrize("made", ["torch.as_tensor(rows).tensor_split(parts)", "torch.tensor_split(torch.ones(9), parts)"])
def test_parts_that_are_a_multiple_of_the_ranks(made: str) -> None:
    before = f"    parts = (len(rows) // (batch_size * world_size) + 1) * world_size\n    every = {made}\n"
    source = train("every[rank::world_size]", before=before)
    check_nothing(RULE, source)
    check_told(RULE, source.replace(made, "list(torch.as_tensor(rows))"), reason=WHY)


def test_a_number_that_is_read_from_a_file_is_no_share() -> None:
    """A file under the time of each rank's own start is another fault than a share of the data."""
    before = (
        "    name = f'{datetime.datetime.now()}.json'\n    with open(name) as f:\n        start = json.load(f)['epoch'] + 1\n"
    )
    check_nothing(RULE, "import datetime\nimport json\n" + train("range(start, 9)", before=before))


LOSSES = f"""{HEAD}def reduced(tensor):
    dist.all_reduce(tensor)
    return tensor


def train(net, rows, settings, loss_of):
    model = DDP(net)
    for batch in DataLoader(rows, sampler=DistributedSampler(rows)):
        losses = []
        losses.append(loss_of(model(batch)))
        if settings.two:
            losses.append(loss_of(batch))
        sum(losses).backward()
        for at in range(len(losses)):
            losses[at] = reduced(losses[at])
"""


def test_as_many_losses_as_the_settings_name() -> None:
    check_nothing(RULE, LOSSES)
    check_told(RULE, LOSSES.replace("settings.two", "batch.sum() > 0"), reason=WHY)


def test_a_list_of_own_numbers_that_is_written_out() -> None:
    loop = "for at in range(len(losses)):\n            losses[at] = reduced(losses[at])"
    source = LOSSES.replace(loop, "reduce_all([losses[0]])")
    helper = "def reduce_all(tensors):\n    for tensor in tensors:\n        dist.all_reduce(tensor)\n\n\n"
    check_nothing(RULE, source.replace("def train(", f"{helper}def train("))


BY_KIND = train(
    "tasks.items()", body="dist.all_reduce(weight_of(batch))",
    before="    tasks = defaultdict(list)\n    for row in rows[rank::world_size]:\n        key = row.KEY\n"
    "        tasks[key].append(row)\n",
).replace("import itertools\n", "import itertools\nfrom collections import defaultdict\n")  # fmt: skip


@pytest.mark.parametrize("key", ["request_type", "kind", "config.task"])
def test_kinds_of_items_are_those_of_every_share(key: str) -> None:
    check_nothing(RULE, BY_KIND.replace("KEY", key))


@pytest.mark.parametrize("key", ["name", "words", "speaker"])
def test_keys_by_what_the_items_hold(key: str) -> None:
    check_told(RULE, BY_KIND.replace("KEY", key), reason="the same keys")


_GENERATE = """\
import torch.distributed as dist


class Generation:
    def go_on(self, done, {argument}):
        if {argument}:
            dist.all_reduce(done)
        return done.item() > 0

    def heal(self, ids, done, {argument}):
        for one in ids[dist.get_rank()::dist.get_world_size()]:
            self.go_on(done, {argument})
"""


def test_a_generation_for_weights_that_are_shared_out() -> None:
    check_nothing(RULE, _GENERATE.format(argument="synced_gpus"))


def test_a_collective_under_another_argument() -> None:
    check_told(RULE, _GENERATE.format(argument="count_all"), reason=WHY)
PLAIN = """\
import torch
import torch.distributed as dist


def search(rows, steps):
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    for seed in range(rank, 9, size):
        net = WRAPPED
        loss = net(rows[seed]).sum()
        loss.backward()
        AFTER
    dist.barrier()
"""


def test_the_backward_of_a_bare_model_waits_for_nobody() -> None:
    bare = PLAIN.replace("WRAPPED", "torch.nn.Linear(2, 1)")
    check_nothing(RULE, bare.replace("AFTER", "print(seed)"))
    check_told(RULE, bare.replace("AFTER", "dist.all_reduce(loss)"), reason=WHY)


def test_a_wrapper_anywhere_in_the_project_may_be_that_of_the_model() -> None:
    wrapped = PLAIN.replace("AFTER", "print(seed)").replace("WRAPPED", "build()")
    other = "from torch.nn.parallel import DistributedDataParallel\n\n\ndef build():\n    return DistributedDataParallel(Net())\n"
    assert findings_of(RULE, "from nets import build\n" + wrapped, {"nets.py": other})
    check_nothing(RULE, "from nets import build\n" + wrapped, files={"nets.py": "def build():\n    return Net()\n"})


SETTINGS = """\
from dataclasses import dataclass, replace


@dataclass
class Settings:
    epochs: int = 3
    label: object = None


def run(settings, net, loss_of, rows):
    model = DDP(net)
    for epoch in range(settings.epochs):
        loss_of(model(rows)).backward()


def main(net, loss_of, rows, given):
    settings = {copy}
    {call}
"""


OWN_LOOP = "model = DDP(net)\n    for i in range(settings.epochs):\n        model(rows).backward()"


COPIES = ["replace(given, {}=RANK)", "given._replace({}=RANK)", "given.model_copy(update={{'{}': RANK}})"]


@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize("call", ["run(settings, net, loss_of, rows)", OWN_LOOP])
def test_a_copy_with_another_label(copy: str, call: str) -> None:
    check_nothing(RULE, HEAD + SETTINGS.format(copy=copy.format("label").replace("RANK", "dist.get_rank()"), call=call))
    counted = HEAD + SETTINGS.format(copy=copy.format("epochs").replace("RANK", "dist.get_rank()"), call=OWN_LOOP)
    assert findings_of(RULE, counted)


# A data set that ends the loop of one rank

ENDING = """\
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, IterableDataset
from torch.utils.data.distributed import DistributedSampler


class Rows(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        tries = 0
        while True:
            if tries > 3:
                raise StopIteration
            try:
                return parsed(self.rows[index])
            except Exception as error:
                tries += 1


def train(net, rows, optimizer):
    data = Rows(rows)
    model = DDP(net)
    for batch in DataLoader(data, batch_size=4, sampler=DistributedSampler(data)):
        model(batch).mean().backward()
        optimizer.step()


if __name__ == "__main__":
    dist.init_process_group("nccl")
    train(None, [], None)
"""
RETRY = ENDING[ENDING.index("        tries = 0") : ENDING.index("\n\ndef train")]
OF_ENDS = "give another sample in the place of this one"


def test_tries_that_end_in_stop_iteration() -> None:
    found = check_told(RULE, ENDING, reason=OF_ENDS)
    assert found.span.line == 18
    assert "the StopIteration of Rows ends the loop over its loader" in found.message


@pytest.mark.parametrize(
    "body",
    [
        "try:\n    return parsed(self.rows[index])\nexcept OSError:\n    raise StopIteration('no more')",
        "return self.item_of(index)\n\ndef item_of(self, index):\n    try:\n        return parsed(self.rows[index])\n"
        "    except Exception:\n        raise StopIteration",
        "for _ in range(3):\n    try:\n        return parsed(self.rows[index])\n    except Exception:\n        continue\n"
        "    raise StopIteration()",
    ],
)
def test_samples_that_fail_and_end_the_loop(body: str) -> None:
    lines = "".join(f"        {line}\n" if "def item" not in line else f"    {line}\n" for line in body.splitlines())
    lines = lines.replace("        \n", "\n")
    check_told(RULE, ENDING.replace(RETRY, lines), reason=OF_ENDS)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("raise StopIteration", "raise RuntimeError"),
        ("class Rows(Dataset)", "class Rows(IterableDataset)"),
        ("def __getitem__(self, index)", "def __next__(self)"),
        ("def __len__", "def __next__(self):\n        return self[0]\n\n    def __len__"),
        (RETRY, "        if index >= len(self.rows):\n            raise StopIteration\n        return self.rows[index]\n"),
        (RETRY, "        try:\n            raise StopIteration\n        except Exception:\n            return self.rows[0]\n"),
        ('dist.init_process_group("nccl")\n', ""),
    ],
)
def test_ends_that_are_meant_or_not_seen(old: str, new: str) -> None:
    source = ENDING.replace(old, new)
    if "init_process_group" in old:
        source = source.replace("DDP(net)", "net").replace(", sampler=DistributedSampler(data)", "")
    check_nothing(RULE, source)


# Shares by the number of an element

STRIDED = (
    "def __init__(self, rows, rank, world_size):\n    self.rows, self.rank, self.world_size = rows, rank, world_size\n\n"
    "def __iter__(self):\n    for i, row in enumerate(self.rows):\n        TEST\n"
)
SKIPPED = "kept = []\nfor i, row in enumerate(rows):\n    TEST\n    kept.append(row)\n"


def strided(test: str) -> str:
    return share_class(STRIDED.replace("TEST", test), base="IterableDataset")


def skipped(test: str, *, above: str = "", loop: str = SKIPPED) -> str:
    lines = "".join(f"    {line}\n" for line in (above + loop.replace("TEST", test)).splitlines())
    return train("DataLoader(kept, batch_size=4)", before=lines)


@pytest.mark.parametrize(
    "test",
    ["if i % self.world_size == self.rank:\n            yield row",
     "if i % self.world_size != self.rank:\n            continue\n        yield row",
     "if not self.rank == i % self.world_size:\n            continue\n        yield row"],
)  # fmt: skip
def test_a_stream_that_deals_its_elements_out_by_their_numbers(test: str) -> None:
    found = check_told(RULE, strided(test), reason=WHY)
    assert any("is each rank's own share" in e.text for e in found.evidence)


@pytest.mark.parametrize(
    "test",
    ["if i % world_size != rank:\n        continue",
     "if not i % world_size == rank:\n        continue",
     "if world_size > 1 and (i + 1) % world_size != rank:\n        continue"],
)  # fmt: skip
def test_a_list_without_the_elements_of_the_others(test: str) -> None:
    check_told(RULE, skipped(test), reason=WHY)
    check_told(RULE, skipped("", loop="kept = [x for i, x in enumerate(rows) if i % world_size == rank]\n"), reason=WHY)


@pytest.mark.parametrize(
    ("old", "new"),
    [("for i, row in enumerate(self.rows)", "for i, row in enumerate(self.rows[: len(self.rows) // self.world_size * 2])"),
     ("for i, row in enumerate(self.rows)", "for i, row in zip(itertools.count(), itertools.cycle(self.rows))"),
     ("i % self.world_size", "i % 2")],
)  # fmt: skip
def test_streams_of_equal_length(old: str, new: str) -> None:
    source = strided("if i % self.world_size != self.rank:\n            continue\n        yield row")
    check_nothing(RULE, source.replace(old, new))


def test_a_stream_that_begins_anew() -> None:
    body = STRIDED.replace("TEST", "if i % self.world_size != self.rank:\n            continue\n        yield row")
    head, _, loop = body.partition("    for i,")
    again = f"{head}    while True:\n" + "".join(f"    {line}\n" for line in f"    for i,{loop}".splitlines())
    check_nothing(RULE, share_class(again, base="IterableDataset"))


@pytest.mark.parametrize(
    ("test", "above"),
    [("if i % world_size != rank:\n        continue", "rows = rows[: len(rows) // world_size * world_size]\n"),
     ("if i % 4 != 3:\n        continue", ""),
     ("if i % world_size != rank:\n        print(i)", "")],
)  # fmt: skip
def test_lists_of_equal_length(test: str, above: str) -> None:
    check_nothing(RULE, skipped(test, above=above))
    cut = "kept = [x for i, x in enumerate(rows) if i % world_size == rank][: len(rows) // world_size]\n"
    check_nothing(RULE, skipped("", loop=cut))


HELD = (
    HEAD + "def reduced(terms):\n    for key, value in terms.items():\n        dist.all_reduce(value)\n    return terms\n\n\n"
    "class Trainer:\n    def __init__(self, net, loader):\n        self.model = DDP(net)\n        self.loader = loader\n"
    "        self.terms, self.scores = {'rec': None, 'lap': None}, {'rec': None, 'mse': None}\n\n"
    "    def train(self, loss_of):\n        for batch in self.loader:\n"
    "            self.terms['rec'] = loss_of(self.model(batch))\n"
    "            self.terms = reduced(self.terms)\n            for key in self.terms.keys():\n"
    "                TEST\n                    self.scores[key] = 0\n            self.scores['mse'] += loss_of(batch)\n"
    "            self.scores = reduced(self.scores)\n"
)


@pytest.mark.parametrize("test", ["if key in self.scores:", "if key in self.scores and self.terms[key] is not None:"])
def test_keys_that_the_source_spells_out(test: str) -> None:
    check_nothing(RULE, HELD.replace("TEST", test))


ROUNDED_UP = ["math.ceil(n / world_size)", "int(np.ceil(n / float(world_size)))", "(n + world_size - 1) // world_size",
              "-(-n // world_size)"]  # fmt: skip


def window(per: str, end: str, *, first: str = "rank * per", walked: str = "range(first, last)") -> str:
    own = (
        "def __init__(self, rows, rank, world_size):\n    self.rows, self.rank, self.world_size = rows, rank, world_size\n\n"
        "def __iter__(self):\n    rank, world_size, n = self.rank, self.world_size, len(self.rows)\n"
        f"    per = {per}\n    first = {first}\n    last = {end}\n    for i in {walked}:\n        yield self.rows[i]\n"
    )
    return share_class(own, base="IterableDataset")


@pytest.mark.parametrize("per", ROUNDED_UP)
def test_a_window_that_is_rounded_up_and_ends_at_the_whole(per: str) -> None:
    check_told(RULE, window(per, "min(first + per, n)"), reason=WHY)


@pytest.mark.parametrize(
    ("per", "end"),
    [("n // world_size", "min(first + per, n)"),  # rounded down: no window comes to the end
     ("math.ceil(n / world_size)", "first + per"),  # as many on all ranks, or an error
     ("int(n / world_size)", "min(first + per, n)")],
)  # fmt: skip
def test_windows_of_one_length(per: str, end: str) -> None:
    check_nothing(RULE, window(per, end))


def test_a_window_that_all_ranks_have() -> None:
    check_nothing(RULE, window("math.ceil(n / 4)", "min(first + per, n)", first="0"))


MONAI = "DataLoader(partition_dataset(rows[rank:], num_partitions=world_size, even_divisible={})[rank], batch_size=4)"


def test_parts_that_monai_fills_up_are_equal() -> None:
    parts = "    parts = {name: partition_dataset(r, 2, even_divisible=True)[rank] for name, r in rows.items()}\n"
    check_nothing(RULE, train("DataLoader(parts['train'], batch_size=4)", before=parts))
    check_nothing(RULE, train(MONAI.format("True")))


def test_entries_of_their_own_length_are_so_under_the_same_keys() -> None:
    parts = "    parts = {name: r[rank::world_size] for name, r in rows.items()}\n"
    check_told(RULE, train("DataLoader(parts['train'], batch_size=4)", before=parts), reason=WHY)


BEGUN = """\
import torch
import torch.distributed as dist


def main(net, make):
    rank = dist.get_rank()
    worker = make(net, rank=rank)
    begun = worker.resume("last.pt")
    for step in range(begun, END, 10):
        worker.train(10)
        dist.barrier()
"""


def test_a_count_that_goes_as_far_from_wherever_it_begins() -> None:
    check_nothing(RULE, BEGUN.replace("END", "begun + 100"))
    check_nothing(RULE, BEGUN.replace("END", "100 + begun"))
    check_told(RULE, BEGUN.replace("END", "begun + 100 * rank"), reason=WHY)


# A data set that goes through another one

ROUND_IT = """\
class Grouped(IterableDataset):
    def __init__(self, inner, size):
        self.inner = inner
        self.size = size

    def __iter__(self):
        group = []
        for row in self.inner:
            group.append(row)
            if len(group) == self.size:
                yield group
                group = []


"""


def grouped(*, wrapper: str = ROUND_IT, inner: str = "Share(rows, rank, world_size)", test: str = "% self.world_size ==") -> str:
    share = STRIDED.replace("TEST", f"if i {test} self.rank:\n            yield row")
    source = share_class(share, base="IterableDataset").replace("DataLoader(Share(rows, rank, world_size)", "DataLoader(made")
    source = source.replace("    for batch in", f"    made = {inner}\n    made = Grouped(made, 8)\n    for batch in")
    return source.replace("def train(", f"{wrapper}def train(")


def test_a_data_set_that_goes_through_the_share_of_another_one() -> None:
    found = check_told(RULE, grouped(), reason=WHY)
    assert any("is each rank's own share" in e.text for e in found.evidence)


@pytest.mark.parametrize(
    "source",
    [grouped(inner="rows"),  # what it goes through is not seen to be a share
     grouped(test="> self.world_size +"),  # the first rows are left out, nothing is dealt out
     grouped(wrapper=ROUND_IT.replace("            group.append(row)", "            if row is None:\n                break\n"
                                      "            group.append(row)")),  # it may end after as many on every rank
     grouped(wrapper=ROUND_IT.replace("        for row in", "        while True:\n          for row in"))],  # it has no end
)  # fmt: skip
def test_data_sets_round_another_one_that_come_to_as_many_or_are_not_seen(source: str) -> None:
    check_nothing(RULE, source)


FIELDS = (
    HEAD + "def log_all(outputs, lr):\n    metrics = {{'lr': torch.tensor(lr)}}\n    for name in {names}:\n"
    "        value = getattr(outputs, name)\n        if isinstance(value, torch.Tensor) and value.dim() <= 1:\n"
    "            metrics[name] = value.detach()\n    for name, value in sorted(metrics.items(), key=lambda pair: pair[0]):\n"
    "        dist.all_reduce(value)\n\n\ndef train(net, loader):\n    net = DDP(net)\n    for batch in loader:\n"
    "        log_all(net(batch), 0.1)\n"
)


@pytest.mark.parametrize("names", ["outputs.__dataclass_fields__.keys()", "dir(outputs)", "outputs._fields"])
def test_the_fields_of_a_record_are_the_same_on_all_ranks(names: str) -> None:
    check_nothing(RULE, FIELDS.format(names=names))


FRACTION = "    n = len(rows)\n    first = n * rank // world_size\n    last = n * (rank + 1) // world_size\n"
DEALER = f"""{HEAD}class Dealer:
    def __init__(self, rows, world_size):
        self.rows, self.world_size = rows, world_size

    def mine(self, rank):
        n = self.rows.numel()
        first = (n * rank) // self.world_size
        return self.rows[first : (n * (rank + 1)) // self.world_size]


def train(net, rows, loss_of):
    model = DDP(net)
    dealer = Dealer(rows, dist.get_world_size())
    for batch in DataLoader(dealer.mine(dist.get_rank()), batch_size=4):
        loss_of(model(batch)).backward()
"""


def test_bounds_at_fractions_of_the_whole() -> None:
    """100 rows on three ranks are 33, 33 and 34."""
    check_told(RULE, train("rows[first:last]", before=FRACTION), reason=WHY)
    check_told(RULE, DEALER, reason=WHY)


@pytest.mark.parametrize(
    "before",
    ["    n = len(rows) // world_size * world_size\n" + FRACTION.partition("\n")[2],
     "    n = len(rows)\n    first = n // world_size * rank\n    last = n // world_size * (rank + 1)\n",
     "    n = len(rows)\n    part = n * 4 // world_size\n    first = part * rank\n    last = part * (rank + 1)\n"],
)  # fmt: skip
def test_bounds_at_equal_steps(before: str) -> None:
    check_nothing(RULE, train("rows[first:last]", before=before))


def test_a_dealer_of_a_whole_that_divides() -> None:
    check_nothing(RULE, DEALER.replace("self.rows.numel()", "self.rows.numel() // self.world_size * self.world_size"))


STAGES = (
    HEAD + "{helper}def run(model, batches, rank, world_size):\n    model = DDP(model)\n    behind = world_size - rank - 1\n"
    "    for i in range(min(behind, len(batches))):\n        {line}\n        model(batches[i]).backward()\n"
)
TAKES = "def take(grad, rank):\n    {call}\n    return grad\n\n\n"


@pytest.mark.parametrize(
    "call", ["dist.recv(grad, rank + 1)", "dist.batch_isend_irecv([dist.P2POp(dist.irecv, grad, rank + 1)])"]
)
def test_the_stages_of_a_pipeline(call: str) -> None:
    check_nothing(RULE, STAGES.format(helper=TAKES.format(call=call), line="take(batches[i], rank)"))
    check_nothing(RULE, STAGES.format(helper="", line=call.replace("grad", "batches[i]")))


@pytest.mark.parametrize("call", ["grad.zero_()", "pipe.recv(grad)"])
def test_rounds_by_the_rank_that_pair_up_with_nobody(call: str) -> None:
    check_told(RULE, STAGES.format(helper=TAKES.format(call=call), line="take(batches[i], rank)"), reason="let one rank say")


UNEVEN = "DataLoader(rows[rank::world_size], batch_size=4)"
OF_TASKS = f"    loaders = {{}}\n    for task in tasks:\n        loaders[task] = {UNEVEN}\n"


@pytest.mark.parametrize("source", ["loaders.items()", "loaders.values()", "loaders", "sorted(loaders)"])
def test_the_tasks_of_a_dict_of_uneven_loaders_are_as_many_on_each_rank(source: str) -> None:
    told = train(source, before=OF_TASKS, body="dist.barrier()").replace("def train(net,", "def train(net, tasks,")
    check_nothing(RULE, told)


def test_the_tasks_are_as_many_in_the_function_that_is_handed_the_loaders() -> None:
    source = (
        f"{HEAD}def build(tasks, rows, rank, world_size):\n{OF_TASKS}    return loaders\n\n\n"
        "def evaluate(loaders):\n    for task, loader in loaders.items():\n        dist.barrier()\n\n\n"
        "def main(tasks, rows):\n    evaluate(build(tasks, rows, dist.get_rank(), dist.get_world_size()))\n"
    )
    check_nothing(RULE, source)


@pytest.mark.parametrize("loop", ["loaders['train']", "loaders.get('train')"])
def test_the_batches_of_an_uneven_loader_under_a_key_are_not_as_many(loop: str) -> None:
    before = f"    loaders = {{}}\n    loaders['train'] = {UNEVEN}\n"
    check_told(RULE, train(loop, before=before), reason=WHY)


def test_a_dict_with_a_key_for_each_row_of_the_share_has_keys_of_its_own() -> None:
    before = "    found = {}\n    for row in rows[rank::world_size]:\n        found[row] = DataLoader(row)\n"
    check_told(RULE, train("found.items()", before=before, body="dist.barrier()"), reason="go through the same keys")


def test_the_keys_of_settings_are_the_same_where_an_object_round_an_uneven_loader_stands_under_them() -> None:
    source = (
        f"{HEAD}class Ahead:\n    def __init__(self, loader):\n        self.loader = loader\n\n    def __iter__(self):\n"
        "        yield from self.loader\n\n    def __len__(self):\n        return len(self.loader)\n\n\n"
        "def build(options, rows, rank, world_size):\n    loaders = {}\n    for one in options.data:\n"
        f"        loaders[f\"{{one['task']}}-1\"] = Ahead({UNEVEN})\n    return loaders\n\n\n"
        "def evaluate(loaders):\n    for task, loader in loaders.items():\n        dist.barrier()\n\n\n"
        "def main(options, rows):\n    evaluate(build(options, rows, dist.get_rank(), dist.get_world_size()))\n"
    )
    check_nothing(RULE, source)


FILL = "while len(mine) < count:\n            mine.extend(rows[rank::world_size])"


def refilled(*lines: str, cut: str = "mine[:count]") -> str:
    body = "".join(f"        {line}\n" for line in ("mine = []", *lines, f"for row in {cut}:\n            dist.barrier()"))
    return (
        f"{HEAD}class Plan:\n    def walk(self, rows, count):\n"
        f"        rank, world_size = dist.get_rank(), dist.get_world_size()\n{body}"
    )


@pytest.mark.parametrize(
    "lines",
    [
        (FILL,),
        (FILL, "if len(mine) >= count:\n            mine = mine[:count]"),
        (FILL.replace("count", "self.count"), "mine = mine[:self.count]"),
        (FILL, "print(len(mine))"),
    ],
)
def test_a_share_that_is_refilled_and_cut_to_one_length_is_even(lines: tuple[str, ...]) -> None:
    check_nothing(RULE, refilled(*lines, cut="mine" if "mine = mine" in lines[-1] else "mine[:count]"))


@pytest.mark.parametrize(
    ("lines", "cut"),
    [
        (("mine.extend(rows[rank::world_size])",), "mine[:count]"),
        ((FILL + "\n            break",), "mine[:count]"),
        ((FILL,), "mine"),
        ((FILL,), "mine[1:count]"),
        ((FILL, "mine = rows[rank::world_size]"), "mine[:count]"),
    ],
)
def test_a_share_that_may_be_shorter_is_told(lines: tuple[str, ...], cut: str) -> None:
    check_told(RULE, refilled(*lines, cut=cut), reason=WHY)
