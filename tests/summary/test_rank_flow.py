"""The lanes of the ranks, from what the codemods themselves say of small programs."""

from __future__ import annotations

from pathlib import Path

from codemods.api.findings import Evidence, Finding, PathRole, PathStep, Span
from ddpfix import engine
from ddpfix.discovery import discover
from ddpfix.settings import Settings
from ddpfix.summary.lanes import Flow, Kind
from ddpfix.summary.rank_flow import drawn, flow_of
from tests.gitrepos import put

GUARDED = b"""\
import torch
import torch.distributed as dist


def save(model, path):
    if dist.get_rank() == 0:
        torch.save(model.state_dict(), path)
        dist.barrier()
"""
HELPER = b"""\
import torch.distributed as dist


def wait_for_all():
    dist.barrier()


def finish(log):
    if dist.get_rank() == 0:
        log.write("done")
        wait_for_all()
        log.close()
"""
LEAVES = b"""\
import lightning.pytorch as pl


class Plots(pl.Callback):
    def on_train_epoch_end(self, trainer, pl_module):
        if not trainer.is_global_zero:
            return

        draw(pl_module).savefig("epoch.png")
        trainer.strategy.barrier()
"""
READ = b"""\
import torch
from accelerate import Accelerator


def average(accelerator: Accelerator, model, path):
    if accelerator.is_main_process:
        torch.save(model.state_dict(), path)
    return torch.load(path, map_location="cpu")
"""
SKIPS = b"""\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def total_loss(model, dataset, device):
    loader = DataLoader(dataset, sampler=DistributedSampler(dataset))
    model = DistributedDataParallel(model)
    total = torch.zeros(1, device=device)
    for batch in loader:
        loss = model(batch).mean()
        if loss > 100:
            continue
        total += loss
        dist.all_reduce(total)
    return total
"""
SHOWN = b"""\
import torch.distributed as dist
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def evaluate(model, dataset, best):
    loader = DataLoader(dataset, sampler=DistributedSampler(dataset))
    total = 0.0
    for batch in loader:
        total += model(batch).item()
    mean_loss = total / len(loader)
    if dist.get_rank() == 0 and mean_loss < best:
        best = mean_loss
        model.save("best.pt")
    return best
"""
CROSSED = b"""\
import torch.distributed as dist


def share(values, total):
    if dist.get_rank() == 0:
        dist.all_reduce(total)
    else:
        dist.broadcast(values, src=0)
"""


def found(folder: Path, source: bytes, code: str) -> Finding:
    put(folder, {"train.py": source})
    (tree,) = discover([folder])
    (only,) = [f for f in engine.check(tree, Settings(), use_cache=False).findings if f.code == code]
    return only


def flow(folder: Path, source: bytes, code: str) -> Flow:
    made = flow_of(found(folder, source, code))
    assert made is not None
    return made


def test_rank_0_waits_where_the_others_never_come(tmp_path: Path) -> None:
    assert drawn(flow(tmp_path, GUARDED, "DDP301")) == [
        "rank 0 | other ranks",
        "│   │",
        "◆───╮   train.py:6  dist.get_rank() == 0",
        "│   ┆   rank 0 goes in, other ranks pass by",
        "■╌╌╌┆   train.py:8  torch.distributed.barrier",
        "    ┆   rank 0 waits here for other ranks",
        "    ▼   train.py:8  the end of save",
        "        other ranks come here without it",
    ]


def test_the_calls_that_lead_to_a_collective_are_stops_of_their_own(tmp_path: Path) -> None:
    made = flow(tmp_path, HELPER, "DDP301")
    assert [(s.kind, s.text, s.line) for s in made.stops] == [
        (Kind.PARTS, "dist.get_rank() == 0", 9),
        (Kind.CALLS, "wait_for_all()", 11),
        (Kind.WAITS, "torch.distributed.barrier", 5),
        (Kind.ENDS, "the end of finish", 12),
    ]


