from __future__ import annotations

import pytest

from codemods.checkpoints.forward_bypasses_ddp import ForwardBypassesDdp
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

HEAD = "import torch\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n\n"


def loop(*lines: str, wrap: str = "model = DDP(net)", head: str = HEAD, last: str = "") -> str:
    body = "".join(f"        {line}\n" for line in (*lines, "loss.backward()", "optimizer.step()", *([last] if last else [])))
    return f"{head}def train(net, loader, optimizer, loss_fn, args):\n    {wrap}\n    for x, y in loader:\n{body}"


def test_example_of_the_page() -> None:
    sections = ForwardBypassesDdp.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(ForwardBypassesDdp, before, after, unsafe=True)


@pytest.mark.parametrize("call", ["model.module(x)", "net(x)", "model.module.forward(x)", "net.forward(x)"])
def test_a_plain_forward_becomes_one_of_the_wrapper(call: str) -> None:
    before, after = (loop(f"loss = loss_fn({c}, y)") for c in (call, "model(x)"))
    check_transformed(ForwardBypassesDdp, before, after, unsafe=True)


def test_each_call_of_a_loss() -> None:
    before = loop("loss = loss_fn(model.module(x), model.module(y))")
    check_transformed(ForwardBypassesDdp, before, before.replace(".module", ""), unsafe=True)


@pytest.mark.parametrize(
    "lines",
    [
        ("loss = model.module.compute_loss(x, y)",),
        ("out = model.module.encoder(x)", "loss = loss_fn(out, y)"),
        ("total = {}", "total['a'] = model.module.loss(x)", "loss = sum(total.values())"),
        ("losses = []", "losses.append(net.loss(x))", "loss = sum(losses)"),
        ("loss, logs = net.loss(x)",),
    ],
)
def test_a_method_is_told(lines: tuple[str, ...]) -> None:
    check_told(ForwardBypassesDdp, loop(*lines), reason="the wrapper runs `forward` alone")


def test_a_module_taken_out_under_another_name() -> None:
    source = loop("loss = loss_fn(core(x), y)", wrap="model = DDP(net)\n    core = model.module")
    check_transformed(ForwardBypassesDdp, source, source.replace("core(x)", "model(x)"), unsafe=True)
    kept = loop("loss = loss_fn(core(x), y)", wrap="core = net\n    net = DDP(net)")
    check_transformed(ForwardBypassesDdp, kept, kept.replace("core(x)", "net(x)"), unsafe=True)


def test_a_wrap_under_a_test() -> None:
    source = loop("loss = loss_fn(model.module(x), y)", wrap="model = net\n    if args.many:\n        model = DDP(model)")
    check_transformed(ForwardBypassesDdp, source, source.replace("model.module(x)", "model(x)"), unsafe=True)


def test_attributes_of_a_trainer() -> None:
    source = f"""{HEAD}
class Loop:
    def __init__(self, net, optimizer):
        self.net = net
        self.model = DDP(self.net)
        self.optimizer = optimizer

    def step(self, x):
        loss = self.net.loss(x)
        loss.backward()
        self.optimizer.step()
"""
    check_told(ForwardBypassesDdp, source, reason="the wrapper runs `forward` alone")
    check_told(ForwardBypassesDdp, source.replace("self.net.loss", "self.model.module.loss"), reason="the wrapper")
    called = source.replace("self.net.loss(x)", "self.net(x).mean()")
    check_transformed(ForwardBypassesDdp, called, called.replace("self.net(x)", "self.model(x)"), unsafe=True)


def test_a_function_that_the_wrapper_is_handed_to() -> None:
    source = f"""{HEAD}
def make_loss(model, x):
    return model.module.loss(x)

def train(net, loader, optimizer):
    model = DDP(net)
    for x in loader:
        loss = make_loss(model, x)
        loss.backward()
        optimizer.step()
"""
    check_told(ForwardBypassesDdp, source, reason="the wrapper runs `forward` alone")
    check_nothing(ForwardBypassesDdp, source.replace("model.module.loss(x)", "model.module.loss(model(x))"))


