from __future__ import annotations

import ast

import pytest

from codemods.analysis.names import dotted, family, is_from, is_parameter, last, qualified
from tests.places import module_of, node

SOURCE = """\
import torch.distributed as dist
import lightning.pytorch as pl
import os.path
from torch import nn
from .base import Model as Base
from ..util import helper
try:
    import fast as impl
except ImportError:
    import slow as impl

def f(dist, *nn, pl=1, **os):
    dist.barrier(); nn.Linear(); pl.Trainer(); os.path.join()
    g = lambda helper: helper(1)

dist.all_reduce(x)
pl.Trainer(1)
os.path.exists(p)
nn.Module(2)
Base(3)
helper.run(4)
impl.go(5)
self.log(6)
print(7)
a[0].b(8)
(lambda: 1)()
"""


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("dist.all_reduce(x)", "torch.distributed.all_reduce"),
        ("pl.Trainer(1)", "lightning.pytorch.Trainer"),
        ("os.path.exists(p)", "os.path.exists"),
        ("nn.Module(2)", "torch.nn.Module"),
        ("Base(3)", ".base.Model"),
        ("helper.run(4)", "..util.helper.run"),
        ("impl.go(5)", "fast.go"),
        ("self.log(6)", "self.log"),
        ("print(7)", "print"),
        ("a[0].b(8)", ""),
        ("(lambda: 1)()", ""),
        ("dist.barrier()", "dist.barrier"),
        ("nn.Linear()", "nn.Linear"),
        ("pl.Trainer()", "pl.Trainer"),
        ("os.path.join()", "os.path.join"),
        ("helper(1)", "helper"),
    ],
)
def test_the_name_a_call_was_imported_as(text: str, name: str) -> None:
    module = module_of(SOURCE)
    call = node(module, text, ast.Call)
    assert isinstance(call, ast.Call)
    assert qualified(module, call.func) == name


def test_parameters_hide_imports() -> None:
    module = module_of(SOURCE)
    assert is_parameter(module, "dist", node(module, "dist.barrier()", ast.Call))
    assert not is_parameter(module, "dist", node(module, "dist.all_reduce(x)", ast.Call))


def test_parts_of_names() -> None:
    assert dotted(None) == "" and dotted(ast.parse("a.b.c", mode="eval").body) == "a.b.c"
    assert [family(n) for n in ("pytorch_lightning.Trainer", "lightning_fabric.x", "torch.nn", "x")] == [
        "lightning", "lightning", "torch", "x",
    ]  # fmt: skip
    assert last("a.b.c") == "c" and last("a") == "a"
    assert is_from("pytorch_lightning.Trainer", "torch", "lightning") and not is_from("jax.nn", "torch")
