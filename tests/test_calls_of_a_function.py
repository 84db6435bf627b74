"""Which calls may be one of a plain function: `net.train()` is a method of an object, and no call of a function `train`."""

from __future__ import annotations

import ast

import pytest

from codemods.analysis.ranks.uses import calls_of, uses_of
from codemods.store.project import Project

DEFINED = """
def train(epochs):
    print(epochs)
"""


@pytest.mark.parametrize(
    ("program", "calls"),
    [
        pytest.param("import steps\n\nsteps.train(3)\n", 1, id="of the module"),
        pytest.param("import lib.steps\n\nlib.steps.train(3)\n", 1, id="of the module in a package"),
        pytest.param("from steps import train\n\ntrain(3)\n", 1, id="by its name"),
        pytest.param("import steps\nfrom nets import Net\n\nnet = Net()\nnet.train(3)\n", 0, id="of an object"),
        pytest.param("import steps\n\n\ndef run(net):\n    net.inner.train(3)\n", 0, id="of a part of an object"),
        pytest.param("import steps\n\n\nclass Task:\n    def go(self):\n        self.net.train(3)\n", 0, id="of an attribute"),
    ],
)
def test_an_object_holds_no_plain_function(program: str, calls: int) -> None:
    home = "lib/steps.py" if "lib." in program else "steps.py"
    project = Project.of({home: DEFINED.encode(), "main.py": program.encode()})
    module = project.module(home)
    assert module is not None
    function = next(iter(module.nodes(ast.FunctionDef)))
    found = calls_of(project, module, function)
    assert found is not None
    assert len(found) == calls


@pytest.mark.parametrize(
    ("program", "used"),
    [
        pytest.param("def load(args, train=False):\n    return 'a' if train else 'b'\n", False, id="a parameter"),
        pytest.param("class Task:\n    def go(self, *, train):\n        show(train)\n", False, id="a parameter of a method"),
        pytest.param("def load(rows):\n    train = rows[1:]\n    return train\n", False, id="a local name"),
        pytest.param("def load(rows):\n    for train in rows:\n        show(train)\n", False, id="of a loop"),
        pytest.param("def load(rows):\n    def inner():\n        show(train)\n    train = rows\n", False, id="of one round"),
        pytest.param("show([train for train in range(3)])\n", False, id="of a comprehension"),
        pytest.param("show(lambda train: train)\n", False, id="of a lambda"),
        pytest.param("def run(train=train):\n    pass\n", True, id="the default of a parameter"),
        pytest.param("show([train for train in names(train)])\n", True, id="what a comprehension goes through"),
        pytest.param("def run():\n    show(train)\n", True, id="the function itself"),
        pytest.param("def run():\n    global train\n    train = wrap(train)\n", True, id="a global name"),
        pytest.param("def run(rows):\n    def go(train):\n        pass\n    show(train)\n", True, id="beside a parameter"),
    ],
)
@pytest.mark.parametrize("far", [False, True])
def test_a_local_name_is_no_use_of_a_function(program: str, used: bool, far: bool) -> None:
    apart = {"steps.py": DEFINED, "main.py": f"from steps import train\n\n\n{program}"}
    files = apart if far else {"steps.py": DEFINED + program}
    project = Project.of({path: text.encode() for path, text in files.items()})
    module = project.module("steps.py")
    assert module is not None
    function = next(f for f in module.nodes(ast.FunctionDef) if f.name == "train")
    found = uses_of(project, module, function)
    assert bool(found.calls or found.handed_on) is used


def test_an_import_within_a_function_brings_it() -> None:
    program = b"def run():\n    from steps import train\n    train(3)\n"
    project = Project.of({"steps.py": DEFINED.encode(), "main.py": program})
    module = project.module("steps.py")
    assert module is not None
    assert len(uses_of(project, module, next(iter(module.nodes(ast.FunctionDef)))).calls) == 1


LOOP = "class Loop{base}:\n    def train(self):\n        print('a')\n\n    def close(self):\n        print('b')\n"


@pytest.mark.parametrize(
    ("program", "calls"),
    [
        pytest.param("def run(task):\n    task.model.train()\n", 0, id="of a model"),
        pytest.param("def run(net):\n    net.train()\n", 0, id="of what is called a net"),
        pytest.param("def run(loop):\n    loop.train()\n", 1, id="of what may be a loop"),
        pytest.param("def run(model):\n    model.close()\n", 1, id="a name that no module has"),
        pytest.param("from steps import Loop\n\nmodel = Loop()\nmodel.train()\n", 1, id="of a loop that is called a model"),
        pytest.param(
            "from steps import Loop\n\n\nclass Task:\n    def __init__(self):\n        self.net = Loop()\n\n"
            "    def go(self):\n        self.net.train()\n", 1, id="of a loop in a field that is called a net",
        ),
    ],
)  # fmt: skip
def test_a_method_that_every_module_has_is_the_models(program: str, calls: int) -> None:
    assert _methods_called(LOOP.format(base=""), program) == calls
    assert _methods_called(LOOP.format(base="(object)"), program) == calls


@pytest.mark.parametrize("base", ["(nn.Module)", "(Base)"])
def test_a_model_of_the_projects_own_may_be_meant(base: str) -> None:
    source = "from torch import nn\nfrom other import Base\n" + LOOP.format(base=base)
    assert _methods_called(source, "def run(model):\n    model.train()\n") == 1
    assert _methods_called(LOOP.format(base="").replace("Loop", "Model"), "def run(model):\n    model.train()\n") == 1


def _methods_called(source: str, program: str) -> int:
    """How many calls in the program may be one of a method of the class, which is defined in the other file."""
    project = Project.of({"steps.py": source.encode(), "main.py": program.encode()})
    module = project.module("steps.py")
    assert module is not None
    found = [calls_of(project, module, function) for function in module.nodes(ast.FunctionDef)]
    return sum(len(calls or ()) for calls in found)


NET = "class Net:\n    def save(self, path):\n        print(path)\n"


@pytest.mark.parametrize(
    ("program", "calls"),
    [
        pytest.param("class Engine:\n    def save(self):\n        self.net.save('a')\n", 1, id="handed on to a part"),
        pytest.param("class Engine:\n    def save(self):\n        self.net.module.save('a')\n", 1, id="of what a wrapper holds"),
        pytest.param("class Engine:\n    def save(self, path):\n        self.save(path)\n", 0, id="of itself"),
        pytest.param(f"{NET}\n\nnet = Net()\nnet.save('a')\n", 0, id="a copy of a script"),
    ],
)
def test_a_method_that_hands_on_to_one_of_its_name(program: str, calls: int) -> None:
    project = Project.of({"net.py": NET.encode(), "engine.py": program.encode()})
    module = project.module("net.py")
    assert module is not None
    found = calls_of(project, module, next(iter(module.nodes(ast.FunctionDef))))
    assert found is not None
    assert len(found) == calls