def test_what_is_inside_handed_to_the_training() -> None:
    step = "def train(model, loader, optimizer):\n    for x in loader:\n        loss = model(x).mean()\n        loss.backward()\n"
    main = "def main(net, loader, optimizer):\n    ddp = DDP(net)\n    train(GIVEN, loader, optimizer)\n"
    source = f"{HEAD}{step}        optimizer.step()\n\n{main}"
    check_told(ForwardBypassesDdp, source.replace("GIVEN", "ddp.module"), reason="another name")
    check_nothing(ForwardBypassesDdp, source.replace("GIVEN", "ddp"))


def test_accelerate() -> None:
    source = """
        from accelerate import Accelerator

        def train(net, optimizer, loader):
            accelerator = Accelerator()
            net, optimizer, loader = accelerator.prepare(net, optimizer, loader)
            for x in loader:
                loss = accelerator.unwrap_model(net)(x).mean()
                accelerator.backward(loss)
                optimizer.step()
        """
    check_transformed(ForwardBypassesDdp, source, source.replace("accelerator.unwrap_model(net)(x)", "net(x)"), unsafe=True)


@pytest.mark.parametrize(
    "lines",
    [
        ("loss = loss_fn(model(x), y)",),
        ("loss = loss_fn(model.forward(x), y)",),
        ("loss = loss_fn(model(x), y) + model.module.penalty()",),
        ("with torch.no_grad():", "    goal = model.module(x)", "loss = loss_fn(other(x), goal)"),
        ("goal = model.module(x).detach()", "loss = loss_fn(other(x), goal)"),
        ("n = model.module.size(x).item()", "loss = loss_fn(other(x), n)"),
        ("loss = unknown(model, model.module.head)",),
        ("loss = loss_fn(other(x), y)", "model.module.update(x)"),
        ("(g,) = torch.autograd.grad(loss_fn(model.module(x), y), x)", "loss = loss_fn(model(x + g), y)"),
        ("loss = other.module(x).mean()",),
    ],
)
def test_losses_that_are_fine(lines: tuple[str, ...]) -> None:
    check_nothing(ForwardBypassesDdp, loop(*lines))


def test_passes_that_are_none_of_a_training() -> None:
    check_nothing(ForwardBypassesDdp, loop("loss = model.module(x).mean()").replace("optimizer.step()", "pass"))
    check_nothing(ForwardBypassesDdp, loop("loss = model.module(x).mean()", last="x = x + x.grad.sign()"))
    check_nothing(ForwardBypassesDdp, loop("loss = model.module(x).mean()"), path="tests/test_a.py")
    leaving = "    if torch.distributed.get_rank() != 0:\n        return\n    for x"
    alone = loop("loss = model.module(x).mean()").replace("    for x", leaving)
    check_nothing(ForwardBypassesDdp, alone)


def test_gradients_that_are_averaged_by_hand() -> None:
    files = {"sync.py": "def average_gradients(model):\n    for p in model.parameters():\n        all_reduce(p.grad)\n"}
    check_nothing(ForwardBypassesDdp, loop("loss = model.module(x).mean()"), files=files)


@pytest.mark.parametrize("line", ["dist.all_reduce(grad_norm)", "norm = reduce_sync(gradnorm)", "all_reduce(p.grad.norm())"])
def test_a_norm_of_the_gradients_that_is_reduced_averages_none_of_them(line: str) -> None:
    files = {"log.py": f"def show(grad_norm, gradnorm, p):\n    {line}\n"}
    assert findings_of(ForwardBypassesDdp, loop("loss = model.module(x).mean()"), files)
    files = {"log.py": f"def show(grad_norm, gradnorm, p):\n    {line}\n    all_reduce(p.grad)\n"}
    check_nothing(ForwardBypassesDdp, loop("loss = model.module(x).mean()"), files=files)


