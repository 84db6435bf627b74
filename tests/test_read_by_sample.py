"""DDP605: gathered rows that are read at the number of a sample, and loaders that a mapping holds."""

from __future__ import annotations

import pytest

from codemods.metrics.gathered_duplicates import GatheredDuplicates
from ddpfix.testing import check_nothing, check_told, check_transformed

HEAD = "import torch\nfrom accelerate import Accelerator\nfrom accelerate.utils import gather_object\n\n\n"
READ = ('table.append((batch["text"][i], win[i].item()))',)
PREPARED = "sets = {name: accelerator.prepare(one) for name, one in sets.items()}"
GATHERED = "win = accelerator.gather(win)"
COUNTED = "for i in range(len(win)):"


def run(
    read: tuple[str, ...] = READ,
    gathered: str = GATHERED,
    counted: str = COUNTED,
    prepared: str = PREPARED,
    entry: str = "sets['valid']",
) -> str:
    body = "".join(f"            {line}\n" for line in read)
    return (
        f"{HEAD}@torch.no_grad()\ndef compare(accelerator, model, loader, table, seen):\n    for batch in loader:\n"
        f"        win = model(batch['one']) > model(batch['other'])\n        {gathered}\n"
        f"        batch['text'] = gather_object(batch['text'])\n        {counted}\n{body}    return table\n\n\n"
        f"def main(model, sets, table, seen):\n    accelerator = Accelerator()\n    {prepared}\n"
        f"    compare(accelerator, model, {entry}, table, seen)\n"
    )


def gathers_for_metrics(before: str) -> None:
    check_transformed(GatheredDuplicates, before, before.replace("r.gather(", "r.gather_for_metrics("), unsafe=True)


@pytest.mark.parametrize("counted", [COUNTED, "for i in range(win.shape[0]):", "for i in range(win.size(0)):"])
@pytest.mark.parametrize("gathered", [GATHERED, "win = accelerator.gather(win).cpu()"])
def test_rows_that_are_read_at_the_number_of_a_sample(counted: str, gathered: str) -> None:
    gathers_for_metrics(run(counted=counted, gathered=gathered))


@pytest.mark.parametrize(
    "read",
    [
        ("table.append(win[i].item())",),  # one number for each rank, perhaps
        ('table.append((batch["text"][i], win[0].item()))',),
        ('table.append((seen[i], win[i].item()))',),
        ('seen[batch["text"][i]] = win[i].item()',),  # once under the key of its sample
        ('if batch["text"][i] not in seen:', '    seen.append((batch["text"][i], win[i]))'),
    ],
)
def test_rows_that_may_be_none_or_count_once(read: tuple[str, ...]) -> None:
    check_nothing(GatheredDuplicates, run(read))


def test_rows_whose_table_drops_what_is_there_twice() -> None:
    check_nothing(GatheredDuplicates, run().replace("return table", "return table.drop_duplicates()"))


def test_lists_that_are_longer_than_the_cut_tensors() -> None:
    counted = 'for i in range(len(batch["text"])):'
    check_told(GatheredDuplicates, run(counted=counted), reason="`gather_object` cuts nothing")
    alone = run(counted=counted).replace("        batch['text'] = gather_object(batch['text'])\n", "")
    gathers_for_metrics(alone)


@pytest.mark.parametrize(
    ("prepared", "entry"),
    [
        ("sets = [accelerator.prepare(one) for one in sets]", "sets[0]"),
        ("sets = {'valid': accelerator.prepare(sets.valid)}", "sets['valid']"),
        ("kept = {}; kept['valid'] = accelerator.prepare(sets)", "kept['valid']"),
        ("loaders = {n: accelerator.prepare_data_loader(s) for n, s in sets.items()}", "loaders['test']"),
    ],
)
def test_prepared_loaders_that_a_collection_holds(prepared: str, entry: str) -> None:
    gathers_for_metrics(run(prepared=prepared, entry=entry))


@pytest.mark.parametrize(
    ("prepared", "entry"),
    [
        ("pass", "sets['valid']"),
        ("sets = {name: build(one) for name, one in sets.items()}", "sets['valid']"),
        (f"{PREPARED}; sets['valid'] = build(sets)", "sets['valid']"),
        (f"{PREPARED}; sets = dict(sets)", "sets['valid']"),
        ("sets = {name: model.prepare(one) for name, one in sets.items()}", "sets['valid']"),
        (PREPARED, "others['valid']"),
    ],
)
def test_loaders_that_nothing_prepares(prepared: str, entry: str) -> None:
    check_nothing(GatheredDuplicates, run(prepared=prepared, entry=entry))


def test_a_loop_over_all_prepared_loaders() -> None:
    call = "    compare(accelerator, model, sets['valid'], table, seen)\n"
    each = "    for one in loaders.values():\n        compare(accelerator, model, one, table, seen)\n"
    source = run(prepared=PREPARED.replace("sets =", "loaders =")).replace(call, each)
    gathers_for_metrics(source)
    check_nothing(GatheredDuplicates, source.replace("accelerator.prepare(one) for", "build(one) for"))
