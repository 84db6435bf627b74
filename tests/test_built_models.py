"""Models that are put together elsewhere: registries, tables of classes, constructor arguments, Hydra's YAML, settings."""

from __future__ import annotations

import textwrap

import pytest

from codemods.analysis.class_index import find_class
from codemods.analysis.model.flow_values import Cause
from codemods.analysis.model.model_usage import Entry, Usage, Verdict, usage_of
from codemods.analysis.model.trained_model import trained_by
from codemods.analysis.model.unused_flag import wrappers
from codemods.store.project import Project

HEAD = "import random\n\nimport torch\nfrom torch import nn\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n"
PARTS = """
class Narrow(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(x)


class Drops(Narrow):
    def forward(self, x):
        return self.fc(x) if random.random() < 0.9 else x


class Dead(Narrow):
    def forward(self, x):
        return x
"""


def project_of(files: dict[str, str]) -> Project:
    return Project.of({path: textwrap.dedent(text).encode() for path, text in files.items()})


def usage(source: str, files: dict[str, str] | None = None, *, name: str = "Net", entry: Entry = Entry.FORWARD) -> Usage:
    project = project_of({"net.py": HEAD + PARTS + textwrap.dedent(source), **(files or {})})
    module = project.module("net.py")
    assert module is not None
    site = find_class(project, module, name)
    assert site is not None
    return usage_of(project, site, entry)


def net(made: str, arguments: str = "") -> str:
    """A model that holds one part, made by the expression."""
    return f"""
class Net(nn.Module):
    def __init__(self{arguments}):
        super().__init__()
        self.stem = nn.Linear(4, 4)
        self.part = {made}

    def forward(self, x):
        return self.part(self.stem(x))
"""


TABLE = 'TABLE = {"narrow": Narrow, "drops": Drops}\n'
REGISTRY = """
from mmengine import Registry

PARTS = Registry("parts")


@PARTS.register_module()
class First(Narrow):
    pass


@PARTS.register_module()
class Second(Drops):
    pass
"""
DECORATOR = """
TABLE = {}


def register(name):
    def keep(cls):
        TABLE[name] = cls
        return cls

    return keep


@register("narrow")
class First(Narrow):
    pass


@register("other")
class Second(Narrow):
    pass
"""


@pytest.mark.parametrize(
    "source",
    [
        'TABLE = {"narrow": Narrow, "plain": Narrow}\n' + net("TABLE[kind]()", ", kind"),
        net('{"narrow": Narrow, "linear": nn.Linear}[kind]()', ", kind").replace(', "linear": nn.Linear', ""),
        net("TABLE.get(kind)()", ", kind").replace("class Net", 'TABLE = {"narrow": Narrow}\n\n\nclass Net'),
        'TABLE = {"narrow": Narrow}\n' + net("TABLE[kind].from_config(cfg)", ", kind, cfg"),
        'TABLE = {"narrow": Narrow}\n\n\ndef build(kind):\n    cls = TABLE[kind]\n    return cls()\n'
        + net("build(kind)", ", kind"),
        net("Narrow.load_from_checkpoint('narrow.ckpt')"),
    ],
    ids=["a table", "a table on the spot", "get", "a class method", "a function that picks", "from a checkpoint"],
)
def test_a_part_from_a_table_of_classes(source: str) -> None:
    found = usage(source)
    assert (found.verdict, found.reasons) == (Verdict.ALL, ())
    assert any("part.fc" in name or "part" in name for e in found.evidence for name in [e.text])


def test_one_class_of_the_table_that_drops_its_layer() -> None:
    found = usage(TABLE + net("TABLE[kind]()", ", kind"))
    assert found.verdict is Verdict.SOMETIMES
    assert [d.cause for d in found.skipped] == [Cause.RANDOM]
    assert all("(1)" in name for d in found.skipped for name in d.names)  # the second of the table, and it alone


@pytest.mark.parametrize("registry", [REGISTRY, DECORATOR], ids=["a registry's own decorator", "a decorator that stores"])
def test_a_registry_is_open_to_other_packages(registry: str) -> None:
    made = "PARTS.build(cfg.part)" if "Registry" in registry else "TABLE[cfg.part]()"
    found = usage(registry.replace("(Drops)", "(Narrow)") + net(made, ", cfg"))
    assert found.verdict is Verdict.ALL
    assert any(text.startswith("no other package registers a class in ") for text in found.assumptions)
    assert usage(registry.replace("Second(Narrow)", "Second(Drops)") + net(made, ", cfg")).verdict is Verdict.SOMETIMES