def test_a_part_that_a_getter_hands_out() -> None:
    source = loop("loss = model.module.get_net().head(x).mean()")
    found = check_told(ForwardBypassesDdp, source, reason="let forward of the model")
    assert found.message.startswith("`model.module.get_net().head(...)` goes past"), found.message
    check_nothing(ForwardBypassesDdp, loop("loss = loss_fn(x, y) / model.module.get_net().head.width"))


def test_data_parallel_is_another_thing() -> None:
    head = "from torch.nn import DataParallel\nfrom torch.nn.parallel import DistributedDataParallel\n\n"
    check_nothing(ForwardBypassesDdp, loop("loss = model.module(x).mean()", wrap="model = DataParallel(net)", head=head))
    check_nothing(ForwardBypassesDdp, loop("loss = model.module(x).mean()", wrap="model = make(net)", head=head))


def test_names_that_are_bound_anew() -> None:
    check_nothing(ForwardBypassesDdp, loop("loss = net(x).mean()", wrap="model = DDP(net)\n    net = other(net)"))
    check_nothing(ForwardBypassesDdp, loop("loss = net(x).mean()", wrap="net = DDP(net)"))


def test_a_generator_and_its_critic() -> None:
    source = loop("fake = gen(x)", "loss = model.module(fake).mean()", wrap="model = DDP(net)\n    gen = DDP(args.gen)")
    assert not findings_of(ForwardBypassesDdp, source)


def test_the_arm_for_several_processes() -> None:
    arms = ("if hasattr(model, 'module'):", "    loss = model.module(x).mean()", "else:", "    loss = model(x).mean()")
    before = loop(*arms)
    check_transformed(ForwardBypassesDdp, before, before.replace("model.module(x)", "model(x)"), unsafe=True)
    either = loop("loss = model.module.loss(x) if args.many else model.loss(x)")
    check_told(ForwardBypassesDdp, either, reason="the wrapper runs `forward`")
    shared = ("out = model(x)", "if args.many:", "    loss = model.module.loss(out)", "else:", "    loss = 0")
    check_nothing(ForwardBypassesDdp, loop(*shared))


def test_a_scaler_that_goes_back_and_steps() -> None:
    source = loop("loss = model.module(x)", "scaler(loss.mean(), optimizer, args)").replace("        loss.backward()\n", "")
    source = source.replace("        optimizer.step()\n", "")
    check_transformed(ForwardBypassesDdp, source, source.replace("model.module(x)", "model(x)"), unsafe=True)


def test_a_loss_that_a_helper_goes_back_from() -> None:
    source = HEAD + (
        "def update(loss, optimizer):\n    loss.backward()\n    optimizer.step()\n\n"
        "def train(net, loader, optimizer):\n    model = DDP(net)\n    for x in loader:\n"
        "        update(model.module(x).mean(), optimizer)\n"
    )
    check_transformed(ForwardBypassesDdp, source, source.replace("model.module(x)", "model(x)"), unsafe=True)
    check_nothing(ForwardBypassesDdp, source.replace("model.module(x)", "model(x)"))


def test_the_arm_of_one_process_is_no_module_inside() -> None:
    """`else: self.model = net.cpu()` runs where nothing is wrapped: `self.model(x)` is the wrapper's call on several GPUs."""
    source = f"""{HEAD}
class Loop:
    def __init__(self, net, optimizer, many):
        if many:
            self.model = DDP(net.cuda())
        else:
            self.model = net.cpu()
        self.optimizer = optimizer

    def step(self, x):
        loss = self.model(x).mean() + self.model.module.penalty(x)
        loss.backward()
        self.optimizer.step()
"""
    check_nothing(ForwardBypassesDdp, source)
    name = f"""{HEAD}
def train(net, optimizer, loader, many):
    if many:
        model = DDP(net)
    else:
        model = net
    for x in loader:
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
"""
    check_nothing(ForwardBypassesDdp, name)


