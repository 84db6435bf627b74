from __future__ import annotations

import pytest

from codemods.checkpoints.attribute_of_wrapper import AttributeOfWrapper
from ddpfix.testing import check_nothing, check_told, check_transformed, findings_of

ACCELERATE = """from accelerate import Accelerator
from nets import Net


def main(args, loader, optimizer):
    accelerator = Accelerator()
    model = Net(args)
    {prepare}
    {use}
"""
PLAIN = """from torch.nn.parallel import DistributedDataParallel as DDP
from nets import Net


def main(args, loader, optimizer):
    model = Net(args)
    {prepare}
    {use}
"""
NETS = {
    "nets.py": """import torch


class Net(torch.nn.Module):
    def __init__(self, args):
        super().__init__()
        self.config = args
        self.width = 3
        self.body = torch.nn.Linear(2, 2)

    def forward(self, x):
        return self.body(x)

    def penalty(self):
        return self.body.weight.sum()

    def report(self):
        return self.width
"""
}


def prepared(*use: str, prepare: str = "model, optimizer = accelerator.prepare(model, optimizer)") -> str:
    return ACCELERATE.format(prepare=prepare, use="\n    ".join(use))


def wrapped(*use: str, prepare: str = "model = DDP(model)") -> str:
    return PLAIN.format(prepare=prepare, use="\n    ".join(use))


def test_example_of_the_page() -> None:
    sections = AttributeOfWrapper.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_transformed(AttributeOfWrapper, before, after)


@pytest.mark.parametrize("use", ["print({}.config)", "torch.save({}.body.state_dict(), 'a.pt')", "width = {}.width"])
def test_what_the_class_has_is_safe(use: str) -> None:
    after = prepared(use.format("accelerator.unwrap_model(model)"))
    check_transformed(AttributeOfWrapper, prepared(use.format("model")), after, files=NETS)
    check_transformed(AttributeOfWrapper, wrapped(use.format("model")), wrapped(use.format("model.module")), files=NETS)


def test_a_method_that_may_run_a_forward_is_unsafe() -> None:
    after = prepared("print(accelerator.unwrap_model(model).report())")
    check_transformed(AttributeOfWrapper, prepared("print(model.report())"), after, files=NETS, unsafe=True)
    quiet = prepared("with torch.no_grad():", "    print(model.report())")
    check_transformed(
        AttributeOfWrapper, quiet, quiet.replace("model.report", "accelerator.unwrap_model(model).report"), files=NETS
    )


def test_all_places_of_a_function_are_one_finding() -> None:
    source = prepared("a = model.width", "b = model.width")
    check_transformed(
        AttributeOfWrapper, source, source.replace("model.width", "accelerator.unwrap_model(model).width"), files=NETS
    )
    (found,) = findings_of(AttributeOfWrapper, source, files=NETS)
    assert "also in line 10" in found.message


def test_what_a_loss_is_made_of_is_told() -> None:
    source = wrapped("for x in loader:", "    loss = model(x).mean() + model.penalty()", "    loss.backward()")
    check_told(AttributeOfWrapper, source, files=NETS, reason="let `forward` of the model make it")


def test_a_class_that_is_not_seen() -> None:
    source = wrapped("print(model.some_report())").replace("from nets import Net", "from elsewhere import Net")
    check_told(AttributeOfWrapper, source, reason="the class of the model is not seen")
    known = source.replace("some_report()", "config")
    check_transformed(AttributeOfWrapper, known, known.replace("model.config", "model.module.config"), unsafe=True)


@pytest.mark.parametrize("compiled", ["torch.compile(model)", "own.compile_blocks(args, model)"])
def test_a_wrapper_that_is_compiled_as_well(compiled: str) -> None:
    prepare = f"model, optimizer = accelerator.prepare(model, optimizer)\n    if args.quick:\n        model = {compiled}"
    source = "import own\nimport torch\n" + prepared("print(model.width)", prepare=prepare)
    after = source.replace("model.width", "accelerator.unwrap_model(model).width")
    check_transformed(AttributeOfWrapper, source, after, files=NETS)
    check_nothing(AttributeOfWrapper, source.replace(compiled, "own.taken_out(model)"), files=NETS)


def test_a_question_by_name() -> None:
    source = prepared("if hasattr(model, 'report'):", "    accelerator.print('it reports')")
    after = source.replace("hasattr(model,", "hasattr(accelerator.unwrap_model(model),")
    check_transformed(AttributeOfWrapper, source, after, files=NETS)


def test_a_write_that_the_model_does_not_see() -> None:
    source = wrapped("model.width = 4")
    check_transformed(AttributeOfWrapper, source, source.replace("model.width", "model.module.width"), files=NETS)


def test_a_list_of_models() -> None:
    source = """
        from accelerate import Accelerator

        class Loop:
            def __init__(self, pipeline, names):
                self.accelerator = Accelerator()
                self.models = [getattr(pipeline, n) for n in names]
                self.models = self.accelerator.prepare(*self.models)
                self.names = names

            def save(self, folder):
                for name, model in zip(self.names, self.models):
                    model.save_pretrained(folder, name)
        """
    after = source.replace("model.save_pretrained", "self.accelerator.unwrap_model(model).save_pretrained")
    check_transformed(AttributeOfWrapper, source, after, unsafe=True)


FIELD = """
    from torch.nn.parallel import DistributedDataParallel as DDP
    from nets import Net

    class Loop:
        def __init__(self, args):
            self.model = Net(args)
            {0}
            self.model = DDP(self.model)
            {1}

        def early(self):
            return self.model.width

        def late(self):
            return 1
    """


