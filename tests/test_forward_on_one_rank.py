"""DDP301: the forward of a wrapper that rank 0 comes to through calls, methods, heirs and factories."""

from __future__ import annotations

import pytest

from codemods.sync.collective_under_rank_guard import CollectiveUnderRankGuard
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

RULE = CollectiveUnderRankGuard
HEAD = (
    "import torch\nimport torch.distributed as dist\nfrom torch import nn\n"
    "from torch.nn.parallel import DistributedDataParallel\n\n\n"
)
NET = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.norm = nn.BatchNorm1d(4)\n\n\n"
PLAIN = NET.replace("nn.BatchNorm1d(4)", "nn.LayerNorm(4)")


def told(source: str, files: dict[str, str] | None = None, path: str = "main.py") -> list[tuple[int, str]]:
    return [(f.span.line, f.message) for f in findings_of(RULE, source, files, path=path) if "runs the DDP wrapper" in f.message]


def line_of(source: str, text: str) -> int:
    return next(i for i, line in enumerate(source.splitlines(), 1) if text in line)


def script(*, net: str = NET, wrap: str = "DistributedDataParallel(Net())", judge: str, guard: str = "if dist.get_rank() == 0:",
           call: str = "judge(model, loader)") -> str:  # fmt: skip
    return (
        f"{HEAD}{net}{judge}\n\ndef make():\n    model = {wrap}\n    return train(model, [1])\n\n\n"
        f"def train(model, loader):\n    for x in loader:\n        model(x).sum().backward()\n    {guard}\n        {call}\n"
    )


JUDGE = "def judge(net, loader):\n    for x in loader:\n        print(net(x))\n"


def test_a_helper_that_runs_what_it_is_handed() -> None:
    source = script(judge=JUDGE)
    [(line, message)] = told(source)
    assert line == line_of(source, "        judge(model, loader)") and "and there net" in message


def test_an_exit_under_a_further_test() -> None:
    source = (
        f"{HEAD}{NET}def start(args):\n    judge(DistributedDataParallel(Net()), [1], args)\n\n\n"
        "def judge(model, loader, args):\n    if not args.together:\n        if dist.get_rank() != 0:\n            return\n"
        "    for x in loader:\n        out = model(x)\n"
    )
    assert [line for line, _ in told(source)] == [line_of(source, "out = model(x)")]


def test_models_in_a_row_of_pairs() -> None:
    source = (
        "from accelerate import Accelerator\nfrom torch import nn\n\n\n" + NET +
        "class Loop:\n    def __init__(self):\n        self.accelerator = Accelerator()\n        self.net = Net()\n"
        "        self.net = self.accelerator.prepare(self.net)\n\n"
        "    def step(self, x):\n        self.accelerator.backward(self.net(x).sum())\n"
        "        if self.accelerator.is_main_process:\n            for model, name in ((self.net, 'last'),):\n"
        "                out = model(x)\n"
    )  # fmt: skip
    assert [line for line, _ in told(source)] == [line_of(source, "out = model(x)")]


BASE = (
    f"{HEAD}class Loop:\n    def __init__(self, net, rank):\n        self.net = net\n        self.rank = rank\n\n"
    "    def run(self):\n        if self.rank == 0:\n            self.report()\n\n    def report(self):\n        pass\n"
)
HEIR = (
    "from main import Loop\n\n\nclass Painter(Loop):\n    def report(self):\n        return self.net(1)\n\n\n"
    "def pick(kind):\n    return Painter\n"
)
START = (
    "import torch.distributed as dist\nfrom torch import nn\nfrom torch.nn.parallel import DistributedDataParallel\n"
    "from heir import pick\n\n\n" + NET +
    "def start():\n    dist.init_process_group('nccl')\n    kind = pick('x')\n"
    "    kind({0}, dist.get_rank()).run()\n"
)  # fmt: skip


def test_a_class_that_a_factory_picks() -> None:
    files = {"heir.py": HEIR, "start.py": START.format("DistributedDataParallel(Net())")}
    assert [line for line, _ in told(BASE, files)] == [line_of(BASE, "            self.report()")]


def test_several_forwards_of_one_function_are_one() -> None:
    judge = JUDGE.replace("print(net(x))", "print(net(x))\n        print(net(x + 1))")
    assert len(told(script(judge=judge))) == 1