def test_a_schedule_has_no_parameters() -> None:
    files = {"noise.py": "class Schedule:\n    def scale_at(self, t):\n        return self.table[t]\n"}
    source = loop("loss = loss_fn(other(x) * model.module.schedule.scale_at(y), y)")
    check_nothing(ForwardBypassesDdp, source, files=files)
    module = {"noise.py": "import torch\n" + files["noise.py"].replace("Schedule:", "Schedule(torch.nn.Module):")}
    assert findings_of(ForwardBypassesDdp, source, files=module)
    assert findings_of(ForwardBypassesDdp, loop("loss = loss_fn(other(x) * model.module.scale_at(y), y)"), files=files)


PREPARED = """
from accelerate import Accelerator
from adapters import Layers


def train(host, optimizer, loader, everything):
    accelerator = Accelerator()
    if everything:
        trained = host.net
    else:
        trained = Layers(host.net.adapters)
    trained, optimizer, loader = accelerator.prepare(trained, optimizer, loader)
    for x in loader:
        with accelerator.accumulate(trained):
            loss = host.net(x).mean()
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(trained.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
"""


def test_layers_of_a_model_that_is_run_itself() -> None:
    check_told(ForwardBypassesDdp, PREPARED, reason="wrap what is run")
    wrapped = PREPARED.replace("accelerator.prepare(trained,", "DDP(trained) if 0 else (trained,")
    check_nothing(ForwardBypassesDdp, wrapped)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("host.net(x)", "trained(x)"),
        ("host.net(x).mean()", "host.net(x).mean() + penalty(trained)"),
        ("    for x in loader:", "    host.runner = trained\n    for x in loader:"),
        ("Layers(host.net.adapters)", "Layers(host.net.adapters, host.net)"),
        ("Layers(host.net.adapters)", "Layers(host.net.config)"),
        ("Layers(host.net.adapters)", "take_layers(host.net.adapters)"),
        ("    trained, optimizer, loader =", "    host.net = accelerator.prepare(host.net)\n    trained, optimizer, loader ="),
        ("host.net(x).mean()", "host.other(x).mean()"),
        ("            optimizer.step()\n", "            average_gradients(trained)\n            optimizer.step()\n"),
        ("from accelerate", "from elsewhere"),
    ],
)
def test_layers_that_are_run_or_averaged(old: str, new: str) -> None:
    assert old in PREPARED
    check_nothing(ForwardBypassesDdp, PREPARED.replace(old, new))


HOOKED = """
from lightning.fabric import Fabric


def build(make, net):
    network = make(net)
    network.to("cuda").apply_to()
    return network


def train(net, network, optimizer, loader):
    fabric = Fabric()
    network, optimizer = fabric.setup(network, optimizer)
    for x in loader:
        loss = net(x).mean()
        fabric.backward(loss)
        optimizer.step()
"""


def test_a_network_that_is_put_into_another_model() -> None:
    check_told(ForwardBypassesDdp, HOOKED, reason="wrap what is run")
    check_nothing(ForwardBypassesDdp, HOOKED.replace("net(x).mean()", "network(x).mean()"))
    check_nothing(ForwardBypassesDdp, HOOKED.replace(".apply_to()", ".train()"))
    check_nothing(ForwardBypassesDdp, HOOKED.replace("optimizer.step()", "all_reduce_grads(network)\n        optimizer.step()"))


PICTURES = """
def pictures(model, loader, tokens):
    model.{mode}()
    inner = model.module
    for x in loader:
        score = inner.match(x, tokens)[:, 1].sum()
        model.zero_grad()
        score.backward()
        {then}
"""


