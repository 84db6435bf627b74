"""DDP507 where a function gives the wrapper back beside something else."""

from __future__ import annotations

import pytest

from codemods.checkpoints.attribute_of_wrapper import AttributeOfWrapper
from ddpfix.testing import check_nothing, check_told, check_transformed

HEAD = "import torch\nfrom torch.nn.parallel import DistributedDataParallel\n\n\n"
NET = """class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.width = 3

    def follow(self):
        self.width += 1


"""
BUILD = """def build(args):
    net = Net()
    if args.distributed:
        net = DistributedDataParallel(net)
    elif args.gpu is not None:
        net = net.cuda(args.gpu)
    else:
        raise ValueError
    return net, 4


"""
USE = "def train(args):\n    net, size = build(args)\n    print(net.width, size)\n"
AFTER = 'def train(args):\n    net, size = build(args)\n    print(getattr(net, "module", net).width, size)\n'


def test_the_model_beside_a_number() -> None:
    check_transformed(AttributeOfWrapper, HEAD + NET + BUILD + USE, HEAD + NET + BUILD + AFTER)


def test_a_function_of_another_file() -> None:
    files = {"nets.py": HEAD + NET + BUILD}
    head = "from nets import build\n\n\n"
    check_transformed(AttributeOfWrapper, head + USE, head + AFTER, files=files)


def test_what_a_loss_may_be_made_of_is_not_safe() -> None:
    use = "def train(args):\n    net, size = build(args)\n    net.follow()\n"
    after = use.replace("net.follow", 'getattr(net, "module", net).follow')
    check_transformed(AttributeOfWrapper, HEAD + NET + BUILD + use, HEAD + NET + BUILD + after, unsafe=True)


def test_what_makes_a_loss_is_told() -> None:
    use = "def train(args, x):\n    net, size = build(args)\n    loss = net.penalty(x)\n    loss.backward()\n"
    net = NET.replace("def follow(self):", "def penalty(self, x):")
    check_told(AttributeOfWrapper, HEAD + net + BUILD + use, reason="let `forward` of the model make it")


@pytest.mark.parametrize(
    "use",
    [
        USE.replace("net, size =", "size, net ="),
        USE.replace("net, size =", "*net, size ="),
        USE.replace("    print", "    if not args.distributed:\n        print"),
        USE.replace("    print", "    net = net.module\n    print"),
        USE.replace("net.width", "net.training"),
    ],
)
def test_what_is_not_asked_of_the_wrapper(use: str) -> None:
    check_nothing(AttributeOfWrapper, HEAD + NET + BUILD + use)


@pytest.mark.parametrize(
    "build",
    [
        BUILD.replace("return net, 4", "return *net, 4"),
        BUILD.replace("    return net, 4", "    if args.resume:\n        return load(args)\n    return net, 4"),
        BUILD.replace("    return net, 4", "    if args.plain:\n        return Net(), 4\n    return net, 4"),
        BUILD.replace("    return net, 4", "    net = net.module\n    return net, 4"),
        BUILD.replace("net = net.cuda(args.gpu)", "net = Other()"),
    ],
)
def test_functions_that_may_give_a_bare_model(build: str) -> None:
    check_nothing(AttributeOfWrapper, HEAD + NET + build + USE)
