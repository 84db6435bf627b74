"""DDP502 where the keys of a state lose `module.` and go into the wrapper all the same."""

from __future__ import annotations

import pytest

from codemods.checkpoints.wrapped_state_dict import WrappedStateDict
from ddpfix.testing import check_nothing, check_transformed

RULE = WrappedStateDict
HEAD = """\
from collections import OrderedDict

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def without(path):
    state = torch.load(path, map_location="cpu")
    out = OrderedDict()
    for key, value in state.items():
        name = key.replace("module.", "")  # remove `module.`
        out[name] = value
    return out


"""
LOOP = "state = OrderedDict()\n    for k, v in saved.items():\n        state[k[len('module.'):]] = v"
TESTED = (
    "state = OrderedDict()\n    for k, v in saved.items():\n        if k.startswith('module.'):\n            k = k[7:]\n"
    "        state[k] = v"
)
CONSUMED = "state = saved\n    torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, 'module.')"


def program(made: str, load: str = "model.load_state_dict(state)", *, wrap: str = "model = DDP(net)") -> str:
    lines = f"    saved = torch.load(path)\n    {wrap}\n    {made}\n    {load}\n    return model\n"
    return f"{HEAD}def resume(net, path, alone):\n{lines}"


@pytest.mark.parametrize(
    "made",
    [
        "state = {k.replace('module.', ''): v for k, v in saved.items()}",
        "state = {k[7:] if k.startswith('module.') else k: v for k, v in saved.items()}",
        "state = {k.removeprefix('module.'): v for k, v in saved.items()}",
        "state = {k.split('module.')[-1]: v for k, v in saved.items()}",
        "state = without(path)",
        LOOP,
        TESTED,
        CONSUMED,
    ],
)
def test_a_state_without_the_prefix_in_the_wrapper(made: str) -> None:
    after = program(made, "model.module.load_state_dict(state)")
    check_transformed(RULE, program(made), after, unsafe=True)


def test_the_state_of_a_helper_as_it_is_handed_over() -> None:
    found = program("pass", "model.load_state_dict(without(path), strict=False)")
    after = program("pass", "model.module.load_state_dict(without(path), strict=False)")
    check_transformed(RULE, found, after, unsafe=True)


def test_one_of_several_that_a_helper_wraps() -> None:
    helper = (
        "def in_parallel(*nets):\n    nets = [n.cuda() for n in nets]\n    if dist.is_initialized():\n"
        "        nets = [DDP(n) for n in nets]\n    return nets\n\n\n"
    )
    source = program("state = without(path)", wrap="model, other = in_parallel(net, alone)")
    source = source.replace("def resume", f"{helper}def resume")
    after = source.replace("model.load_state_dict", 'getattr(model, "module", model).load_state_dict')
    check_transformed(RULE, source, after, unsafe=True)


def test_a_state_that_another_file_takes_it_off() -> None:
    helper = HEAD[HEAD.index("def without") :].rstrip() + "\n"
    source = program("state = without(path)").replace(HEAD[HEAD.index("def without") :], "from tools import without\n\n\n")
    files = {"tools.py": f"from collections import OrderedDict\n\nimport torch\n\n\n{helper}"}
    after = source.replace("model.load_state_dict(state)", "model.module.load_state_dict(state)")
    check_transformed(RULE, source, after, files=files, unsafe=True)


@pytest.mark.parametrize(
    "source",
    [
        program("state = without(path)", "model.module.load_state_dict(state)"),
        program("state = without(path)", "net.load_state_dict(state)", wrap="model = net"),
        program("state = without(path)", "net.load_state_dict(state)\n    model = DDP(net)", wrap="pass"),
        program("state = without(path) if alone else saved"),
        program("state = {'module.' + k: v for k, v in without(path).items()}"),
        program("state = {k: v for k, v in saved.items() if 'head' not in k}"),
        program("state = {k[7:]: v for k, v in saved.items()}").replace("  # remove `module.`", "").replace("module.", "net."),
        program("state = saved\n    if alone:\n        state = without(path)"),
        program(TESTED.replace("if k.startswith('module.')", "if alone")),
        program(LOOP.replace("        state[", "        if alone:\n            state[")),
        program(
            "state = without(path)",
            "if hasattr(model, 'module'):\n        model.module.load_state_dict(state)\n"
            "    else:\n        model.load_state_dict(state)",
        ),
    ],
)
def test_states_that_fit_or_may_fit(source: str) -> None:
    check_nothing(RULE, source)
