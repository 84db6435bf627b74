"""DDP501 and DDP202: saves that cannot be left to rank 0."""

from __future__ import annotations

import pytest

from codemods.analysis.files.named_by_items import deals_out_items, is_named_by_an_item
from codemods.api.findings import Applicability
from codemods.checkpoints.unguarded_save import UnguardedSave
from codemods.files.source import SourceModule
from codemods.store.project import Project
from ddpfix.testing import check_nothing, check_told, findings_of

HEAD = "import torch\nimport torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel\n\n\n"


def program(*lines: str, wraps: bool = True) -> str:
    """`train` wraps its model and hands it to `keep`, which holds the lines."""
    body = "".join(f"    {line}\n" for line in lines)
    wrap = "    model = DistributedDataParallel(model)\n" if wraps else ""
    start = f"def train(model, loader, x):\n    dist.init_process_group('nccl')\n{wrap}    keep(model, loader, x)\n"
    return f"{HEAD}def keep(model, loader, x):\n{body}\n\n{start}\n\ntrain(build(), load(), draw())\n"


@pytest.mark.parametrize("runs", ["torch.onnx.export(model, x, 'net.onnx')", "torch.jit.trace(model, x).save('net.pt')"])
def test_an_export_of_the_wrapper(runs: str) -> None:
    for found in findings_of(UnguardedSave, program(runs)):
        assert found.applicability is Applicability.DISPLAY


def test_an_export_of_the_wrapper_says_what_to_export() -> None:
    check_told(UnguardedSave, program("torch.onnx.export(model, x, 'net.onnx')"), reason="hand it `model.module`")


def test_an_export_of_the_module_inside() -> None:
    (found,) = findings_of(UnguardedSave, program("torch.onnx.export(model.module, x, 'net.onnx')"))
    assert found.edits


def test_an_export_where_nothing_is_wrapped() -> None:
    source = program("torch.onnx.export(model, x, 'net.onnx')", wraps=False)
    (found,) = findings_of(UnguardedSave, source.replace("from torch.nn.parallel import DistributedDataParallel\n", ""))
    assert found.edits


LOOP = program("for batch in x.data.test_loader:", "    name = {}", "    y = model(batch)", "    torch.save(y, name)")
ITEMS = (
    ("for batch in loader", "batch['name']", True),
    ("for i, batch in enumerate(self.test_loader)", "self.names[batch['i']]", True),
    ("for i, batch in enumerate(loader)", "str(i)", False),
    ("for epoch in range(3)", "str(epoch)", False),
)
DEALT = "class DistributedEndlessSampler:\n    pass\n\n\ndef loader(data):\n    return DistributedEndlessSampler(data)\n"


@pytest.mark.parametrize(("loop", "name", "is_own"), ITEMS)
def test_a_file_for_each_sample(loop: str, name: str, is_own: bool) -> None:
    source = f"{loop}:\n    scene = {name}\n    out = scene + '.pt'\n    torch.save(model(batch), out)\n"
    module = SourceModule("a.py", source.encode())
    (call,) = module.calls_named("save")
    assert is_named_by_an_item(module, call.args[1]) is is_own


def test_samplers_of_the_project() -> None:
    assert deals_out_items(Project.of({"data.py": DEALT.encode()}))
    assert not deals_out_items(Project.of({"data.py": b"class DistributedEndlessSampler(Base):\n    pass\n"}))
    check_nothing(UnguardedSave, LOOP.format("x.names[batch['i']]"), files={"data.py": DEALT})


@pytest.mark.parametrize(
    "lines",
    [
        ("for i, batch in enumerate(loader):", "    model(batch)", "    torch.save(model.state_dict(), f'{i}.pt')"),
        ("for epoch in range(3):", "    torch.save(model.state_dict(), f'{epoch}.pt')"),
    ],
)
def test_a_file_for_each_step(lines: tuple[str, ...]) -> None:
    (found,) = findings_of(UnguardedSave, program(*lines))
    assert found.edits
