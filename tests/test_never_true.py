"""A test that no call of the function makes true: nobody sees what stands under it."""

from __future__ import annotations

import ast

import pytest

from codemods.analysis.files.never_true import is_never_asked_for
from ddpfix.testing import project_of

SOURCE = """\
import lightning.pytorch as pl

class Encoder(pl.LightningModule):
    def averaged(self, context=None):
        if context is not None:
            print(f"{context}: averaged weights")

    def validation_step(self, batch, i):
        self.averaged()
"""
OTHER = """\
import lightning.pytorch as pl

class Sampler(pl.LightningModule):
    def averaged(self, context=None):
        print(context)

    def test_step(self, batch, i):
        self.inner.model.averaged("plots")
"""


def never(source: str, files: dict[str, str]) -> bool:
    project = project_of(source, files)
    module = project.module("module.py")
    assert module is not None
    return is_never_asked_for(project, module, next(c for c in module.nodes(ast.Call) if ast.unparse(c.func) == "print"))


def test_every_call_leaves_the_default() -> None:
    assert never(SOURCE, {})


def test_a_call_gives_it() -> None:
    assert not never(SOURCE.replace("self.averaged()", 'self.averaged("epoch")'), {})


def test_a_file_with_a_method_of_that_name_calls_its_own() -> None:
    assert never(SOURCE, {"sampler.py": OTHER})


def test_a_file_without_one_may_call_this() -> None:
    without = OTHER.replace("def averaged(self, context=None)", "def shown(self, context=None)")
    assert not never(SOURCE, {"sampler.py": without})


def test_a_constant_that_is_off() -> None:
    assert never('DEBUG = False\n\ndef f():\n    if DEBUG:\n        print("x")\n', {})
    assert not never('DEBUG = True\n\ndef f():\n    if DEBUG:\n        print("x")\n', {})


TILED = """\
import lightning.pytorch as pl

class Decoder(pl.LightningModule):
    def validation_step(self, batch, i):
        if hasattr(self, "tiling"):
            print(self.tiling["size"])
"""


def test_what_nobody_sets_is_never_there() -> None:
    assert never(TILED, {})


@pytest.mark.parametrize(
    "files",
    [
        {"a.py": "model.tiling = {}\n"},
        {"a.py": "Decoder(tiling=3)\n"},
        {"a.py": "setattr(model, 'tiling', 3)\n"},
        {"a.py": "for model.tiling in sizes:\n    pass\n"},
        {"a.py": "with plan() as model.tiling:\n    pass\n"},
        {"a.py": "a, model.tiling, b = f()\n"},
        {"conf/model.yaml": "tiling: 4\n"},
        {"run.sh": "python train.py --tiling 3\n"},
    ],
)
def test_what_somebody_may_set_may_be_there(files: dict[str, str]) -> None:
    assert not never(TILED, files)


@pytest.mark.parametrize("name", ["trainer", "_tiling"])
def test_what_a_base_may_set_may_be_there(name: str) -> None:
    assert not never(TILED.replace("tiling", name), {})


def test_an_unknown_base_may_set_anything() -> None:
    other = TILED.replace("(pl.LightningModule)", "(Base)")
    assert not never(f"from other import Base\n{other}", {})


SCRIPT = """\
import torch

if __name__ == "__main__":
    compile = False
    {line}
    if compile:
        print("compiling")
"""


@pytest.mark.parametrize(
    ("line", "is_never"),
    [
        ("names = list(globals().items())", True),
        ("pass", True),
        ("compile = len(names) > 1", False),
        ("exec(open('overrides.py').read())", False),
        ("globals()['compile'] = True", False),
        ("globals().update(read())", False),
    ],
)
def test_a_name_of_a_script_that_is_off(line: str, is_never: bool) -> None:
    assert never(SCRIPT.format(line=line), {}) is is_never


def step(test: str, *, hook: str = "predict_step", bases: str = "pl.LightningModule", decorator: str = "") -> str:
    return (
        f"import lightning.pytorch as pl\n\nclass Tagger({bases}):\n{decorator}"
        f"    def {hook}(self, batch, batch_idx, verbose=False, whole=True):\n        {test}\n            print('here')\n"
    )


