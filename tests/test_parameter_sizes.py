"""What is told of the sizes of a model's parameters is the same on every rank."""

from __future__ import annotations

import pytest

from codemods.api.findings import Applicability
from codemods.ranks.unguarded_file_io import UnguardedFileIo
from ddpfix.testing import findings_of

SIZES = """\
def table(model, width=60):
    rows = [(name[:width], p.numel(), str(tuple(p.shape)), p.requires_grad) for name, p in model.named_parameters()]
    text = '-' * width + '\\n'
    for name, count, shape, trained in rows:
        text += f'{name:<{width}} {shape} {count:,} {trained}\\n'
    return text
"""
TOTAL = """\
def table(net):
    total = 0
    for p in net.parameters():
        total += p.numel()
    return 'parameters: {}'.format(total)
"""
TYPED = TOTAL.replace("(net)", "(net: dist.Any, *, unit: str = 'M') -> str")
BY_ANOTHER = """\
def count(net):
    return sum(p.numel() for p in net.parameters() if p.requires_grad)


def table(net):
    return str(count(net)) + ' are trained'
"""


def level(
    functions: str, *, call: str = "table(model)", files: dict[str, str] | None = None, apart: bool = False
) -> Applicability:
    home = {"sizes.py": functions} if apart else {}
    head = "import torch.distributed as dist\n" + ("import sizes\n\n\n" if apart else f"\n\n{functions}\n\n")
    call = f"sizes.{call}" if apart else call
    source = (
        f"{head}def main(args, model):\n    dist.init_process_group('nccl')\n    rank = dist.get_rank()\n    told = {call}\n"
        "    with open('sizes.txt', 'w') as out:\n        out.write(told)\n    dist.barrier()\n"
        "\n\nif __name__ == '__main__':\n    main(parse(), build())\n"
    )
    texts = {**home, **(files or {}), "run.sh": "torchrun --nproc_per_node=2 module.py\n"}
    (found,) = findings_of(UnguardedFileIo, source, texts)
    assert (found.severity == "noise") is (found.applicability is Applicability.SAFE)
    return found.applicability


@pytest.mark.parametrize("functions", [SIZES, TOTAL, TYPED, BY_ANOTHER])
@pytest.mark.parametrize("apart", [False, True])
def test_the_sizes_of_the_parameters_are_everybodys(functions: str, apart: bool) -> None:
    assert level(functions, apart=apart) is Applicability.SAFE


def test_a_literal_beside_the_model() -> None:
    assert level(SIZES, call="table(model, width=40)") is Applicability.SAFE
    assert level(SIZES, call="table(model, args.width)") is Applicability.UNSAFE


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("p.requires_grad)", "p.grad)"),
        ("p.requires_grad)", "p.sum())"),
        ("p.requires_grad)", "p)"),
        ("p.requires_grad)", "p.device)"),
        ("p.requires_grad)", "rank)"),
        ("p.requires_grad)", "where())"),
        ("    return text", "    return text + str(model)"),
        ("in model.named_parameters()", "in model.state_dict().items()"),
        ("in model.named_parameters()", "in chosen(model.named_parameters())"),
        ("    return text", "    return text + open('host').read()"),
        ("width=60", "width=wide()"),
        ("    return text", "    return text + HOST"),
    ],
)
def test_what_tells_more_than_sizes(old: str, new: str) -> None:
    assert old in SIZES
    assert level(SIZES.replace(old, new)) is not Applicability.SAFE


@pytest.mark.parametrize("word", ["FullyShardedDataParallel(net)", "deepspeed.initialize(net)", "parallelize_module(net, plan)"])
def test_a_project_that_cuts_models_up(word: str) -> None:
    assert level(TOTAL, files={"shards.py": f"def cut(net):\n    return {word}\n"}) is Applicability.UNSAFE
