"""DDP501: each rank stores its own part of the results under one name; rank 0 alone would lose those of the others."""

from __future__ import annotations

import pytest

from codemods.checkpoints.unguarded_save import UnguardedSave
from ddpfix.testing import check_told, findings_of

HEAD = "import torch\nimport torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n\n\n"


def program(*lines: str) -> str:
    start = ("dist.init_process_group('gloo')", "rank, world = dist.get_rank(), dist.get_world_size()", "net = DDP(net)")
    return f"{HEAD}def main(rows, net, out):\n" + "".join(f"    {line}\n" for line in (*start, *lines))


OWN = "found = [net(row) for row in rows[rank::world]]"


@pytest.mark.parametrize(
    "lines",
    [
        (OWN, "torch.save(found, f'{out}/rows.pt')"),
        ("mine = rows[rank::world]", "torch.save([encode(row) for row in mine], 'rows.pt')"),
        ("found = []", "for row in rows[rank::world]:", "    found.append(net(row))", "torch.save({'rows': found}, 'rows.pt')"),
    ],
)
def test_parts_are_not_left_to_rank_0(lines: tuple[str, ...]) -> None:
    found = check_told(UnguardedSave, program(*lines), reason="put the rank into the name")
    assert "only that of the rank that writes last is left" in found.message


@pytest.mark.parametrize(
    "lines",
    [
        (OWN, "torch.save({'model': net.module.state_dict(), 'rows': found}, 'last.pt')"),  # a checkpoint, whatever else is in it
        ("torch.save(net.module.state_dict(), 'last.pt')",),
        (OWN, "state = {'epoch': 3, 'rows': found}", "torch.save(state, 'last.pt')"),
        ("torch.save(rows, 'rows.pt')",),  # all of them
    ],
)
def test_what_is_no_part(lines: tuple[str, ...]) -> None:
    assert not [f for f in findings_of(UnguardedSave, program(*lines)) if "own part" in f.message]


def test_a_part_with_the_rank_in_its_name() -> None:
    assert not findings_of(UnguardedSave, program(OWN, "torch.save(found, f'rows_{rank}.pt')"))
