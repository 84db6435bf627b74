"""DDP411: shards that webdataset gives each rank, and that need not hold as many samples."""

from __future__ import annotations

import pytest

from codemods.data_loading.uneven_steps import UnevenSteps
from ddpfix.testing import check_nothing, check_told

RULE = UnevenSteps
WHY = "with `resampled=True` for the shards"
SPLIT = "wds.WebDataset(urls, nodesplitter=wds.split_by_node)"
LOADER = "wds.WebLoader(data, batch_size=None, num_workers=2)"


def train(data: str, *, loader: str = LOADER, before: str = "", body: str = "loss_of(model(batch)).backward()") -> str:
    return (
        "import itertools\nimport torch.distributed as dist\nimport webdataset as wds\n"
        "from torch.nn.parallel import DistributedDataParallel as DDP\nfrom torch.utils.data import DataLoader\n\n\n"
        f"def batches(urls, several):\n{before}    data = {data}\n    return {loader}\n\n\n"
        'def train(net, urls, loss_of):\n    dist.init_process_group("nccl")\n    model = DDP(net)\n'
        f"    for batch in batches(urls, True):\n        {body}\n"
    )


@pytest.mark.parametrize(
    "data",
    [
        SPLIT,
        f'{SPLIT}.shuffle(100).decode("rgb").to_tuple("jpg", "cls").batched(16)',
        "wds.DataPipeline(wds.SimpleShardList(urls), wds.split_by_node, wds.split_by_worker, wds.tarfile_to_samples())",
        "wds.WebDataset(urls, resampled=False, nodesplitter=wds.shardlists.split_by_node)",
    ],
)
def test_shards_of_each_node(data: str) -> None:
    check_told(RULE, train(data), reason=WHY)
    check_told(RULE, train(data, loader="DataLoader(data, batch_size=None)"), reason=WHY)


def test_a_splitter_of_runs_on_several_processes() -> None:
    before = "    split = wds.split_by_node if several else (lambda urls: urls)\n"
    check_told(RULE, train("wds.WebDataset(urls, nodesplitter=split)", before=before), reason=WHY)


def test_the_loader_of_a_lightning_module() -> None:
    source = (
        "import lightning.pytorch as pl\nimport webdataset as wds\n\n\nclass Rows(pl.LightningDataModule):\n"
        f"    def train_dataloader(self):\n        urls = self.urls\n        return wds.WebLoader({SPLIT}, batch_size=None)\n"
    )
    check_told(RULE, source, reason=WHY)


@pytest.mark.parametrize(
    "data",
    [
        f"{SPLIT}.with_epoch(1000)",
        f"{SPLIT}.batched(16).repeat(2)",
        f"{SPLIT}.slice(1000)",
        "wds.WebDataset(urls, resampled=True, nodesplitter=wds.split_by_node)",
        "wds.WebDataset(urls, resampled=several, nodesplitter=wds.split_by_node)",
        "wds.DataPipeline(wds.ResampledShards(urls), wds.split_by_node, wds.tarfile_to_samples())",
        "wds.WebDataset(urls, nodesplitter=own_split)",
        "wds.WebDataset(urls, **options)",
        "split_by_node.Stream(urls)",
    ],
)
def test_streams_that_are_as_long_on_all_ranks_or_not_seen(data: str) -> None:
    check_nothing(RULE, train(data))


@pytest.mark.parametrize("loader", [f"{LOADER}.with_epoch(100)", f"itertools.islice({LOADER}, 100)"])
def test_a_loader_that_ends_after_a_number_of_batches(loader: str) -> None:
    check_nothing(RULE, train(SPLIT, loader=loader))


def test_loops_that_count_their_steps_and_that_wait_for_nobody() -> None:
    check_nothing(RULE, train(SPLIT, body="loss_of(model(batch)).backward()\n        if done():\n            break"))
    check_nothing(RULE, train(SPLIT, body="print(batch)"))