def test_a_field_behind_the_wrap() -> None:
    source = FIELD.format("pass", "pass").replace("return 1", "return self.model.config")
    (one, other) = findings_of(AttributeOfWrapper, source, files=NETS)
    assert {one.symbol, other.symbol} == {"Loop.early", "Loop.late"}
    check_nothing(AttributeOfWrapper, FIELD.format("self.early()", "pass"), files=NETS)
    check_nothing(
        AttributeOfWrapper, FIELD.format("print(self.model.width)", "pass").replace("return self.model.width", "pass"), files=NETS
    )


def test_a_field_that_is_wrapped_where_training_begins() -> None:
    source = """
        from torch.nn.parallel import DistributedDataParallel as DDP
        from nets import Net

        class Loop:
            def __init__(self, args):
                self.model = Net(args)

            def train(self):
                self.model = DDP(self.model)
                self.step()

            def step(self):
                return self.model.width

            def summary(self):
                return self.model.width
        """
    (found,) = findings_of(AttributeOfWrapper, source, files=NETS)
    assert found.symbol == "Loop.step"


def test_a_function_that_is_handed_the_wrapper() -> None:
    source = wrapped("describe(model)", "describe(Net(args))") + "\n\ndef describe(model):\n    print(model.width)\n"
    check_told(AttributeOfWrapper, source, files=NETS, reason="hand over `model.module`")
    check_nothing(AttributeOfWrapper, source.replace("describe(model)\n    desc", "describe(model.module)\n    desc"), files=NETS)
    asked = source.replace(
        "    print(model.width)", "    if hasattr(model, 'module'):\n        model = model.module\n    print(model.width)"
    )
    check_nothing(AttributeOfWrapper, asked, files=NETS)


def test_a_function_that_knows_the_bare_classes_alone() -> None:
    chain = "\n\ndef widen(model):\n    if isinstance(model, Net):\n        pass\n    else:\n        raise NotImplementedError\n"
    check_told(AttributeOfWrapper, wrapped("widen(model)") + chain, files=NETS, reason="hand over `model.module`")
    check_nothing(AttributeOfWrapper, wrapped("widen(model)") + chain.replace("raise NotImplementedError", "pass"), files=NETS)


def test_a_parameter_that_all_callers_give_a_wrapper() -> None:
    source = wrapped("Loop(model)") + "\n\nclass Loop:\n    def __init__(self, model):\n        self.model = model\n\n"
    source += "    def run(self):\n        return self.model.width\n"
    (found,) = findings_of(AttributeOfWrapper, source, files=NETS)
    assert found.symbol == "Loop.run"
    check_nothing(AttributeOfWrapper, source.replace("Loop(model)", "Loop(model)\n    Loop(Net(args))"), files=NETS)


def test_what_another_file_gets_from_the_class_that_wraps() -> None:
    home = """from accelerate import Accelerator


class Trainer:
    def __init__(self, nets):
        self.accelerator = Accelerator()
        self.models = self.accelerator.prepare(*nets_of_models)

    def get_part(self, i):
        return self.models[i]
"""
    source = """
        from trainer import Trainer

        class Part:
            def __init__(self, trainer: Trainer):
                self.net = trainer.get_part(0)

            def step(self, x):
                return self.net.encode(x)
        """
    check_told(AttributeOfWrapper, source, files={"trainer.py": home, "trainer_test.py": ""}, reason="has to be handed on")


def test_a_model_that_is_moved_by_hand_is_wrapped_as_well() -> None:
    """Accelerate wraps what it does not place, and leaves alone what it is to evaluate."""
    source = prepared("print(model.width)", prepare="model = accelerator.prepare(model, device_placement=[False])")
    after = source.replace("model.width", "accelerator.unwrap_model(model).width")
    check_transformed(AttributeOfWrapper, source, after, files=NETS)
    alone = "model = accelerator.prepare_model(model, evaluation_mode=True)"
    check_nothing(AttributeOfWrapper, prepared("print(model.width)", prepare=alone), files=NETS)


def test_a_model_of_which_only_the_accelerator_shows_what_it_is() -> None:
    made = "layers = args.package.make()\n    layers, optimizer = accelerator.prepare(layers, optimizer)"
    inside = "layers.describe(args)", "with accelerator.accumulate(layers):", "    optimizer.step()"
    after = "accelerator.unwrap_model(layers).describe(args)", *inside[1:]
    own = {**NETS, "layers.py": "class Layers:\n    def describe(self, args): ...\n"}
    check_transformed(AttributeOfWrapper, prepared(*inside, prepare=made), prepared(*after, prepare=made), files=own, unsafe=True)
    check_nothing(AttributeOfWrapper, prepared(inside[0], prepare=made), files=own)


def test_module_behind_prepare() -> None:
    source = prepared("torch.save(model.module.state_dict(), 'a.pt')")
    check_transformed(AttributeOfWrapper, source, source.replace("model.module", "accelerator.unwrap_model(model)"), files=NETS)


MANY = "if args.world_size > 1:\n        model = DDP(model)"


def test_module_where_one_process_does_not_wrap() -> None:
    source = wrapped("torch.save(model.module.state_dict(), 'a.pt')", prepare=MANY)
    check_transformed(AttributeOfWrapper, source, source.replace("model.module", 'getattr(model, "module", model)'), files=NETS)
    check_nothing(AttributeOfWrapper, source.replace("world_size > 1", "averaged"), files=NETS)
    check_nothing(
        AttributeOfWrapper, source.replace("    torch.save", "    if args.world_size > 1:\n        torch.save"), files=NETS
    )