def test_gradients_that_are_only_looked_at() -> None:
    shown = loop("loss = loss_fn(model(x), y)") + PICTURES
    check_nothing(ForwardBypassesDdp, shown.format(mode="eval", then="show(inner.attention.gradients())"))
    other = {"train.py": loop("loss = loss_fn(model(x), y)")}
    caller = f"{HEAD}def main(net, loader):\n    model = DDP(net)\n    pictures(model, loader, 3)\n"
    source = caller + PICTURES + "\n\ndef other(opt):\n    opt.step()\n"
    check_nothing(ForwardBypassesDdp, source.format(mode="eval", then="pass"), files=other)
    check_told(ForwardBypassesDdp, source.format(mode="train", then="pass"), files=other, reason="`match`")
    check_told(ForwardBypassesDdp, source.format(mode="eval", then="model.optimizer.step()"), files=other, reason="`match`")
    check_told(ForwardBypassesDdp, source.format(mode="eval", then="update(self.optim)"), files=other, reason="`match`")


ENGINE = f"""{HEAD}import deepspeed


def groups(net):
    return [p for name, p in net.named_parameters() if "bias" not in name]


def train(net, loader, optimizer, loss_fn, args):
    model = DDP(net)
    if args.engine:
        model = deepspeed.initialize(model=net, model_parameters=groups(model.module))
    for x, y in loader:
        loss = loss_fn(model(x), y)
        if args.engine:
            model.backward(loss)
            model.step()
        else:
            loss.backward()
            optimizer.step()
"""


def test_an_engine_averages_by_itself() -> None:
    check_nothing(ForwardBypassesDdp, ENGINE)
    past = ENGINE.replace("loss_fn(model(x), y)", "net.loss(x)")
    check_told(ForwardBypassesDdp, past, reason="the wrapper runs `forward` alone")


FORWARDING = """class Forwarding(DDP):
    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.module, name)


"""


@pytest.mark.parametrize("call", ["model.loss(x)", "model.encoder(x).mean()"])
def test_a_method_that_the_own_class_of_the_wrapper_hands_on(call: str) -> None:
    source = loop(f"loss = {call}", wrap="model = Forwarding(net)", head=HEAD + FORWARDING)
    check_told(ForwardBypassesDdp, source, reason="the wrapper runs `forward` alone")


def test_an_own_class_of_another_file_given_to_a_trainer() -> None:
    files = {
        "wrapping.py": f"{HEAD}{FORWARDING}",
        "run.py": "from trainer import Trainer\nfrom wrapping import Forwarding\n\n\ndef main(net, loader, optimizer):\n"
        "    model = Forwarding(net)\n    Trainer(model, optimizer).train(loader)\n",
        "trainer.py": "class Trainer:\n    def __init__(self, model, optimizer):\n        self.model = model\n"
        "        self.optimizer = optimizer\n\n    def train(self, loader):\n        for x in loader:\n"
        "            loss = self.model.loss(x)\n            loss.backward()\n            self.optimizer.step()\n",
    }
    found = findings_of(ForwardBypassesDdp, files.pop("trainer.py"), files, path="trainer.py")
    assert len(found) == 1
    assert "`self.model.loss(...)` goes past the DDP wrapper" in found[0].message


@pytest.mark.parametrize(
    ("line", "own"),
    [
        ("loss = loss_fn(model(x), y)", FORWARDING),
        ("loss = loss_fn(model.forward(x), y)", FORWARDING),
        ("loss = model.step(x)", FORWARDING.rstrip() + "\n\n    def step(self, x):\n        return self(x).mean()\n\n\n"),
        ("loss = model.loss(x)", "class Forwarding(DDP):\n    pass\n\n\n"),  # AttributeError: DDP507's
        ("loss = loss_fn(model(x), y) + model.penalty()", FORWARDING),
    ],
)
def test_calls_that_run_the_wrapper_of_an_own_class(line: str, own: str) -> None:
    check_nothing(ForwardBypassesDdp, loop(line, wrap="model = Forwarding(net)", head=HEAD + own))


