"""DDP502: states that go to `torch.save` by a function that hands on all it is given."""

from __future__ import annotations

import pytest

from codemods.checkpoints.wrapped_state_dict import WrappedStateDict
from codemods.ranks.unguarded_file_io import UnguardedFileIo
from ddpfix.testing import check_nothing, findings_of

PROGRAM = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)


def save_on_master({parameters}):
    if dist.get_rank() == 0:
        {save}


def keep(path, net, scaler):
    {kept}


def resume(path, net):
    state = torch.load(path, map_location="cpu")
    net.load_state_dict(state["model"])


def main(path, scaler):
    net = Net()
    resume(path, net)
    net = DDP(net)
    keep(path, net, scaler)
"""
ALL, SAVE = "*args, **kwargs", "torch.save(*args, **kwargs)"
KEPT = 'save_on_master({"model": net.state_dict(), "epoch": 1}, path)'
NAMED = 'state = {"model": net.state_dict()}\n    save_on_master(state, path)'
ARMS = """\
if scaler is not None:
        state = {"model": net.state_dict(), "scaler": scaler.state_dict()}
        save_on_master(state, path)
    else:
        state = {"model": net.state_dict()}
        save_on_master(state, path)"""


def program(kept: str, parameters: str = ALL, save: str = SAVE) -> str:
    return PROGRAM.replace("{parameters}", parameters).replace("{save}", save).replace("{kept}", kept)


@pytest.mark.parametrize("kept", [KEPT, NAMED, ARMS])
@pytest.mark.parametrize(
    ("parameters", "save"), [(ALL, SAVE), ("*args", "torch.save(*args)"), ("state, path", "torch.save(state, path)")]
)
def test_the_keys_of_the_wrapper(kept: str, parameters: str, save: str) -> None:
    assert [f.code for f in findings_of(WrappedStateDict, program(kept, parameters, save))]


@pytest.mark.parametrize(
    ("kept", "parameters", "save"),
    [
        (KEPT.replace("net.state", "net.module.state"), ALL, SAVE),
        (KEPT, ALL, "torch.save(args[0], 'x.pt')"),  # not known to be the same
        (KEPT, ALL, "print(*args, **kwargs)"),
        (KEPT, "first, *args", "torch.save(*args)"),
        ("save_on_master(path, {'model': net.state_dict()})", ALL, SAVE),  # it is the second argument
        (NAMED.replace("    save_on", "    state = {}\n    save_on"), ALL, SAVE),
    ],
)
def test_what_has_other_keys_or_is_not_saved(kept: str, parameters: str, save: str) -> None:
    check_nothing(WrappedStateDict, program(kept, parameters, save))


def test_the_helper_keeps_it_to_rank_0() -> None:
    check_nothing(UnguardedFileIo, program(KEPT))