@pytest.mark.parametrize(
    "use",
    [
        "args.average.update({})",  # handed on
        "args.checkpoint(net={}, step=1)",
        "core = {}\n    print(core.width)",
        "import torch\n    with torch.no_grad():\n        print({}(loader))",  # no gradient that DDP would have to average
    ],
)
def test_module_alone_where_one_process_does_not_wrap(use: str) -> None:
    source = wrapped(use.format("model.module"), prepare=MANY)
    after = wrapped(use.format('getattr(model, "module", model)'), prepare=MANY)
    check_transformed(AttributeOfWrapper, source, after, files=NETS)


@pytest.mark.parametrize(
    "use",
    [
        "loss = model.module(loader)\n    loss.backward()",  # a forward of training is one of the wrapper: DDP504
        "args.average.update(model.module if args.world_size > 1 else model)",
        "args.average.update(getattr(model, 'module', model))",
        "if args.world_size > 1: args.average.update(model.module)",
    ],
)
def test_a_module_alone_that_is_asked_for_rightly(use: str) -> None:
    check_nothing(AttributeOfWrapper, wrapped(use, prepare=MANY), files=NETS)


def test_a_test_of_the_gpus_that_stands_for_one_of_the_wrapper() -> None:
    lines = "if torch.cuda.device_count() > 1:", "    model.module.load_state_dict(args.state)"
    source = wrapped(*lines, prepare=MANY)
    after = source.replace("torch.cuda.device_count() > 1", 'hasattr(model, "module")')
    check_transformed(AttributeOfWrapper, source, after, files=NETS, unsafe=True)
    check_nothing(
        AttributeOfWrapper, wrapped(*lines, prepare=MANY.replace("args.world_size", "torch.cuda.device_count()")), files=NETS
    )


@pytest.mark.parametrize(
    "use",
    [
        "print(model.device)",
        "torch.save(model.state_dict(), 'a.pt')",
        "print(model.module.width)",
        "print(accelerator.unwrap_model(model).width)",
        "print(model.width if accelerator.num_processes == 1 else model.module.width)",
        "print(getattr(model, 'module', model).width)",
        "print(model._private)",
        "print(optimizer.width)",
        "print(model.unheard_of)",
        "model(loader)",
    ],
)
def test_uses_that_are_fine(use: str) -> None:
    check_nothing(AttributeOfWrapper, prepared(use).replace("model.module.width)\n", "1)\n"), files=NETS)


@pytest.mark.parametrize(
    "lines",
    [
        ("if not isinstance(model, DDP):", "    print(model.width)"),
        ("if args.world_size == 1:", "    print(model.width)"),
        ("core = model.module if hasattr(model, 'module') else model", "print(core.width)"),
        ("if isinstance(model, DDP):", "    core = model.module", "else:", "    core = model", "print(core.width)"),
        ("if isinstance(model, DDP):", "    return", "print(model.width)"),
        ("try:", "    print(model.width)", "except AttributeError:", "    pass"),
        ("model = model.module", "print(model.width)"),
        ("model = strip(model)", "print(model.width)"),
        ("print(hasattr(model, 'module'))",),
    ],
)
def test_places_that_tell_the_wrapper_from_the_model(lines: tuple[str, ...]) -> None:
    check_nothing(AttributeOfWrapper, wrapped(*lines), files=NETS)


IN_A_FIELD = """from accelerate import Accelerator
from nets import Net


class Runner:
    def __init__(self, args, optimizer):
        self.accelerator = Accelerator()
        self.hands = {hands}
        self.model, self.optimizer = self.accelerator.prepare(Net(args), optimizer)

    def show(self):
        if self.hands > 1:
            print(self.model.module.width)
        else:
            print(self.model.width)
"""


def test_the_arm_of_one_process_by_a_number_that_a_field_keeps() -> None:
    check_nothing(AttributeOfWrapper, IN_A_FIELD.format(hands="self.accelerator.num_processes"), files=NETS)
    assert findings_of(AttributeOfWrapper, IN_A_FIELD.format(hands="args.hands"), NETS)


def test_a_wrap_on_some_ways_only() -> None:
    some = "if args.many:\n        model = DDP(model)"
    source = wrapped("print(model.width)", prepare=some)
    check_transformed(
        AttributeOfWrapper, source, source.replace("(model.width", '(getattr(model, "module", model).width'), files=NETS
    )
    own = {"nets.py": NETS["nets.py"].replace("self.body = ", "self.module = self.body = ")}
    check_told(AttributeOfWrapper, source, files=own, reason="a `module` of its own")
    inside = wrapped("pass", prepare="if args.many:\n        model = DDP(model)\n        print(model.width)")
    check_transformed(AttributeOfWrapper, inside, inside.replace("model.width", "model.module.width"), files=NETS)
    engine = "if args.engine:\n        model, _ = start_engine(model)\n    else:\n        model = DDP(model)"
    check_nothing(AttributeOfWrapper, wrapped("print(model.width)", prepare=engine), files=NETS)


def test_another_wrapper_that_passes_attributes_on() -> None:
    source = prepared("print(model.width)")
    check_nothing(AttributeOfWrapper, source.replace("Accelerator()", "Accelerator(fsdp_plugin=plugin)"), files=NETS)
    config = {"config/a.yaml": "distributed_type: DEEPSPEED\nnum_processes: 8\n"}
    check_nothing(AttributeOfWrapper, source, files=NETS | config)
    both = config | {"config/b.yaml": "distributed_type: MULTI_GPU\n"}
    assert findings_of(AttributeOfWrapper, source, files=NETS | both)
    needed = "accelerator = Accelerator()\n    accelerator.state.deepspeed_plugin.deepspeed_config['x'] = 1"
    check_nothing(AttributeOfWrapper, source.replace("accelerator = Accelerator()", needed), files=NETS | both)
    fabric = source.replace("accelerator.prepare", "fabric.setup")
    check_nothing(AttributeOfWrapper, fabric, files=NETS)


