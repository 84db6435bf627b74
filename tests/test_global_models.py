"""Models that one function of a script binds by `global`, and that others ask for something."""

from __future__ import annotations

import pytest

from codemods.checkpoints.attribute_of_wrapper import AttributeOfWrapper
from ddpfix.testing import check_nothing, check_transformed

NETS = {
    "nets.py": "import torch\n\n\nclass Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.body = torch.nn.Linear(2, 2)\n\n    def forward(self, x):\n        return self.body(x)\n\n"
    "    def keep(self, path):\n        torch.save(self.state_dict(), path)\n"
}
HEAD = "from accelerate import Accelerator\nfrom nets import Net\n\n\n"
KEEP = "def keep():\n    model.keep('x')\n\n\n"
ROUND = """def run(batches):
    for x in batches:
        accelerator.backward(model(x).sum())
        optimizer.step()
    keep()


"""
WRAP = "    model, optimizer = accelerator.prepare(model, optimizer)\n"
MAIN = f"""def main(batches, make):
    global accelerator, model, optimizer
    accelerator = Accelerator()
    model = Net()
    optimizer = make(model)
{WRAP}    run(batches)


"""
LAST = "if __name__ == '__main__':\n    main([], None)\n"
INSIDE = "accelerator.unwrap_model(model)"


def test_behind_the_wrap() -> None:
    before = HEAD + KEEP + ROUND + MAIN + LAST
    check_transformed(AttributeOfWrapper, before, before.replace("model.keep", f"{INSIDE}.keep"), files=NETS, unsafe=True)


def test_in_the_function_that_wraps_it() -> None:
    before = HEAD + MAIN.replace("    run(batches)\n", "    model.keep('y')\n") + LAST
    check_transformed(AttributeOfWrapper, before, before.replace("model.keep", f"{INSIDE}.keep"), files=NETS, unsafe=True)


@pytest.mark.parametrize(
    "source",
    [
        HEAD
        + MAIN.replace(WRAP, f"    model.keep('y')\n{WRAP}").replace("    run(batches)\n", "")
        + LAST,  # in front of the wrap
        HEAD + KEEP + ROUND + MAIN.replace(WRAP, f"    keep()\n{WRAP}") + LAST,  # once in front of it, too
        HEAD + KEEP + ROUND + MAIN.replace(WRAP, f"    run([])\n{WRAP}") + LAST,  # over another function
        HEAD + KEEP + ROUND + MAIN + LAST.replace("    main", "    keep()\n    main"),  # from the file itself
        HEAD + KEEP + ROUND + MAIN.replace("    run(batches)", "    batches.each(keep)") + LAST,  # handed on: called by whom?
        HEAD + "@register\n" + KEEP + ROUND + MAIN + LAST,  # called by what it is registered with
        HEAD
        + KEEP
        + ROUND
        + MAIN
        + "def again():\n    global model\n    model = Net()\n\n\n"
        + LAST,  # bound by another function
    ],
)
def test_where_it_may_be_the_bare_model(source: str) -> None:
    check_nothing(AttributeOfWrapper, source, files=NETS)