@pytest.mark.parametrize(
    "test",
    ["if verbose:", "if not whole:", "if verbose and len(batch) < 4:", "if whole:\n            return batch\n        else:"],
)
def test_an_argument_of_a_hook_that_no_framework_gives(test: str) -> None:
    assert never(step(test), {})


@pytest.mark.parametrize("call", ["model.tag(batch, 0)", "self.tag(batch, batch_idx=0)", "Tagger().tag(rows, 1)"])
def test_one_that_no_call_of_the_name_gives(call: str) -> None:
    assert never(step("if verbose:", hook="tag"), {"run.py": f"from module import Tagger\n{call}\n"})
    fields = "class Rows:\n    def __init__(self, tag):\n        self.tag = tag\n    def get(self):\n        return self.tag\n"
    assert never(step("if verbose:", hook="tag"), {"run.py": f"from module import Tagger\n{call}\n{fields}"})


@pytest.mark.parametrize(
    "call",
    [
        "model.tag(batch, 0, True)",
        "model.tag(batch, 0, verbose=args.verbose)",
        "model.tag(*given)",
        "model.tag(batch, **options)",
        "jobs.submit(model.tag, batch)",
        "import fire\nfire.Fire(Tagger)\nmodel.tag(batch, 0)",
        "import fire\nfire.Fire({'tag': Tagger})\nmodel.tag(batch, 0)",
        "import fire\nmodel = Tagger()\nfire.Fire(model)\nmodel.tag(batch, 0)",
        "import fire\nfire.Fire()\nmodel.tag(batch, 0)",
        "import fire\nfrom module import Tagger as Marker\nfire.Fire(Marker)\nmodel.tag(batch, 0)",
        "import fire\nimport module as steps\nfire.Fire(steps)\nmodel.tag(batch, 0)",
        "import fire\nclass Finer(Tagger):\n    pass\nfire.Fire(Finer)\nmodel.tag(batch, 0)",
    ],
)
def test_one_that_some_call_may_give(call: str) -> None:
    assert not never(step("if verbose:", hook="tag"), {"run.py": f"from module import Tagger\n{call}\n"})


@pytest.mark.parametrize("made", ["fire.Fire(plot)", "fire.Fire({'plot': plot})", "fire.Fire(dict(draw=plot))"])
def test_commands_of_another_program(made: str) -> None:
    plots = f"import fire\ndef plot():\n    pass\n{made}\n"
    run = "from module import Tagger\nmodel.tag(batch, 0)\n"
    assert never(step("if verbose:", hook="tag"), {"run.py": run, "plots.py": plots})


@pytest.mark.parametrize(
    "source",
    [
        step("if verbose:", bases="Base"),
        step("if verbose:", decorator="    @command\n"),
        step("if verbose:", hook="forward"),
        step("if whole:"),
        step("if verbose or not whole:"),
        step("verbose = bool(batch)\n        if verbose:"),
        step("if stage:", hook="setup").replace("verbose=False", "stage=None"),
    ],
)
def test_one_that_a_framework_or_the_method_may_set(source: str) -> None:
    assert not never(source, {})


STAR = """\
import glob
import os

def clear(folder, name):
    pattern = os.path.join(folder, "PART")
    if os.path.exists(pattern):
        print("clear")
"""


def test_no_file_is_called_as_a_pattern() -> None:
    assert never(STAR.replace("PART", "*.png"), {})
    assert not never(STAR.replace("PART", "last.png"), {})
    assert not never(STAR.replace("PART", "*.png").replace("os.path.exists(pattern)", "glob.glob(pattern)"), {})


LOCAL = """\
def run(args):
    {bound}
    if args.epoch and run_validation:
        print("x")
"""


@pytest.mark.parametrize(
    ("bound", "is_never"),
    [
        ("run_validation = False", True),
        ("run_validation = None", True),
        ("run_validation = True", False),
        ("run_validation = args.run", False),
        ("run_validation = False\n    if args.all:\n        run_validation = True", False),
        ("global run_validation\n    run_validation = False", False),
        ("run_validation = False\n    def on():\n        nonlocal run_validation\n        run_validation = True", False),
    ],
)
def test_a_name_of_a_function_that_is_off(bound: str, is_never: bool) -> None:
    assert never(LOCAL.format(bound=bound), {}) is is_never