def test_a_registry_builds_what_the_configurations_name() -> None:
    source = REGISTRY + net("PARTS.build(cfg.part)", ", cfg")
    named = usage(source, {"configs/base.py": 'model = dict(part=dict(type="First"))\n'})
    assert named.verdict is Verdict.ALL
    assert "PARTS builds First, as in the project's configurations" in named.assumptions
    assert usage(source, {"configs/base.py": 'model = dict(part=dict(type="Second"))\n'}).verdict is Verdict.SOMETIMES
    assert usage(source, {"tests/test_base.py": 'model = dict(part=dict(type="First"))\n'}).verdict is Verdict.SOMETIMES


@pytest.mark.parametrize(
    "source",
    [
        'TABLE = {"narrow": Narrow, "far": elsewhere.Far}\n' + net("TABLE[kind]()", ", kind"),
        "TABLE = load()\n" + net("TABLE[kind]()", ", kind"),
        net("self.table[kind]()", ", kind"),
        "from far import PARTS\n" + net("PARTS.build(cfg)", ", cfg"),
    ],
    ids=["a class of another package", "a table that is loaded", "a table of the object", "a registry of another package"],
)
def test_a_table_that_is_not_written_out_stays_unknown(source: str) -> None:
    assert usage(source).verdict is Verdict.UNKNOWN


def test_a_wrapped_model_from_a_table_is_each_of_its_classes() -> None:
    files = {
        "net.py": HEAD + PARTS + 'MODELS = {"narrow": Narrow, "dead": Dead}\n',
        "train.py": "from torch.nn.parallel import DistributedDataParallel as DDP\n\nfrom net import MODELS\n\n\n"
        "def main(args):\n    model = None\n    model = MODELS[args.model]()\n"
        "    model = DDP(model, find_unused_parameters=True)\n",
    }
    project = project_of(files)
    module = project.module("train.py")
    assert module is not None
    (wrapper,) = wrappers(project, module)
    found = trained_by(project, wrapper)
    assert ([u.name for u in found.usages], found.unknown) == (["Narrow", "Dead"], "")
    assert [u.verdict for u in found.usages] == [Verdict.ALL, Verdict.UNKNOWN]  # no parameter reaches what the second gives


# What is handed to the constructor


HANDED = net("part", ", part")


@pytest.mark.parametrize(
    ("calls", "verdict"),
    [
        ("Net(Narrow())\n", Verdict.ALL),
        ("def main():\n    part = Narrow()\n    return Net(part=part)\n", Verdict.ALL),
        ("def main(**more):\n    return Net(part=Narrow(), **more)\n", Verdict.ALL),
        ("Net(Narrow())\nNet(part=Drops())\n", Verdict.SOMETIMES),
        ("def main(**more):\n    return Net(**more)\n", Verdict.UNKNOWN),
        ("Net(load())\n", Verdict.UNKNOWN),
        ("def main():\n    part = Narrow()\n    part.requires_grad_(False)\n    return Net(part)\n", Verdict.UNKNOWN),
        ("class Lower(Net):\n    def __init__(self):\n        super().__init__(Narrow())\n", Verdict.UNKNOWN),
    ],
)
def test_a_part_that_callers_hand_over(calls: str, verdict: Verdict) -> None:
    assert usage(HANDED, {"train.py": f"from net import Drops, Narrow, Net\n\n\n{calls}"}).verdict is verdict


def test_a_class_below_hands_its_part_up() -> None:
    source = HANDED + "\n\nclass Lower(Net):\n    def __init__(self):\n        super().__init__(Narrow())\n"
    assert usage(source, name="Lower").verdict is Verdict.ALL


def test_a_test_of_the_repository_hands_over_nothing_that_counts() -> None:
    assert usage(HANDED, {"tests/test_net.py": "from net import Narrow, Net\n\nNet(Narrow())\n"}).verdict is Verdict.UNKNOWN


def test_an_annotation_is_an_assumption() -> None:
    found = usage(net("part", ", part: Narrow"))
    assert found.verdict is Verdict.ALL
    assert found.taken == ("part of Net is a Narrow itself, as its annotation says, and all of it is trained",)
    assert usage(net("part", ", part: nn.Module")).verdict is Verdict.UNKNOWN


def test_a_module_that_holds_its_own_kind_ends() -> None:
    source = net("inner", ", inner") + "\n\nNet(Net(None))\n"
    assert usage(source).verdict is Verdict.UNKNOWN


