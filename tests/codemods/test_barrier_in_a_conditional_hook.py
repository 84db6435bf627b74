from __future__ import annotations

import pytest

from codemods.sync.barrier_in_a_conditional_hook import BarrierInAConditionalHook
from ddpfix.testing import check_nothing, check_told

WAIT = "dist.barrier()"


def graphs(*lines: str, method: str = "process", base: str = "InMemoryDataset", library: str = "torch_geometric.data") -> str:
    body = "".join(f"        {line}\n" for line in lines)
    head = f"import torch\nimport torch.distributed as dist\nfrom {library} import {base}\n\n\n"
    return f"{head}class Graphs({base}):\n    def {method}(self):\n{body}"


def own(test: str, *lines: str, above: str = "pass") -> str:
    body = "".join(f"        {line}\n" for line in lines)
    call = f"if {test}:\n            self.process()" if test else "self.process()"
    return (
        "import os\nimport torch.distributed as dist\nfrom torch.utils.data import Dataset\n\n\n"
        f"class Rows(Dataset):\n    def __init__(self, path):\n        self.path = path\n        {above}\n        {call}\n\n"
        f"    def process(self):\n{body}"
    )


def test_example_of_the_page() -> None:
    sections = BarrierInAConditionalHook.sections()
    before, after = (sections[n].removeprefix("```python\n").removesuffix("```") for n in ("Example", "Use instead"))
    check_told(BarrierInAConditionalHook, before, reason="take the wait out of process()")
    check_nothing(BarrierInAConditionalHook, after)


@pytest.mark.parametrize("method", ["process", "download"])
@pytest.mark.parametrize(("base", "library"), [("InMemoryDataset", "torch_geometric.data"), ("Dataset", "torch_geometric.data"),
                                               ("DGLDataset", "dgl.data")])  # fmt: skip
def test_hooks_of_a_library(method: str, base: str, library: str) -> None:
    found = check_told(BarrierInAConditionalHook, graphs(WAIT, method=method, base=base, library=library), reason=method)
    assert base in found.evidence[0].text


def test_through_a_helper() -> None:
    source = graphs("meet()") + "\n\ndef meet():\n    dist.barrier()\n"
    check_told(BarrierInAConditionalHook, source, reason="take the wait out")


@pytest.mark.parametrize("test", ["not os.path.exists(path)", "not path.is_file()", "path and not os.path.isfile(path)"])
def test_a_class_that_looks_for_files(test: str) -> None:
    check_told(BarrierInAConditionalHook, own(test, WAIT), reason="take the wait out")


def test_a_name_for_the_answer() -> None:
    source = own("missing", WAIT, above="missing = not os.path.exists(path)")
    check_told(BarrierInAConditionalHook, source, reason="take the wait out")


def test_a_base_in_another_file() -> None:
    base = own("not os.path.exists(path)", "raise NotImplementedError").replace("Rows", "Base")
    head = "import torch.distributed as dist\nfrom base import Base\n\n\n"
    source = head + "class Rows(Base):\n    def process(self):\n        dist.barrier()\n"
    check_told(BarrierInAConditionalHook, source, reason="take the wait out", files={"base.py": base})


@pytest.mark.parametrize(
    "source",
    [
        graphs("torch.save(1, 'a.pt')"),
        graphs("if dist.get_rank() == 0:", "    dist.barrier()"),
        graphs("dist.barrier(group=self.group)"),
        graphs(WAIT, method="prepare"),
        graphs(WAIT, base="Dataset", library="torch.utils.data"),
        own("", WAIT),
        own("path", WAIT),
        own("missing", WAIT, above="missing = torch.tensor(not os.path.exists(path)); dist.broadcast(missing, 0)"),
        own("not os.path.exists(path)", "pass"),
    ],
)
def test_hooks_that_all_ranks_come_to(source: str) -> None:
    check_nothing(BarrierInAConditionalHook, source)


def test_tests_of_a_repository_stay() -> None:
    check_nothing(BarrierInAConditionalHook, graphs(WAIT), path="tests/test_graphs.py")