def test_a_model_with_nothing_to_train_is_not_wrapped() -> None:
    source = prepared("print(model.width)", prepare="model.requires_grad_(False)\n    model = accelerator.prepare(model)")
    check_nothing(AttributeOfWrapper, source, files=NETS)
    lora = source.replace("_(False)\n", "_(False)\n    model.add_adapter(args)\n")
    assert findings_of(AttributeOfWrapper, lora, files=NETS)


def test_an_attribute_that_is_set_on_the_wrapper() -> None:
    check_nothing(AttributeOfWrapper, wrapped("model.steps_done = 0", "print(model.steps_done)"), files=NETS)


def test_the_tests_of_a_repository() -> None:
    check_nothing(AttributeOfWrapper, prepared("print(model.width)"), files=NETS, path="tests/test_a.py")


def test_a_wrapper_of_the_project() -> None:
    own = wrapped("print(model.width)").replace("torch.nn.parallel", "wrappers")
    check_nothing(AttributeOfWrapper, own, files=NETS | {"wrappers.py": "class DistributedDataParallel:\n    pass\n"})


def test_a_function_that_gives_back_what_it_gets() -> None:
    widen = "\n\ndef widen(model, args):\n    print(args)\n    return model\n"
    source = wrapped("model = widen(model, args)", "print(model.width)") + widen
    check_transformed(AttributeOfWrapper, source, source.replace("model.width", "model.module.width"), files=NETS)
    check_nothing(AttributeOfWrapper, source.replace("return model", "return model.module"), files=NETS)


def test_a_second_try_of_the_same_attribute() -> None:
    tries = ("try:", "    n = model.width", "except AttributeError:", "    n = model.module.width")
    check_nothing(AttributeOfWrapper, wrapped(*tries, prepare="if args.many: model = DDP(model)"), files=NETS)


def test_a_second_try_in_a_function_that_is_handed_the_wrapper() -> None:
    asks = "\n\ndef width(model):\n    try:\n        return model.{}\n    except AttributeError:\n        return model.{}\n"
    handed = wrapped("print(width(model))")
    check_nothing(AttributeOfWrapper, handed + asks.format("module.width", "width"), files=NETS)
    check_nothing(AttributeOfWrapper, handed + asks.format("width", "module.width"), files=NETS)
    check_told(AttributeOfWrapper, handed + asks.format("module.depth", "width"), files=NETS, reason="hand over")


BECOMES = """import torch


class Net(torch.nn.Module):
    def __init__(self, args):
        super().__init__()
        chosen = Wide(args) if args.wide else Slim(args)
        {become}


class Slim(torch.nn.Module):
    def __init__(self, args):
        super().__init__()
        self.inner = torch.nn.Linear(2, 2)


class Wide(Slim):
    pass
"""


def test_a_class_whose_objects_become_those_of_another() -> None:
    source = wrapped("return model.inner")
    become = "self.__class__, self.__dict__ = type(chosen), chosen.__dict__"
    assert findings_of(AttributeOfWrapper, source, files={"nets.py": BECOMES.format(become=become)})
    blank = BECOMES.format(become="pass")
    chooses = blank.replace("def __init__(self, args)", "def __new__(cls, args)", 1)
    assert findings_of(AttributeOfWrapper, source, files={"nets.py": chooses})
    tested = wrapped("if hasattr(model, 'module'):", "    return model.module.inner", "return model.inner")
    check_nothing(AttributeOfWrapper, tested, files={"nets.py": BECOMES.format(become=become)})


@pytest.mark.parametrize("become", ["self.chosen = chosen", "kind = self.__class__", "chosen.__class__.width = 3"])
def test_a_class_that_stays_what_it_is_and_lacks_the_name(become: str) -> None:
    check_nothing(AttributeOfWrapper, wrapped("return model.inner"), files={"nets.py": BECOMES.format(become=become)})


def test_the_module_inside_under_the_test_that_decides_the_wrap() -> None:
    source = (
        "from torch.nn.parallel import DistributedDataParallel as DDP\nfrom nets import Net\n\n"
        "def main(args):\n    args.distributed = args.per_node > 1\n    model = Net(args)\n    if args.distributed:\n"
        "        model = DDP(model)\n    if TEST:\n        model.module.load_state_dict(args.state)\n"
    )
    check_nothing(AttributeOfWrapper, source.replace("TEST", "args.per_node > 1"), files=NETS)
    for other in ("args.per_node > 0", "args.resume"):
        assert findings_of(AttributeOfWrapper, source.replace("TEST", other), files=NETS)


def test_a_class_whose_decorator_may_put_the_model_back() -> None:
    source = (
        "from accelerate import Accelerator\nfrom nets import Net\nfrom tools import {name}\n\n@{name}()\nclass Loop:\n"
        "    def __init__(self, args):\n        self.accelerator = Accelerator()\n"
        "        self.model = self.accelerator.prepare(Net(args))\n\n    def step(self):\n        return self.model.width\n"
    )
    check_nothing(AttributeOfWrapper, source.format(name="open_models"), files=NETS)
    assert findings_of(AttributeOfWrapper, source.format(name="register_loop"), files=NETS)
    assert findings_of(AttributeOfWrapper, source.format(name="open_models").replace("@open_models()\n", ""), files=NETS)
    plain = {"tools.py": "def open_models():\n    return lambda kind: kind\n"}
    assert findings_of(AttributeOfWrapper, source.format(name="open_models"), files={**NETS, **plain})


# `.module` of a model that a setting leaves bare


def staged(use: str, *, wrap: str = "if pictures:", other: str = "if not pictures:", above: str = "") -> str:
    return (
        "import torch\nfrom torch.nn.parallel import DistributedDataParallel as DDP\nfrom nets import Net\n\n\n"
        f"def main(args, rank, pictures, optimizer):\n{above}    guide = Net(args)\n"
        f"    {other}\n        guide.body.requires_grad_(False)\n"
        f"    {wrap}\n        guide = DDP(guide)\n    for step in range(3):\n        optimizer.step()\n        {use}\n"
    )