@pytest.mark.parametrize(
    "source",
    [
        script(judge=JUDGE, net=PLAIN),  # no buffers: the forward sends nothing
        script(judge=JUDGE, net=PLAIN, wrap="DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(Net()))"),
        script(judge=JUDGE, wrap="DistributedDataParallel(Net(), broadcast_buffers=False)"),
        script(judge=JUDGE, wrap="Net()"),
        script(judge=JUDGE, call="judge(model.module, loader)"),
        script(judge=JUDGE, call="inner = model.module\n        judge(inner, loader)"),
        script(judge=JUDGE, call="inner = model\n        if len(loader) > 1:\n            inner = model.module\n"
               "        judge(inner, loader)"),  # the module inside, wherever there is a wrapper
        script(judge=JUDGE.replace("    for", "    net = getattr(net, 'module', net)\n    for")),
        script(judge=JUDGE, guard="if dist.get_world_size() > 1:"),  # all ranks
        script(judge=JUDGE, call="judge(model, loader)\n    else:\n        judge(model, loader)"),  # and the others as well
        script(judge=JUDGE.replace("net(x)", "net.module(x)")),
        script(judge="def judge(net, loader):\n    return len(loader)\n"),
        script(judge=JUDGE.replace("print(net(x))", "if isinstance(net, Net):\n            print(net(x))")),
    ],
)  # fmt: skip
def test_what_waits_for_nobody(source: str) -> None:
    check_nothing(RULE, source)


def test_a_model_that_nobody_wraps() -> None:
    check_nothing(RULE, BASE, files={"heir.py": HEIR, "start.py": START.format("Net()")})


def test_an_unseen_model_where_no_file_gives_buffers() -> None:
    unseen = {"heir.py": HEIR, "start.py": START.replace(NET, "").format("DistributedDataParallel(build())")}
    check_nothing(RULE, BASE, files=unseen)
    assert told(BASE, {**unseen, "nets.py": NET})


def test_own_tests_stay() -> None:
    check_nothing(RULE, script(judge=JUDGE), path="tests/test_train.py")


FEATURES = """def score(args, net, loader):
    return statistics(args, net, loader)


def statistics(args, source, loader):
    net = source
    return activations(args, net, loader)


def activations(args, net, loader):
    return collected(net, loader)


def collected(made, loader):
    return [made(x) for x in loader]
"""


def test_a_score_whose_helpers_of_another_file_hand_the_model_on() -> None:
    main = script(judge="from features import score\n", call="score(None, model, loader)")
    [(line, message)] = told(main, {"features.py": FEATURES})
    assert line == line_of(main, "        score(None, model, loader)") and "and there made" in message


@pytest.mark.parametrize("handed", ["model.module", "make_plain()"])
def test_helpers_that_hand_on_the_module_inside(handed: str) -> None:
    main = script(judge="from features import score\n", call=f"score(None, {handed}, loader)")
    assert not told(main, {"features.py": FEATURES})


# Where the function can take the module out itself.

TRAIN = (
    "def train(model, loader, args):\n    for x in loader:\n        model(x).sum().backward()\n"
    "    judge(model, loader, args)\n\n\n"
    "def start(args):\n    dist.init_process_group('nccl')\n    train(DistributedDataParallel(Net()), [1], args)\n"
)
EXIT = "    if dist.get_rank() != 0:\n        return\n"
OUT = '    model = getattr(model, "module", model)\n'
ASK = "    for x in loader:\n        out = model(x)\n"


def judged(body: str, *, net: str = NET, head: str = "@torch.no_grad()\n", rest: str = TRAIN) -> str:
    return f"{HEAD}{net}{head}def judge(model, loader, args):\n{body}\n\n{rest}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"{EXIT}    model.eval()\n{ASK}", f"{EXIT}    model.eval()\n{OUT}{ASK}"),
        (f"    n = len(loader)\n{EXIT}{ASK}    model.train()\n", f"    n = len(loader)\n{EXIT}{OUT}{ASK}    model.train()\n"),
        ("    if dist.get_rank() == 0:\n        print(model(loader[0]))\n",
         f"    if dist.get_rank() == 0:\n    {OUT}        print(model(loader[0]))\n"),
        (f"{EXIT}    score = first(model, args)\n    if args.more:\n    {ASK.replace('        ', '            ')}",
         f"{EXIT}    score = first(model, args)\n{OUT}    if args.more:\n    {ASK.replace('        ', '            ')}"),
    ],
)  # fmt: skip
def test_a_function_that_goes_on_alone_takes_the_module_out(before: str, after: str) -> None:
    check_transformed(RULE, judged(before), judged(after), unsafe=True)