WRAPPED_IN_ONE_ARM = (
    f"{HEAD}class Trainer:\n    def __init__(self, net, optimizer, local_rank):\n        self.net = net\n"
    "        self.optimizer = optimizer\n        if local_rank != -1:\n            self.model = DDP(self.net)\n        else:\n"
    "            self.model = self.net\n\n    def step(self, batch):\n        loss = self.{ran}(batch)\n        loss.backward()\n"
    "        self.optimizer.step()\n"
)


def test_an_attribute_that_is_the_wrapper_in_one_arm() -> None:
    check_nothing(ForwardBypassesDdp, WRAPPED_IN_ONE_ARM.replace("{ran}", "model"))
    assert findings_of(ForwardBypassesDdp, WRAPPED_IN_ONE_ARM.replace("{ran}", "net"))


_PREPARED = "from accelerate import Accelerator\n\naccelerator = Accelerator()\n\n"


def _two_phases(test: str, other: str) -> str:
    def phase(condition: str) -> str:
        return (
            f"    for x, y in loader:\n        if {condition}:\n            out = net.module(x)\n"
            "        else:\n            out = net(x)\n"
            "        loss = loss_fn(out, y)\n        accelerator.backward(loss)\n        optimizer.step()\n"
        )

    return (
        f"{_PREPARED}def train(args, net, loader, optimizer, loss_fn):\n"
        "    net, optimizer, loader = accelerator.prepare(net, optimizer, loader)\n" + phase(test) + phase(other)
    )


def test_two_loops_that_ask_the_same_test() -> None:
    source = _two_phases("args.gpus > 1", "args.gpus > 1")
    check_transformed(ForwardBypassesDdp, source, source.replace("net.module(x)", "net(x)"), unsafe=True)


def test_a_second_forward_under_another_test() -> None:
    body = ("if args.many:", "    out = model.module(x)", "else:", "    out = model(x)")
    more = ("if args.twice:", "    out = out + model(y)")
    check_nothing(ForwardBypassesDdp, loop(*body, *more, "loss = out.sum()"))


def test_tests_that_read_alike_and_may_answer_otherwise() -> None:
    body = ("if next(coin):", "    out = model.module(x)", "else:", "    out = model(x)")
    again = ("if next(coin):", "    more = model.module(y)", "else:", "    more = model(y)")
    check_nothing(ForwardBypassesDdp, loop(*body, *again, "loss = (out + more).sum()"))


_CRITIC = (
    _PREPARED
    + """
def train(vae, critic, loader, make):
    first = make(vae.parameters())
    second = make({params})
    vae, critic, first, second, loader = accelerator.prepare(vae, critic, first, second, loader)
    for x in loader:
        out = {call}
        loss = out.sum() - critic(out).mean()
        accelerator.backward(loss)
        {step}.step()
"""
)


def test_beside_the_wrapper_of_another_model() -> None:
    source = _CRITIC.format(params="critic.parameters()", call="vae.module.decode(x)", step="first")
    check_told(ForwardBypassesDdp, source, reason="the wrapper runs `forward` alone")


@pytest.mark.parametrize(("params", "step"), [("critic.parameters()", "second"), ("critic.parameters()", "unknown")])
def test_the_step_of_the_other_model(params: str, step: str) -> None:
    check_nothing(ForwardBypassesDdp, _CRITIC.format(params=params, call="vae.module.decode(x)", step=step))


def test_beside_a_wrapper_that_is_handed_the_model() -> None:
    source = _CRITIC.format(params="critic.parameters()", call="vae.module.decode(x)", step="first")
    check_nothing(ForwardBypassesDdp, source.replace("critic(out)", "critic(out) + vae(x)"))


def test_what_a_later_loop_gives_the_name_is_not_behind_the_loss() -> None:
    source = (
        f"{HEAD}def train(net, loader, optimizer, head):\n    model = DDP(net)\n    for x in loader:\n"
        "        out = model(x)\n        loss = out.sum()\n        loss.backward()\n        optimizer.step()\n"
        "        out = model.module(x)\n        head(out.detach())\n"
    )
    check_nothing(ForwardBypassesDdp, source)


