"""Which calls may be one of a plain function: `net.train()` is a method of an object, and no call of a function `train`."""

from __future__ import annotations

import ast

import pytest

from codemods.analysis.ranks.uses import calls_of
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