@pytest.mark.parametrize(
    "body",
    [
        f"{EXIT}{ASK}    show(model, loader)\n",  # may take the module out itself
        f"{EXIT}{ASK}    torch.save(model.module.state_dict(), 'a.pt')\n",
        f"{EXIT}{ASK}    torch.save(model.state_dict(), 'a.pt')\n",  # its keys begin with `module.`
        "    for x in loader:\n        y = model.width\n        if dist.get_rank() == 0:\n            out = model(x)\n",
        "    if dist.get_rank() == 0:\n        out = model(loader[0])\n    loss = model(loader[1])\n",  # all ranks come there
        f"{EXIT}    run = lambda x: model(x)\n{ASK}",
        f"{EXIT}    model.train()\n    for x in loader:\n        model(x).sum().backward()\n",
        f"{EXIT}{ASK}    other = model\n",
    ],
)  # fmt: skip
def test_what_needs_the_wrapper_further_down_is_told(body: str) -> None:
    found = check_told(RULE, judged(body), reason="run the module inside")
    assert "runs the DDP wrapper" in found.message


def test_a_forward_with_gradients_and_a_net_without_buffers() -> None:
    check_told(RULE, judged(EXIT + ASK, head=""), reason="run the module inside")
    check_nothing(RULE, judged(EXIT + ASK, net=PLAIN))
    check_nothing(RULE, judged(EXIT + OUT + ASK))


OLDER = (
    "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.fast = hasattr(nn.functional, 'scaled_dot_product_attention')\n"
    "        if not self.fast:\n            self.register_buffer('mask', torch.ones(4, 4))\n\n\n"
)
SHARED = (
    "def judge(loader):\n    with torch.no_grad():\n        return [net(x) for x in loader]\n\n\n"
    "def train(loader):\n    for x in loader:\n        net(x).sum().backward()\n        {guard}\n            judge(loader)\n\n\n"
)
OF_THE_FILE = "net = {wrap}\ntrain([1])\n"
BY_GLOBAL = "def main():\n    global net\n    net = Net()\n    net = {wrap}\n    train([1])\n\n\nmain()\n"


def shared(
    *, end: str, wrap: str = "DistributedDataParallel(net)", guard: str = "if dist.get_rank() == 0:", net: str = NET
) -> str:
    return HEAD + net + SHARED.format(guard=guard) + end.format(wrap=wrap)


@pytest.mark.parametrize("end", [BY_GLOBAL, OF_THE_FILE.replace("net = {wrap}", "net = DistributedDataParallel(Net())")])
def test_a_model_of_the_file_in_a_helper_without_arguments(end: str) -> None:
    source = shared(end=end)
    found = told(source)
    assert [line for line, _ in found] == [line_of(source, "return [net(x)")]
    assert "on rank 0 alone" in found[0][1]


@pytest.mark.parametrize(
    "source",
    [
        shared(end=BY_GLOBAL, guard="if loader:"),
        shared(end=BY_GLOBAL, net=PLAIN),
        shared(end=BY_GLOBAL, net=OLDER),
        shared(end=BY_GLOBAL.replace("= Net()", "= KINDS[kind]()"), net=OLDER),
        shared(end=BY_GLOBAL, wrap="net.cuda()"),
        shared(end=BY_GLOBAL).replace("    train([1])", "    net = net.module\n    train([1])"),
        shared(end=BY_GLOBAL).replace("    with torch", "    net = load()\n    with torch"),
        shared(end=BY_GLOBAL).replace("[net(x) for", "[net.module(x) for"),
    ],
    ids=["every rank", "no buffers", "buffers for an older torch", "of a class that is looked up", "no wrapper",
         "taken out again", "a model of its own", "the module inside"],
)  # fmt: skip
def test_a_model_of_the_file_that_waits_for_nobody(source: str) -> None:
    assert not told(source)


@pytest.mark.parametrize("change", [("if not self.fast", "if self.fast"), ("attention')", "attention') and self.rate == 0")])
def test_buffers_that_a_torch_of_today_has(change: tuple[str, str]) -> None:
    assert told(shared(end=BY_GLOBAL, net=OLDER.replace(*change)))