HELD = """\
class Work:
    {field}

    def __init__(self, judge=None, path=None):
        self.judge = judge
        {given}

    def run(self):
        if {test}:
            print("x")
"""
MADE = "from module import Work\n\njudge = None\n\n\ndef main(args):\n    judge = {judge}\n    Work({given}).run()\n"


@pytest.mark.parametrize(
    ("field", "given", "files", "is_never"),
    [
        ("PLOTS = False", "pass", {}, True),
        ("pass", "self.PLOTS = False", {}, True),
        ("PLOTS: bool = False", "pass", {}, False),
        ("PLOTS = True", "pass", {}, False),
        ("PLOTS = False", "self.PLOTS = path", {}, False),
        ("PLOTS = False", "pass", {"a.py": "work.PLOTS = True\n"}, False),
        ("PLOTS = False", "pass", {"a.py": "Work.PLOTS, b = read()\n"}, False),
        ("PLOTS = False", "pass", {"a.py": "setattr(work, 'PLOTS', True)\n"}, False),
        ("PLOTS = False", "pass", {"a.yaml": "PLOTS: true\n"}, False),
    ],
)
def test_an_attribute_that_is_off(field: str, given: str, files: dict[str, str], is_never: bool) -> None:
    assert never(HELD.format(field=field, given=given, test="self.PLOTS"), files) is is_never


@pytest.mark.parametrize(
    ("judge", "given", "is_never"),
    [
        ("None", "judge=judge", True),
        ("None", "judge", True),
        ("None", "path='a'", True),
        ("Judge()", "judge=judge", False),
        ("None", "judge=args.judge", False),
        ("None", "**vars(args)", False),
        ("None", "*args.all", False),
    ],
)
@pytest.mark.parametrize("test", ["self.judge", "self.judge is not None"])
def test_an_attribute_that_the_only_program_leaves_none(judge: str, given: str, is_never: bool, test: str) -> None:
    files = {"train.py": MADE.format(judge=judge, given=given)}
    assert never(HELD.format(field="pass", given="pass", test=test), files) is is_never


def test_an_attribute_that_a_setting_or_an_heir_may_give() -> None:
    source, made = HELD.format(field="pass", given="pass", test="self.judge"), MADE.format(judge="None", given="")
    assert never(source, {"train.py": made})
    assert not never(source, {"train.py": made, "a.yaml": "_target_: module.Work\n"})
    more = "\n\nclass More(Work):\n    {}\n\n\nMore({}).run()\n"
    assert not never(source, {"train.py": made + more.format("pass", "print")})
    assert not never(source, {"train.py": made + more.format("def __init__(self):\n        super().__init__(print)", "")})
    assert not never(source, {"train.py": made + more.format("def __init__(self, how):\n        self.judge = how", "print")})


@pytest.mark.parametrize("test", ["self.judge", "self.judge is not None", "self.judge != None"])
@pytest.mark.parametrize(
    ("handed", "given", "is_never"),
    [
        ("judge=how", "", True), ("how", "how=None", True), ("path=how", "print", True), ("how", "print", False),
        ("*how", "", False),
    ],
)
def test_an_argument_that_a_derived_class_hands_on(test: str, handed: str, given: str, is_never: bool) -> None:
    source = HELD.format(field="pass", given="pass", test=test)
    heir = "from module import Work\n\n\nclass More(Work):\n    def __init__(self, how=None):\n"
    heir += f"        super().__init__({handed})\n"
    unused = "\n\nclass Unused(More):\n    def __init__(self, how=None):\n        More.__init__(self, how)\n"
    assert never(source, {"train.py": f"{heir}\n\nMore({given}).run()\n"}) is is_never
    assert never(source, {"train.py": f"{heir}{unused}\n\nMore({given}).run()\n"}) is is_never


@pytest.mark.parametrize(("asked", "is_never"), [("is None", True), ("== None", True), ("is not None", False)])
def test_the_other_branch(asked: str, is_never: bool) -> None:
    source = HELD.format(field="pass", given="pass", test=f"self.judge {asked}:\n            pass\n        else")
    assert never(source, {"train.py": MADE.format(judge="None", given="")}) is is_never