KEPT = "torch.save({'guide': guide.module.state_dict()}, 'a.pt')"


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"wrap": "if args.pictures:", "other": "if not args.pictures:"},
        {"wrap": "if not pictures:", "other": "if pictures:"},
    ],
)
def test_module_of_a_model_that_a_setting_leaves_bare(parts: dict[str, str]) -> None:
    after = KEPT.replace("guide.module", 'getattr(guide, "module", guide)')
    check_transformed(AttributeOfWrapper, staged(KEPT, **parts), staged(after, **parts), files=NETS)


@pytest.mark.parametrize(
    ("use", "parts"),
    [
        (f"if pictures: {KEPT}", {}),  # asked again
        (f"if not pictures: continue\n        {KEPT}", {}),
        (f"if pictures and rank == 0: {KEPT}", {}),
        (KEPT, {"other": "if rank > 9:"}),  # nothing shows that it is ever run without
        (KEPT, {"above": "    assert pictures\n"}),
        (KEPT, {"above": "    pictures = args.stage == 1\n"}),  # worked out: what it may be is not seen
        (KEPT, {"wrap": "if rank >= 0:", "other": "if not rank:"}),  # by the rank: other codemods' business
        (f"if hasattr(guide, 'module'): {KEPT}", {}),
    ],
)
def test_settings_that_leave_no_bare_model_there(use: str, parts: dict[str, str]) -> None:
    check_nothing(AttributeOfWrapper, staged(use, **parts), files=NETS)


def test_what_is_put_on_the_wrapper_is_found_there() -> None:
    wrap, put = "model = DDP(model)", "model.classes = 4"
    for read in ("print(model.classes)", "validate(model)"):
        other = {**NETS, "evaluation.py": "def validate(model):\n    return model.classes\n"}
        source = PLAIN.format(prepare=wrap, use=f"{put}\n    {read}")
        check_nothing(AttributeOfWrapper, f"from evaluation import validate\n{source}", files=other)
    assert findings_of(AttributeOfWrapper, PLAIN.format(prepare=wrap, use="model.width = 4"), files=NETS)


HARNESS = """from torch.nn.parallel import DistributedDataParallel as DDP
from nets import Net
{imports}

class Harness({base}):
    def __init__(self, net):
        self.net = net

    def set_rows(self, rows):
        self.rows = rows
{more}

def main(args, loader):
    harness = Harness(Net(args))
    if args.distributed:
        harness.cuda()
        harness = DDP(harness)
    harness.set_rows(loader)
"""


@pytest.mark.parametrize("base", ["", "object"])
def test_a_plain_object_ends_where_it_is_wrapped(base: str) -> None:
    check_nothing(AttributeOfWrapper, HARNESS.format(base=base, imports="", more=""), files=NETS)


@pytest.mark.parametrize(
    ("base", "imports", "more"),
    [
        ("torch.nn.Module", "import torch\n", ""),
        ("Base", "from elsewhere import Base\n", ""),  # what it is is not seen
        ("", "", "\n    def parameters(self):\n        return self.net.parameters()\n"),
    ],
)
def test_an_object_that_may_be_wrapped(base: str, imports: str, more: str) -> None:
    assert findings_of(AttributeOfWrapper, HARNESS.format(base=base, imports=imports, more=more), NETS)


TWICE = """from torch.nn.parallel import DistributedDataParallel as DDP
from nets import Net
import torch


def main(args, loader, optimizer):
    model = DDP(Net(args))
    for x in loader:
        with torch.no_grad():
            print(model.config)
        SECOND
"""


def test_nothing_is_safe_where_another_line_of_the_function_ends_the_program() -> None:
    alone = findings_of(AttributeOfWrapper, TWICE.replace("SECOND", "pass"), NETS)
    assert [f.applicability.value for f in alone] == ["safe"]
    both = findings_of(AttributeOfWrapper, TWICE.replace("SECOND", "model.penalty().backward()"), NETS)
    assert sorted(f.applicability.value for f in both) == ["display", "unsafe"]
    assert "line 11 ends the program, too" in next(f.reason for f in both if f.edits)


def test_what_one_function_asks_is_one_finding() -> None:
    found = findings_of(AttributeOfWrapper, TWICE.replace("SECOND", "print(model.width, model.config)"), NETS)
    assert len(found) == 1 and "(also `width`, in line 11)" in found[0].message


def test_a_question_whose_other_arm_is_for_the_wrapper() -> None:
    source = prepared("if hasattr(model, 'report'):", "    print(model.report)", "else:", "    print(model.module.report)")
    assert not [f for f in findings_of(AttributeOfWrapper, source) if "hasattr" in f.message]


BOTH_ARMS = """from torch.nn.parallel import DistributedDataParallel as DDP
from nets import Net


def build(args, slots):
    return DDP(Net(args))


def bare(args):
    return Net(args)


def main(args):
    if args.slots:
        model = build(args, args.slots).cuda()
    else:
        model = {other}
    print({asked}.width)
"""


def test_both_arms_of_a_test_make_a_wrapper() -> None:
    source = BOTH_ARMS.replace("{other}", "build(args, 0).cuda()")
    repaired = source.format(asked='getattr(model, "module", model)')
    check_transformed(AttributeOfWrapper, source.format(asked="model"), repaired, files=NETS)


@pytest.mark.parametrize("other", ["bare(args).cuda()", "load(args)", "DDP(Net(args)).module"])
def test_one_arm_of_a_test_makes_none(other: str) -> None:
    check_nothing(AttributeOfWrapper, BOTH_ARMS.format(other=other, asked="model"), files=NETS)