LIT = """
import lightning.pytorch as pl
from torchmetrics import Accuracy, MeanMetric


class Lit(pl.LightningModule):
    def __init__(self, net, optimizer):
        super().__init__()
        self.net = net
        self.accuracy = Accuracy(task="binary")
        self.mean = MeanMetric()

    def training_step(self, batch, batch_idx):
        x, y = batch
        out = self.net(x)
        loss = nn.CrossEntropyLoss()(out, y)
        self.mean(loss)
        self.accuracy(out, y)
        return loss
"""
HYDRA = """\
_target_: net.Lit
optimizer:
  _target_: torch.optim.AdamW
  _partial_: true
net:
  _target_: net.{name}
"""
CLI = "model:\n  class_path: net.Lit\n  init_args:\n    net:\n      class_path: net.{name}\n"


@pytest.mark.parametrize("text", [HYDRA, CLI], ids=["Hydra", "the Lightning CLI"])
def test_a_configuration_names_the_part(text: str) -> None:
    found = usage(LIT, {"configs/model.yaml": text.format(name="Narrow")}, name="Lit", entry=Entry.TRAINING_STEP)
    assert (found.verdict, found.reasons) == (Verdict.ALL, ())
    assert found.taken == ("what configs/model.yaml gives for net of Lit is what is trained",)
    files = {"configs/a.yaml": text.format(name="Narrow"), "configs/b.yaml": text.format(name="Drops")}
    assert usage(LIT, files, name="Lit", entry=Entry.TRAINING_STEP).verdict is Verdict.SOMETIMES
    far = {"configs/model.yaml": text.format(name="Narrow").replace("net.Narrow", "timm.create_model")}
    assert usage(LIT, far, name="Lit", entry=Entry.TRAINING_STEP).verdict is Verdict.UNKNOWN


def test_a_part_is_followed_under_another_name_and_an_object_that_is_no_module_is_named() -> None:
    other = LIT.replace("self.net = net", "self.inner = net").replace("self.net(x)", "self.inner(x)")
    files = {"configs/model.yaml": HYDRA.format(name="Narrow")}
    assert usage(other, files, name="Lit", entry=Entry.TRAINING_STEP).verdict is Verdict.ALL
    algo = "\n\nclass Algo:\n    def __init__(self):\n        self.nets = nn.ModuleDict()\n"
    found = usage(other + algo, {"configs/model.yaml": HYDRA.format(name="Algo")}, name="Lit", entry=Entry.TRAINING_STEP)
    assert found.verdict is Verdict.UNKNOWN
    assert "inner: net.Algo (configs/model.yaml:6) is no nn.Module itself" in found.reasons


# Settings


SETTING = """
class Net(nn.Module):
    def __init__(self, weight=0.3):
        super().__init__()
        self.weight = weight
        self.body = nn.Linear(4, 4)
        self.head = nn.Linear(4, 4)

    def forward(self, x):
        h = self.body(x)
        if self.weight > 0:
            h = h + self.weight * self.head(h)
        return h
"""


def test_a_setting_that_is_the_same_everywhere_is_an_assumption() -> None:
    found = usage(SETTING)
    assert found.verdict is Verdict.ALL
    assert found.assumptions == ("weight is 0.3, as in all of the project's code, configurations and job files (net.py:28)",)


@pytest.mark.parametrize(
    "files",
    [
        {"conf/base.yaml": "model_conf:\n  weight: 0.0\n"},
        {"train.py": "from net import Net\n\nNet(weight=0)\n"},
        {"train.py": "from net import Net\n\nNet(weight=float(text))\n"},
        {"train.py": 'parser.add_argument("--weight", type=float)\n'},
        {"train.py": "net.weight = 0\n"},
        {"run.sh": "python train.py --weight 0\n"},
        {"run.sh": "python train.py model.weight=0.0\n"},
    ],
    ids=["YAML", "a call", "an expression", "an option without a default", "from outside", "a job", "an override in a job"],
)
def test_a_setting_with_another_value_somewhere_is_open(files: dict[str, str]) -> None:
    found = usage(SETTING, files)
    assert found.verdict is Verdict.UNKNOWN
    assert any("a setting" in reason for reason in found.reasons)


def test_a_module_under_a_setting_that_is_never_on_is_not_there() -> None:
    source = SETTING.replace("        self.head =", "        if weight > 0:\n            self.head =").replace(
        "weight=0.3", "weight=0.0"
    )
    assert usage(source).verdict is Verdict.ALL
    always = usage(SETTING.replace("weight=0.3", "weight=0.0"))
    assert (always.verdict, always.never) == (Verdict.NEVER, ("head",))


CONFIGURED = """
class Net(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config.model
        self.body = nn.Linear(4, 4)
        self.head = nn.Linear(4, 4)

    def forward(self, x):
        h = self.body(x)
        if {test}:
            h = h + self.head(h)
        return h
"""
BASE = {"conf/base.yaml": "model:\n  aux: {use: true}\n"}


