from __future__ import annotations

import pytest

from codemods.checkpoints.unfreeze_after_wrap import UnfreezeAfterWrap
from ddpfix.testing import check_nothing, check_told, findings_of

HEAD = "from torch import nn\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n\n"
FREEZE = """
def freeze(module, frozen=True):
    for p in module.parameters():
        p.requires_grad = not frozen

"""
NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(2, 2)
        self.head = nn.Linear(2, 2)
        self.freeze()

    def freeze(self):
        for p in self.body.parameters():
            p.requires_grad = False

    def release(self):
        for p in self.body.parameters():
            p.requires_grad = True

"""


def script(*lines: str, before: str = "net.body.requires_grad_(False)", head: str = HEAD) -> str:
    body = "".join(f"    {line}\n" for line in (before, "model = DDP(net)", *lines))
    return f"{head}def train(net, epochs):\n{body}"


@pytest.mark.parametrize(
    "lines",
    [
        ("model.module.body.requires_grad_(True)",),
        ("model.module.body.requires_grad_()",),
        ("net.body.requires_grad_(True)",),
        ("for p in model.parameters(): p.requires_grad = True",),
        ("for name, p in model.module.body.named_parameters(): p.requires_grad_(True)",),
        ("model.module.body.weight.requires_grad = True",),
        ("for epoch in range(epochs):", "    if epoch == 3:", "        model.requires_grad_(True)"),
    ],
)
def test_what_is_released_behind_the_wrap(lines: tuple[str, ...]) -> None:
    found = check_told(UnfreezeAfterWrap, script(*lines), reason="a learning rate of 0")
    assert "never averaged" in found.message


def test_helpers_are_followed() -> None:
    head = HEAD + FREEZE
    source = script("freeze(model.module.body, False)", before="freeze(net.body)", head=head)
    check_told(UnfreezeAfterWrap, source, reason="learning rate")
    check_nothing(UnfreezeAfterWrap, script("freeze(model.module.body, epochs)", before="freeze(net.body)", head=head))
    check_nothing(UnfreezeAfterWrap, script("freeze(model.module.body)", before="freeze(net.body)", head=head))


def test_methods_of_the_model_are_followed() -> None:
    source = f"{HEAD}{NET}def train():\n    model = DDP(Net())\n    model.module.release()\n"
    check_told(UnfreezeAfterWrap, source, reason="learning rate")
    check_nothing(UnfreezeAfterWrap, source.replace("        self.freeze()\n", ""))
    frozen = "net = Net()\n    net.freeze()\n    model = DDP(net)"
    called = source.replace("        self.freeze()\n", "").replace("model = DDP(Net())", frozen)
    check_told(UnfreezeAfterWrap, called, reason="learning rate")
    check_nothing(UnfreezeAfterWrap, called + "    model = DDP(net)\n")
    check_nothing(UnfreezeAfterWrap, source.replace("requires_grad = True", "grad = None"))


@pytest.mark.parametrize(
    "source",
    [
        script("model.module.body.requires_grad_(True)", before="pass"),
        script("model.module.head.requires_grad_(True)"),
        script("model.module.body.requires_grad_(False)"),
        script("other.body.requires_grad_(True)"),
        script("model.module.body.requires_grad_(epochs > 2)"),
        script("pass", before="net.body.requires_grad_(False); net.body.requires_grad_(True)"),
        script("for p in epochs: p.requires_grad = True"),
        script("for p in model.parameters():", "    if p.ndim == 1: p.requires_grad = True"),
        script("x = epochs.requires_grad_(True)"),
        script("model.module.body.requires_grad_(True)").replace("DDP(net)", "nn.DataParallel(net)"),
    ],
)
def test_what_ddp_took_in_or_is_not_known(source: str) -> None:
    check_nothing(UnfreezeAfterWrap, source)


def test_a_critic_that_is_switched_off_and_on() -> None:
    lines = ("for epoch in range(epochs):", "    model.requires_grad_(False)", "    step()", "    model.requires_grad_(True)")
    check_nothing(UnfreezeAfterWrap, script(*lines, before="pass"))


def lightning(*lines: str, hook: str = "on_train_epoch_start(self)", made: str = "strategy='ddp', devices=2") -> str:
    body = "".join(f"        {line}\n" for line in lines)
    return (
        "import lightning.pytorch as pl\nfrom torch import nn\n\nclass Task(pl.LightningModule):\n    def __init__(self):\n"
        "        super().__init__()\n        self.body = nn.Linear(2, 2)\n        self.body.requires_grad_(False)\n\n"
        f"    def {hook}:\n{body}\ntrainer = pl.Trainer({made})\n"
    )


def test_a_hook_behind_the_wrap() -> None:
    release = "self.body.requires_grad_(True)"
    check_told(UnfreezeAfterWrap, lightning(release), reason="learning rate")
    check_told(UnfreezeAfterWrap, lightning("if self.current_epoch == 2:", f"    {release}"), reason="learning rate")
    check_told(UnfreezeAfterWrap, lightning(release, hook="on_fit_start(self)", made="devices=4"), reason="learning rate")
    check_nothing(UnfreezeAfterWrap, lightning(release, hook="setup(self, stage)"))
    check_nothing(UnfreezeAfterWrap, lightning(release, made="devices=1"))
    check_nothing(UnfreezeAfterWrap, lightning(release, made=""))
    check_nothing(UnfreezeAfterWrap, lightning("self.head.requires_grad_(True)"))


def test_callbacks_that_release() -> None:
    source = (
        "import lightning.pytorch as pl\nfrom lightning.pytorch.callbacks import BackboneFinetuning, BaseFinetuning\n\n"
        "trainer = pl.Trainer(strategy='ddp', callbacks=[BackboneFinetuning(5)])\n"
    )
    check_told(UnfreezeAfterWrap, source, reason="learning rate")
    check_nothing(UnfreezeAfterWrap, source.replace("strategy='ddp'", "devices=1"))
    own = (
        "\nclass Release(BaseFinetuning):\n    def finetune_function(self, module, epoch, optimizer):\n"
        "        self.unfreeze_and_add_param_group(module.body, optimizer)\n"
    )
    assert len(findings_of(UnfreezeAfterWrap, source + own)) == 2


def test_a_repositorys_own_tests() -> None:
    check_nothing(UnfreezeAfterWrap, script("model.module.body.requires_grad_(True)"), path="tests/test_a.py")


_WRAPS = "def many(module):\n    return DDP(module)\n\n\n"


def test_a_helper_that_wraps() -> None:
    source = script("model.module.body.requires_grad_(True)", head=HEAD + _WRAPS).replace("DDP(net)", "many(net)")
    check_told(UnfreezeAfterWrap, source, reason="learning rate")
    other = source.replace("    net.body", "    other = epochs.net\n    other.body")
    check_nothing(UnfreezeAfterWrap, other)  # another network is frozen
    check_nothing(UnfreezeAfterWrap, source.replace("requires_grad_(False)", "requires_grad_(True)"))


_BASE = """
class Base:
    def __init__(self, loader, nets, many):
        self.nets = nets
        self.many = many

