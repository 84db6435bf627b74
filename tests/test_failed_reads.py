"""Files that a rank cannot read: small programs, and what is known of their `probe(...)`."""

from __future__ import annotations

import pytest

from codemods.analysis.variance.values import Cause
from tests.test_variance import probed

RESUMED = """
def main(cfg, net):
    try:
        LOAD
        begin = state["epoch"] + 1
    except Exception:
        print("from scratch")
        begin = 0
    probe(begin <= cfg.warm_up)
"""
OWN = {
    "a number that is read from a file": RESUMED.replace("LOAD", "state = read(cfg.path)"),
    "a table beside which no model is restored": RESUMED.replace("LOAD", "state = torch.load(cfg.path)"),
    "a state that is read in each round": (
        "while waiting():\n    try:\n        net.load_state_dict(torch.load(newest()))\n        at = 1\n"
        "    except Exception:\n        at = 0\n    probe(at)"
    ),
}
ALIKE = {
    "the state of a model": RESUMED.replace("LOAD", "state = torch.load(cfg.path)\n        net.load_state_dict(state['net'])"),
    "by a helper": RESUMED.replace("LOAD", "net, state = load_checkpoint(cfg.path, net)"),
    "by a helper of another file, without a function": (
        "import files\ntry:\n    _, step = files.load_checkpoint(newest(), net)\nexcept RuntimeError:\n    step = 0\n"
        "for batch in loader:\n    step += 1\n    probe(step > 100)"
    ),
}


@pytest.mark.parametrize("name", OWN)
def test_what_a_rank_may_not_have_read(name: str) -> None:
    value = probed(OWN[name])
    assert value.differs and value.cause is Cause.PLACE


@pytest.mark.parametrize("name", ALIKE)
def test_a_checkpoint_from_which_all_ranks_go_on(name: str) -> None:
    assert not probed(ALIKE[name]).differs