@pytest.mark.parametrize(
    "test",
    ["self.config.aux.use", 'self.config["aux"]["use"]', 'self.config.aux.get("use", True)', "self.config.aux.use is True"],
)
def test_a_setting_of_a_configuration_object(test: str) -> None:
    found = usage(CONFIGURED.format(test=test), BASE)
    assert found.verdict is Verdict.ALL
    assert found.assumptions == ("use is True, as in all of the project's code, configurations and job files (conf/base.yaml:2)",)
    as_json = usage(CONFIGURED.format(test=test), {"conf/base.json": '{"model": {"aux": {"use": true}}}\n'})
    assert as_json.verdict is Verdict.ALL


@pytest.mark.parametrize(
    ("test", "files"),
    [
        ("self.config.aux.use", {}),
        ("self.config.aux.use", BASE | {"conf/small.yaml": "model:\n  aux: {use: false}\n"}),
        ("self.config.aux.use", BASE | {"conf/small.json": '{"aux": {"use": false}}\n'}),
        ("self.config.aux.use", BASE | {"presets.py": "def small(c):\n    c.model.aux.use = False\n"}),
        ("self.config.aux.use", BASE | {"conf.py": "@dataclass\nclass Aux:\n    use: bool = False\n"}),
        ("self.config.aux.use", BASE | {"conf.py": "@dataclass\nclass Aux:\n    use: bool = field(default=False)\n"}),
        ("self.config.aux.use", BASE | {"make.py": "def make(use=False):\n    return Aux(use=use)\n"}),
        ("self.config.aux.use", BASE | {"run.sh": "python train.py model.aux.use=false\n"}),
        ('self.config.aux.get("use", False)', BASE),
        ('self.config.aux.get("use")', BASE),
        ("self.config.aux.use == kind", BASE),
        ("self.config[kind]", BASE),
    ],
)
def test_a_setting_of_a_configuration_object_that_may_be_another_is_open(test: str, files: dict[str, str]) -> None:
    assert usage(CONFIGURED.format(test=test), files).verdict is Verdict.UNKNOWN


def test_a_configuration_that_is_changed_or_made_here_is_open() -> None:
    again = "        self.config = other(config)\n        self.body"
    for change in (("config.model", "make(config)"), ("        self.body", again)):
        assert usage(CONFIGURED.format(test="self.config.aux.use").replace(*change, 1), BASE).verdict is Verdict.UNKNOWN


# On the way to the loss


def test_a_function_that_calls_itself_over_nested_data_ends() -> None:
    source = """
    def tree_map(fn, tree):
        if isinstance(tree, dict):
            return {k: tree_map(fn, v) for k, v in tree.items()}
        return fn(tree)


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(4, 4)

        def forward(self, batch):
            batch = tree_map(lambda t: t[..., -1], batch)
            return self.body(batch)
    """
    found = usage(source)
    assert found.verdict is Verdict.ALL


def test_losses_in_a_dict_of_functions_are_each_called() -> None:
    source = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(4, 4)
            self.b = nn.Linear(4, 4)

        def forward(self, x):
            losses = {"a": lambda: self.a(x).mean(), "b": lambda: self.b(x).mean()}
            total = 0
            for name, loss in losses.items():
                total = total + loss()
            return total
    """
    assert usage(source).verdict is Verdict.ALL


def test_an_output_kept_in_a_list_below_a_dict_is_not_lost() -> None:
    source = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(4, 4)

        def forward(self, x):
            out = {"maps": []}
            out["maps"].append(self.a(x))
            return {"loss": out["maps"][0].mean()}
    """
    assert usage(source).never == ()


@pytest.mark.parametrize("way", ['getattr(self, "a")(x)', "getattr(self, way)(x)", "{'a': self.a}[way](x)"])
def test_a_layer_that_is_taken_by_name_is_never_called_dead(way: str) -> None:
    source = f"""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(4, 4)

        def forward(self, x, way):
            return {way}
    """
    found = usage(source)
    assert found.never == ()
    assert found.verdict is (Verdict.ALL if '"a"' in way else Verdict.UNKNOWN)


@pytest.mark.parametrize(("read", "verdict"), [("self.net", Verdict.NEVER), ("net.net.spare", Verdict.UNKNOWN)])
def test_a_dead_part_is_looked_for_by_its_own_name(read: str, verdict: Verdict) -> None:
    source = """
    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.used = nn.Linear(4, 4)
            self.spare = nn.Linear(4, 4)

        def forward(self, x):
            return self.used(x)


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = Inner()

        def forward(self, x):
            return self.net(x)
    """
    other = f"def show(net, x):\n    return {read.replace('self', 'net')}(x)\n"
    assert usage(source, {"show.py": other}).verdict is verdict