def test_what_is_read_behind_a_question_by_name() -> None:
    use = "if hasattr({0}, 'width') and {0}.width > 2:\n        print({0}.width)"
    check_transformed(AttributeOfWrapper, wrapped(use.format("model")), wrapped(use.format("model.module")), files=NETS)


def test_the_configuration_that_the_command_of_the_script_names() -> None:
    source = prepared("print(model.width)")
    zero, plain = "distributed_type: DEEPSPEED\nnum_processes: 8\n", "distributed_type: MULTI_GPU\n"
    files = NETS | {"config/zero.yaml": zero, "config/ddp.yaml": plain}
    command = "accelerate launch --config_file config/{} \\\n    {}\n"
    texts = {"README.md": command.format("zero.yaml", "train.py")}
    check_nothing(AttributeOfWrapper, source, files=files | texts, path="train.py")
    for config, script in (("ddp.yaml", "train.py"), ("zero.yaml", "other.py"), ("gone.yaml", "train.py")):
        texts = {"README.md": command.format(config, script)}
        assert findings_of(AttributeOfWrapper, source, files=files | texts, path="train.py")
@pytest.mark.parametrize(
    ("asked", "ends"),
    [
        ("dist.get_rank()", True),
        ("dist.get_rank() if dist.is_initialized() else 0", False),
        ("int(os.environ.get('RANK', 0))", False),
    ],
)
def test_one_process_that_ends_in_a_function_above(asked: str, *, ends: bool) -> None:
    """A logger of the project asks the group for the rank, which a run without one does not get past."""
    logs = f"import os\nimport torch.distributed as dist\n\n\ndef logger(folder):\n    rank = {asked}\n    return folder, rank\n"
    source = "from logs import logger\n" + prepared("log = logger('out')", "print(model.module.width)")
    assert bool(findings_of(AttributeOfWrapper, source, NETS | {"logs.py": logs})) is not ends


def test_one_process_that_ends_above() -> None:
    """Accelerate starts no group for one process: a collective of torch itself raises before anything is asked of the model."""
    asks = "print(model.module.width)"
    met = "import torch.distributed as dist\n" + prepared("for batch in rows:", "    dist.barrier()", asks)
    check_nothing(AttributeOfWrapper, met, files=NETS)
    for above in ("if dist.is_initialized():\n        dist.barrier()", "accelerator.wait_for_everyone()"):
        source = "import torch.distributed as dist\n" + prepared(above, asks)
        assert findings_of(AttributeOfWrapper, source, NETS)
    assert findings_of(AttributeOfWrapper, "import torch.distributed as dist\n" + prepared(asks, "dist.barrier()"), NETS)


WAITS = """import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from nets import Net


def main(args, loader):
    model = Net(args)
    if args.distributed:
        model = DDP(model)
    for epoch in range(args.epochs):
        {left}
        {waits}
    {asks}
"""
TESTED = "if not args.evaluate:\n        print(model.module.width)"


@pytest.mark.parametrize(
    ("left", "waits", "asks", "ends"),
    [
        ("train(model, loader)", "dist.barrier()", "print(model.module.width)", True),
        ("if args.evaluate: break", "dist.barrier()", TESTED, True),
        ("if args.evaluate: break", "dist.barrier()", "print(model.module.width)", False),  # the evaluation comes past it
        ("if epoch < 3: continue", "dist.barrier()", TESTED, False),
        ("train(model, loader)", "if args.wait: dist.barrier()", "print(model.module.width)", False),
        ("train(model, loader)", "if dist.is_initialized(): dist.barrier()", "print(model.module.width)", False),
    ],
)
def test_a_run_without_a_group_that_ends_at_a_barrier(left: str, waits: str, asks: str, *, ends: bool) -> None:
    source = WAITS.format(left=left, waits=waits, asks=asks)
    assert bool(findings_of(AttributeOfWrapper, source, NETS)) is not ends


def test_a_training_forward_of_what_one_process_does_not_wrap() -> None:
    head = "loss = model.module.penalty()\n    accelerator.backward(loss)\n    optimizer.step()\n    "
    check_told(AttributeOfWrapper, prepared(f"{head}print(model.module.width)"), files=NETS, reason="past the wrapper")
    called = prepared("loss = model.module(loader)\n    accelerator.backward(loss)\n    optimizer.step()")
    check_nothing(AttributeOfWrapper, called, files=NETS)  # DDP504 writes a call of the wrapper
    check_nothing(AttributeOfWrapper, called.replace("model.module(", "model.module.forward("), files=NETS)


_ASKS = """
def groups(net, rate):
    if hasattr(net, "penalty"):
        return [{"params": net.parameters(), "lr": rate}]
    return list(net.parameters())


"""


def _handed(first: str, second: str = "model.module", use: str = "Net(args)") -> str:
    source = wrapped(f"groups({first}, 1)", f"groups({second}, 2)", prepare="if args.averaged:\n        model = DDP(model)")
    return source.replace("def main", f"{_ASKS.lstrip()}def main").replace("Net(args)", use)


def test_a_question_by_name_in_a_function_that_is_handed_the_wrapper() -> None:
    found = check_told(AttributeOfWrapper, _handed("model"), files=NETS, reason="hand over")
    assert "asks `hasattr(net, 'penalty')`" in found.message and "is False" in found.message
    unknown = _handed("model", use="args.kinds[0](args)")  # the other call says that the author means the model inside
    check_told(AttributeOfWrapper, unknown, files=NETS, reason="hand over")


FACTORY = "def maker_of(name):\n    return KINDS[name]\n\n\ndef build(args):\n    return KINDS[args.kind](args)\n\n\nKINDS = {}\n"