"""
_HEIR = """
class Run(Base):
    def __init__(self, loader, kind, nets, many):
        super().__init__(loader, nets, many)

    def train(self):
        if self.many:
            for p in self.nets.module["body"].parameters():
                p.requires_grad = True
        else:
            for p in self.nets["body"].parameters():
                p.requires_grad = True


def main(nets, loader, many):
    for p in nets["{frozen}"].parameters():
        p.requires_grad = False
    if many:
        nets = DDP(nets)
    Run(loader, {given}, many=many).train()
"""


def test_a_field_that_the_base_takes() -> None:
    source = HEAD + _BASE + _HEIR.format(frozen="body", given="3, nets")
    found = findings_of(UnfreezeAfterWrap, source)
    assert ["self.nets.module" in source.splitlines()[f.span.line - 2] for f in found] == [True]


@pytest.mark.parametrize(("frozen", "given"), [("head", "3, nets"), ("body", "nets, many")])
def test_a_field_that_the_base_is_given_otherwise(frozen: str, given: str) -> None:
    check_nothing(UnfreezeAfterWrap, HEAD + _BASE + _HEIR.format(frozen=frozen, given=given))


HOLDER = """
class Runner:
    def __init__(self, net, stage, path):
        self.net = net
        {above}
        self.net = DDP(self.net)
        {below}

    def restore(self, path, stage="all"):
        for p in self.net.parameters():
            p.requires_grad = False
        self.release(stage)

    def release(self, stage):
        for p in self.net.head.parameters():
            p.requires_grad = True

{more}"""
OTHER = "class Picture:\n    @classmethod\n    def restore(cls, path):\n        return cls()\n\ndef open_picture(path):\n"


def holder(above: str = "self.restore(path, stage=stage)", below: str = "pass", more: str = "") -> str:
    return HEAD + HOLDER.format(above=above, below=below, more=more)


@pytest.mark.parametrize(
    "more",
    [
        "",
        f"{OTHER}    return Picture.restore(path)\n",  # another class with a method of that name
        "def load(args):\n    return args.restore != ''\n",  # and an option
    ],
)
def test_what_the_constructor_calls_above_its_wrap_is_in_front_of_it(more: str) -> None:
    check_nothing(UnfreezeAfterWrap, holder(more=more))


@pytest.mark.parametrize(
    "source",
    [
        holder(below="self.release(stage)"),
        holder(more="    def epoch(self, at):\n        if at == 3:\n            self.release(at)\n"),
        holder(more="    def hooks(self):\n        return [self.release]\n"),
        holder(more="\ndef run(runner):\n    runner.release('head')\n"),
    ],
)
def test_a_method_that_is_called_behind_the_wrap_too(source: str) -> None:
    check_told(UnfreezeAfterWrap, source, reason="learning rate")