def test_ranks_that_leave_early(tmp_path: Path) -> None:
    made = flow(tmp_path, LEAVES, "DDP303")
    assert made.lanes == ("rank 0", "other ranks")
    assert [(s.kind, s.line, s.note) for s in made.stops] == [
        (Kind.PARTS, 6, "other ranks leave here"),
        (Kind.WAITS, 10, "rank 0 waits here for other ranks"),
        (Kind.ENDS, 10, "other ranks come here without it"),
    ]


def test_a_file_that_is_read_too_early(tmp_path: Path) -> None:
    assert drawn(flow(tmp_path, READ, "DDP302")) == [
        "rank 0 | other ranks",
        "│   │",
        "●   │   train.py:7  torch.save",
        "│   │   rank 0 alone",
        "╌╌╌╌╌   no barrier",
        "│   │   nobody waits for rank 0 here",
        "●   ●   train.py:8  torch.load",
        "        every rank; the other ranks may be here first",
    ]


def test_both_wait_where_each_meets_another_collective(tmp_path: Path) -> None:
    waits = [s for s in flow(tmp_path, CROSSED, "DDP301").stops if s.kind is Kind.WAITS]
    assert [(s.lane, s.line) for s in waits] == [(0, 6), (1, 8)]


def test_who_saves_its_part_alone_is_not_said_to_wait() -> None:
    evidence = (
        Evidence("static", "…", "a.py", 3, step=PathStep(PathRole.UNDER, "accelerator.is_main_process", "rank 0")),
        Evidence("static", "…", "a.py", 4, step=PathStep(PathRole.OWN_PART, "accelerator.save_state")),
        Evidence("static", "…", "a.py", 9, step=PathStep(PathRole.ENDS, "the end of train", "the other ranks")),
    )
    finding = Finding("DDP301", "x", "a.py", Span(4, 0, 4, 9), "train", "…", evidence)
    made = flow_of(finding)
    assert made is not None
    assert [s.kind for s in made.stops] == [Kind.PARTS, Kind.ALONE, Kind.ENDS]
    assert "wait" not in "\n".join(drawn(made))


def test_evidence_of_no_two_ways_is_no_picture(tmp_path: Path) -> None:
    lone = (Evidence("static", "`files[rank::world]`", "a.py", 3),)
    assert flow_of(Finding("DDP301", "x", "a.py", Span(4, 0, 4, 9), "f", "m", lone)) is None
    assert flow_of(Finding("DDP301", "x", "a.py", Span(4, 0, 4, 9), "f", "m", lone * 4)) is None
    assert flow_of(Finding("DDP203", "x", "a.py", Span(4, 0, 4, 9), "f", "m", lone * 2)) is None


def test_long_words_are_wrapped_beside_the_lanes(tmp_path: Path) -> None:
    long = GUARDED.replace(b"dist.get_rank() == 0", b"dist.get_rank() == 0 and " + b" and ".join([b"model.training"] * 12))
    rows = drawn(flow(tmp_path, long, "DDP301"))
    assert max(map(len, rows)) < 100 and "│   ┆   " in rows[3]


def test_the_way_of_a_value_that_decides_over_a_collective(tmp_path: Path) -> None:
    assert drawn(flow(tmp_path, SKIPS, "DDP305")) == [
        "some ranks | the others",
        "│   │",
        "●   ○   train.py:9",
        "│   │   its sampler gives each rank its own share of the data",
        "●   ○   train.py:9  loader = DataLoader(dataset, sampler=DistributedSampler(d...",
        "●   ○   train.py:13  loss = model(batch).mean()",
        "◆───╮   train.py:14",
        "│   ┆   each rank decides for itself here",
        "■╌╌╌┆   train.py:17  torch.distributed.all_reduce",
        "    ┆   these wait here for the others",
    ]


def test_the_way_of_a_number_that_one_rank_goes_by(tmp_path: Path) -> None:
    made = flow(tmp_path, SHOWN, "DDP106")
    assert made.lanes == ("one rank", "the others")
    assert [(s.kind, s.line) for s in made.stops] == [
        (Kind.VALUE, 7),
        (Kind.VALUE, 7),
        (Kind.VALUE, 10),
        (Kind.VALUE, 11),
        (Kind.SHOWS, 11),
    ]
    assert made.stops[-2].text == "mean_loss = total / len(loader)"