@pytest.mark.parametrize("made", ["build(args)", "maker_of(args.kind)(args)"])
def test_a_question_by_name_of_a_model_that_a_function_of_the_project_makes(made: str) -> None:
    source = _handed("model", "args.other", use=made).replace("def groups", f"{FACTORY}\n\ndef groups", 1)
    found = check_told(AttributeOfWrapper, source, files=NETS, reason="hand over")
    assert "asks `hasattr(net, 'penalty')`" in found.message
    check_nothing(AttributeOfWrapper, source.replace('"penalty"', '"no_method_of_any"'), files=NETS)


def test_a_question_by_name_in_a_function_that_is_handed_it_on() -> None:
    on = "def split(args, net):\n    return groups(net, **vars(args))\n\n\ndef main"
    both = "split(args, model)\n    split(args, args.other)"  # else what `split` holds is told there
    source = _handed("model").replace("def main", on, 1).replace("groups(model, 1)", both)
    found = check_told(AttributeOfWrapper, source, files=NETS, reason="hand over")
    assert found.message.startswith("`split` is handed the DDP wrapper and asks `hasattr(net, 'penalty')`")
    assert found.severity == "data"
    bare = source.replace("groups(net, **vars(args))", "groups(net.module, **vars(args))")
    check_nothing(AttributeOfWrapper, bare, files=NETS)
    tested = source.replace("return groups(net", "net = unwrapped(net)\n    return groups(net")
    check_nothing(AttributeOfWrapper, tested, files=NETS)


def test_questions_by_name_that_are_right() -> None:
    unknown = _handed("model", "args.other", use="args.kinds[0](args)")
    check_nothing(AttributeOfWrapper, unknown, files=NETS)
    check_nothing(AttributeOfWrapper, _handed("model").replace('"penalty"', '"module"'), files=NETS)
    taken_out = _handed("model").replace("    if hasattr", "    net = getattr(net, 'module', net)\n    if hasattr")
    check_nothing(AttributeOfWrapper, taken_out, files=NETS)
    answered = _handed("model").replace("return list(net.parameters())", "return list(net.module.parameters())")
    check_nothing(AttributeOfWrapper, answered.replace("    return list", "    else:\n        return list"), files=NETS)


def test_a_wrap_by_a_function_under_a_test() -> None:
    head = "def many(module):\n    return DDP(module)\n\n\ndef main"
    source = wrapped("print(model.width)", prepare="if is_distributed():\n        model = many(model)").replace("def main", head)
    after = source.replace("model.width", 'getattr(model, "module", model).width')
    check_transformed(AttributeOfWrapper, source, after, files=NETS)
    check_nothing(AttributeOfWrapper, source.replace("return DDP(module)", "return module.body"), files=NETS)
    asked = source.replace("is_distributed()", "hasattr(model, 'body')").replace("many(model)\n", "many(model.body)\n")
    check_nothing(AttributeOfWrapper, asked.replace("return DDP(module)", "return module"), files=NETS)


def test_options_of_ddp_beside_a_configuration_that_no_command_names() -> None:
    made = "Accelerator(kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)])"
    source = prepared("print(model.width)").replace("Accelerator()", made)
    files = NETS | {"config/zero.yaml": "distributed_type: DEEPSPEED\nnum_processes: 8\n"}
    plain = files | {"README.md": "accelerate launch train.py\n"}
    assert findings_of(AttributeOfWrapper, source, files=plain, path="train.py")
    check_nothing(AttributeOfWrapper, prepared("print(model.width)"), files=plain, path="train.py")  # nothing speaks for DDP
    check_nothing(AttributeOfWrapper, source, files=files, path="train.py")  # nobody says how it is started
    named = files | {"README.md": "accelerate launch --config_file config/zero.yaml train.py\n"}
    check_nothing(AttributeOfWrapper, source, files=named, path="train.py")
    asked = files | {"run.sh": "accelerate launch --use_deepspeed train.py\n"}
    check_nothing(AttributeOfWrapper, source, files=asked, path="train.py")


IN_HELPER = """from torch.nn.parallel import DistributedDataParallel as DDP
import torch.distributed as dist
from nets import Net


{helper}


def main(args):
    model = Net(args)
    if args.distributed:
        model = DDP(model)
    one_epoch(model)
"""


def in_helper(*lines: str, above: str = "") -> str:
    body = "\n    ".join(lines)
    return IN_HELPER.format(helper=f"{above}def one_epoch(model):\n    {body}")


def test_a_question_by_name_and_what_it_lets_be_reached_change_together() -> None:
    before = in_helper(
        'if hasattr(model.module, "config"):', "    try:", "        model.module.config.reset()", "    except:", "        pass",
        'if hasattr(model.module, "width"):', "    try:", "        width = model.module.width.size",
        "    except:", "        width = model.module.width", "    print(width)",
    )  # fmt: skip
    after = before.replace("model.module", 'getattr(model, "module", model)')
    check_transformed(AttributeOfWrapper, before, after, files=NETS)


def test_half_of_the_uses_is_no_repair_where_a_called_function_asks_too() -> None:
    """What `spread` is handed by `other` is not seen: it is not put right."""
    above = "def spread(net):\n    return net.module.width\n\n\ndef other(holder):\n    spread(holder)\n\n\n"
    check_nothing(AttributeOfWrapper, in_helper("spread(model)", "print(model.module.width)", above=above), files=NETS)


def test_a_group_that_is_needed_above_anyway() -> None:
    above = "def together(x):\n    dist.all_reduce(x)\n    return x\n\n\n"
    check_nothing(AttributeOfWrapper, in_helper("together(1)", "print(model.module.width)", above=above), files=NETS)