_HELPER = """
from torch.nn.parallel import DistributedDataParallel as DDP

from steps import run


class Fit:
    def __init__(self, net, args):
        self.net = DDP(net)
        self.args = args

    def epoch(self, loader, optimizer):
        for x, y in loader:
            optimizer.zero_grad()
            if {test}:
                loss = (self.net(x) - x).pow(2).mean()
            else:
                loss = run(self.net, x, y)
            loss.backward()
            optimizer.step()
"""
_STRIPS = """
from torch.nn.parallel import DistributedDataParallel as DDP


def run(net, x, y):
    if type(net) == DDP:
        net = net.module
    return (net.forward(x) - y).pow(2).mean()
"""


def test_a_helper_in_the_other_arm_that_takes_the_wrapper_away() -> None:
    source = _HELPER.format(test="self.args.pretrain")
    found = check_told(ForwardBypassesDdp, source, reason="leave that line out", files={"steps.py": _STRIPS})
    assert "`net = net.module` (steps.py:7) takes the DDP wrapper away" in found.message


@pytest.mark.parametrize("test", ["self.args.distributed", "dist.get_world_size() > 1", "hasattr(self.net, 'module')"])
def test_a_helper_for_the_run_without_a_wrapper(test: str) -> None:
    check_nothing(ForwardBypassesDdp, _HELPER.format(test=test), files={"steps.py": _STRIPS})


def test_a_helper_beside_the_wrapper_in_one_loss() -> None:
    source = _HELPER.format(test="self.args.pretrain").replace("loss = run(", "loss = self.net(x).mean() + run(")
    check_nothing(ForwardBypassesDdp, source, files={"steps.py": _STRIPS})


@pytest.mark.parametrize(
    "skip", ["if len(x) == 0:\n            continue", "mine = pick(x)\n        if not mine:\n            break"]
)
def test_where_a_rank_may_skip_the_round_the_wrapper_would_wait(skip: str) -> None:
    check_told(ForwardBypassesDdp, loop(skip, "loss = loss_fn(model.module(x), y)"), reason="skips a round by what this")


@pytest.mark.parametrize("skip", ["if args.dry:\n            break", "if x is None:\n            print('none')"])
def test_an_exit_by_a_setting_is_the_same_on_all_ranks(skip: str) -> None:
    before, after = (loop(skip, f"loss = loss_fn({call}, y)") for call in ("model.module(x)", "model(x)"))
    check_transformed(ForwardBypassesDdp, before, after, unsafe=True)


_DROPS = """
from torch.nn.parallel import DistributedDataParallel as DDP


class Fit:
    def __init__(self, painter, critic, optimizers, many):
        self.optimizers = optimizers
        self.painter, self.critic = self.shared([painter, critic]) if many else (painter, critic)

    def shared(self, nets):
        {body}

    def back(self):
        loss = sum(self.losses.values())
        loss.backward()
"""
_STEPS = "from fit import Fit\n\n\nclass Both(Fit):\n    def after(self):\n        self.optimizers[0].step()\n"


@pytest.mark.parametrize(
    "body",
    ["return [DDP(n).module for n in nets]", "nets = [DDP(n, [0]).module for n in nets]\n        return nets"],
)
def test_a_wrapper_of_which_only_the_module_inside_is_kept(body: str) -> None:
    found = check_told(ForwardBypassesDdp, _DROPS.format(body=body), reason="keep the wrapper", files={"steps.py": _STEPS})
    assert "drops the DDP wrapper" in found.message


def test_a_wrapper_dropped_at_once_is_told_where_its_module_is_called() -> None:
    source = loop("loss = loss_fn(model(x), y)", wrap="model = DDP(net).module")
    check_told(ForwardBypassesDdp, source, reason="call the wrapper")


