"""A script that turns its own switch for several processes off by a name at its top is run by one process."""

from __future__ import annotations

import pytest

from codemods.launch.unbound_name import UnboundName
from codemods.ranks.unguarded_print import UnguardedPrint
from ddpfix.testing import findings_of

SCRIPT = (
    "import torch\nimport torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n\n"
    "{switch}\n{more}\nmodel = torch.nn.Linear(1, 1)\nif ddp:\n    dist.init_process_group('gloo')\n"
    "    model = DDP(model, device_ids=[local])\n{wrap}\nrank = int(__import__('os').environ.get('RANK', 0))\nprint('ready')\n"
)


def codes(switch: str, more: str = "", wrap: str = "", files: dict[str, str] | None = None) -> set[str]:
    source = SCRIPT.format(switch=switch, more=more, wrap=wrap)
    return {f.code for rule in (UnboundName, UnguardedPrint) for f in findings_of(rule, source, files or {}, path="train.py")}


def test_what_stands_behind_the_switch_is_dead() -> None:
    assert not codes("ddp = False")


def test_a_function_that_nobody_calls_needs_no_test() -> None:
    assert not codes("ddp = False", "def set_up():\n    dist.init_process_group('gloo')\n")


@pytest.mark.parametrize(("switch", "more", "wrap"), [
    ("ddp = True", "", ""),
    ("ddp = False", "import sys\nif '--ddp' in sys.argv:\n    ddp = True\n", ""),  # another value
    ("ddp = False", "def turn_on():\n    global ddp\n    ddp = True\n\n\nturn_on()\n", ""),
    ("ddp = False", "exec(open('overrides.py').read())\n", ""),
    ("ddp = False", "", "if not ddp:\n    dist.init_process_group('nccl')\n"),  # a group all the same
    ("ddp = False", "def set_up():\n    dist.init_process_group('gloo')\n\n\nset_up()\n", ""),
])  # fmt: skip
def test_switches_that_may_be_on(switch: str, more: str, wrap: str) -> None:
    assert codes(switch, more, wrap)