def test_two_ways_in_a_try_are_left() -> None:
    check_nothing(
        AttributeOfWrapper,
        in_helper("try:", "    width = model.module.width", "except AttributeError:", "    width = model.width", "print(width)"),
        files=NETS,
    )


def test_a_question_is_left_where_what_it_lets_be_reached_is_put_on_the_wrapper() -> None:
    use = ('if hasattr(model, "width"):', "    print(model.width)", "if args.wide:", "    model.width = 4")
    check_nothing(AttributeOfWrapper, wrapped(*use), files=NETS)


GROUPED = """import os
import torch
from accelerate import Accelerator
from nets import Net

{top}


def main():
    {above}
    accelerator = Accelerator()
    model = accelerator.prepare(Net(1))
    print(model.module.width)


if __name__ == "__main__":
    main()
"""
ENV = "torch.distributed.init_process_group(backend='nccl', init_method='env://')"


@pytest.mark.parametrize(
    ("top", "above", "ends"),
    [
        (ENV, "pass", True),
        ("torch.distributed.init_process_group('nccl')", "pass", True),
        ("", ENV, True),
        ("local = int(os.environ['LOCAL_RANK'])", "pass", True),
        # one process gets past these
        (f"if 'RANK' in os.environ: {ENV}", "pass", False),
        ("os.environ['RANK'] = '0'\n" + ENV, "pass", False),
        ("torch.distributed.init_process_group('gloo', init_method='file:///tmp/a', rank=0, world_size=n)", "pass", False),
        (f"def setup():\n    {ENV}", "pass", False),
        ("local = int(os.environ.get('LOCAL_RANK', 0))", "pass", False),
    ],
)
def test_a_program_that_one_plain_process_does_not_get_through(top: str, above: str, *, ends: bool) -> None:
    source = GROUPED.format(top=top, above=above)
    assert bool(findings_of(AttributeOfWrapper, source, NETS)) is not ends


def test_a_group_at_the_top_of_each_program_that_imports_the_file() -> None:
    step = "def step(model, accelerator):\n    model = accelerator.prepare(model)\n    print(model.module.width)\n"
    run = "import torch\nfrom nets import Net\nfrom step import step\nfrom accelerate import Accelerator\n{}\n"
    run += "if __name__ == '__main__':\n    step(Net(1), Accelerator())\n"
    files = NETS | {"run.py": run.format(ENV)}
    check_nothing(AttributeOfWrapper, step, files=files, path="step.py")
    assert findings_of(AttributeOfWrapper, step, files | {"other.py": run.format("")}, path="step.py")


OF_TWO_KINDS = """import torch
from torch import nn
from nets import Net


def score(model):
    return model.width


def main(args):
    torch.distributed.init_process_group("nccl")
    model = Net(args)
    if args.local_rank != -1:
        model = nn.parallel.DistributedDataParallel(model)
    elif args.n_gpu > 1:
        model = {other}
    score(model)
"""


def test_a_wrapper_beside_one_of_one_process() -> None:
    (found,) = findings_of(AttributeOfWrapper, OF_TWO_KINDS.format(other="nn.DataParallel(model)"), NETS)
    assert 'getattr(model, "module", model)' in repr(found.edits)
    check_nothing(AttributeOfWrapper, OF_TWO_KINDS.format(other="Shared(model)"), files=NETS)  # it may pass attributes on
    wrapped = OF_TWO_KINDS.replace("elif args.n_gpu > 1:", "else:").format(other="nn.DataParallel(model)")
    check_nothing(AttributeOfWrapper, wrapped, files=NETS)  # no run has the model bare: each would end there


REFUSED = """from torch.nn.parallel import DistributedDataParallel as DDP
from nets import Net


def main(args, loader):
    model = Net(args)
    model = DDP(model)
    if args.cache:
        rows = model.penalty()
        {below}
        keep(rows)
    else:
        fit(model, loader)
"""


@pytest.mark.parametrize(
    ("below", "number"),
    [
        ("if args.distributed:\n            raise NotImplementedError", 0),
        ("assert args.world_size == 1", 0),
        ("if args.small:\n            raise NotImplementedError", 1),
        ("train(model, rows)\n        assert args.world_size == 1", 1),  # hours pass first
        ("pass", 1),
    ],
)
def test_a_way_that_the_program_refuses_right_below(below: str, number: int) -> None:
    assert len(findings_of(AttributeOfWrapper, REFUSED.format(below=below), NETS)) == number


ROUNDS = """import torch.distributed as dist
from accelerate import Accelerator
from nets import Net


def main(args, loader, optimizer):
    accelerator = Accelerator()
    model = Net(args)
    model, optimizer = accelerator.prepare(model, optimizer)
    for epoch in range(args.epochs):
        for step, rows in enumerate(loader):
            print(model.module.width)
            {below}
"""


@pytest.mark.parametrize(
    ("below", "number"),
    [
        ("if step % args.every == 0:\n                save(rows)\n                dist.barrier()", 0),
        ("dist.barrier()", 0),
        ("if (step + 1) % 10 == 0:\n                with timed():\n                    dist.barrier()", 0),
        ("if step % args.every == 0 and dist.is_initialized():\n                dist.barrier()", 1),
        ("if step % args.every == 0:\n                accelerator.wait_for_everyone()", 1),
        ("if args.wait:\n                dist.barrier()", 1),
        ("if step % 10 == 0:\n                save(rows)\n            else:\n                dist.barrier()", 1),
        ("try:\n                dist.barrier()\n            except ValueError:\n                pass", 1),
    ],
)
def test_one_process_that_ends_in_a_later_round(below: str, number: int) -> None:
    assert len(findings_of(AttributeOfWrapper, ROUNDS.format(below=below), NETS)) == number