@pytest.mark.parametrize(
    "body",
    [
        "return [DDP(n) for n in nets]",
        "return [DDP(n).module.state_dict() for n in nets]",  # it is asked for its weights
        "inner = [DDP(n).module for n in nets]\n        return [DDP(n) for n in inner]",  # wrapped again under a name of its own
        "return [DDP(n).device for n in nets]",
    ],
)
def test_a_wrapper_that_is_kept(body: str) -> None:
    check_nothing(ForwardBypassesDdp, _DROPS.format(body=body), files={"steps.py": _STEPS})


def test_a_wrapper_dropped_where_gradients_are_averaged_by_hand() -> None:
    by_hand = f"{_STEPS}\n    def share(self):\n        for p in self.critic.parameters():\n            all_reduce(p.grad)\n"
    check_nothing(ForwardBypassesDdp, _DROPS.format(body="return [DDP(n).module for n in nets]"), files={"steps.py": by_hand})


def test_a_wrapper_dropped_in_a_project_that_steps_nowhere() -> None:
    check_nothing(ForwardBypassesDdp, _DROPS.format(body="return [DDP(n).module for n in nets]"))


_FIELDS = f"""{HEAD}
class Loop:
    def __init__(self, net, optimizer):
        self.model = DDP(net)
        self.optimizer = optimizer

    @property
    def net(self):
        return self.model{{inner}}

    def step(self, x):
        loss = {{call}}
        loss.backward()
        self.optimizer.step()
"""


def test_a_property_that_gives_the_module_inside() -> None:
    found = check_told(ForwardBypassesDdp, _FIELDS.format(inner=".module", call="self.net(x).mean()"), reason="call the wrapper")
    assert found.message.startswith("`self.net(...)` goes past")
    check_told(ForwardBypassesDdp, _FIELDS.format(inner=".module", call="self.net.loss(x)"), reason="runs `forward` alone")


def test_a_property_that_gives_the_wrapper() -> None:
    check_nothing(ForwardBypassesDdp, _FIELDS.format(inner="", call="self.net(x).mean()"))


def test_a_name_for_a_method_of_the_module_inside() -> None:
    wrap = "model = DDP(net)\n    run = model.module.loss"
    check_told(ForwardBypassesDdp, loop("loss = run(x, y)", wrap=wrap), reason="runs `forward` alone")
    check_nothing(ForwardBypassesDdp, loop("loss = run(x, y)", wrap="model = DDP(net)\n    run = args.module.loss"))
    check_nothing(ForwardBypassesDdp, loop("loss = run(x, y)", wrap="model = DDP(net)\n    run = model.forward"))


@pytest.mark.parametrize(
    "rework",
    [
        "self.net, self.optimizer = amp.initialize(self.net, self.optimizer)",
        "self.net = fused(module=self.net)",
        "[self.optimizer, self.net] = prepared(self.optimizer, self.net)",
    ],
)
def test_a_call_that_gives_the_model_back_has_not_run_it(rework: str) -> None:
    found = check_told(ForwardBypassesDdp, _reworked(rework), reason="the wrapper runs `forward` alone")
    assert "self.net.module.step_of(...)" in found.message


@pytest.mark.parametrize("run", ["self.first = score(self.net, loader)", "self.first, _ = score(self.net, self.optimizer)"])
def test_a_call_that_gives_something_else_may_run_the_wrapper(run: str) -> None:
    source = _reworked(run).replace("self.optimizer.lr", "self.first")
    check_nothing(ForwardBypassesDdp, source)


def _reworked(line: str) -> str:
    return f"""{HEAD}
class Trainer:
    def __init__(self, net, optimizer, loader):
        self.net = net
        self.optimizer = optimizer
        {line}
        self.net = DDP(self.net)

    def fit(self, loader):
        for batch in loader:
            loss = self.net.module.step_of(batch, self.net.width, self.optimizer.lr)
            loss.backward()
            self.optimizer.step()
"""
