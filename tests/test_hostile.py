"""Files that nobody would write by hand: none stops a check, each is done in five seconds, and all others are checked."""

# ruff: noqa: E501  a program a line
from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Finding
from codemods.files.source import SourceModule
from codemods.store.project import Project
from ddpfix import discovery, engine
from ddpfix.catalog import all_codemods
from ddpfix.results import Report
from ddpfix.settings import Settings

HEAD = "import torch\nimport torch.distributed as dist\n\n\n"
RUN = f"{HEAD}def f(rank, kind, model, loader):\n    dist.init_process_group('nccl')\n    rank = dist.get_rank()\n"
PLAIN = f"{RUN}    if rank == 0:\n        torch.save(kind, 'a.pt')\n        dist.barrier()\n    dist.destroy_process_group()\n"
SECONDS = 9.0  # at most 5 on a quiet machine; on a busy one the same state takes up to 6

CASES: dict[str, tuple[str, str | None]] = {  # text, and what is told of the file
    "an elif chain of 2,000": (
        f"{RUN}    if kind == 0:\n        pass\n" + "".join(f"    elif kind == {i}:\n        print({i})\n" for i in range(2000)),
        "taken for the work of a program",
    ),
    "900 guarded statements in a row": (f"{RUN}" + "    if rank == 0:\n        dist.barrier()\n" * 900, "taken for the work"),
    "a chain of 300 calls": (f"{RUN}    x = model{'.step(rank)' * 300}\n    print(x)\n", ""),
    "300 calls in each other": (f"{RUN}    x = {'f(' * 300}model{')' * 300}\n", "too many nested"),
    "a coding that does not decode": (f"# coding: idna\n{PLAIN}", "idna"),
    "a literal of 3 MB": (f"{RUN}    x = [{'1,' * 1_500_000}]\n", "taken for data"),
    "a text of 3 MB": (f"{RUN}    x = '{'a' * 3_000_000}'\n", "taken for data"),
    "1,000 signs": (f"{RUN}    x = {'-' * 1000}rank\n    print(x)\n", ""),
    "a sum of 3,000": (f"{RUN}    x = {' + '.join(['kind'] * 3000)}\n", None),  # told or read: by the stack that is left
    "1,000 attributes": (f"{RUN}    x = model{'.a' * 1000}\n    if rank == 0:\n        dist.barrier()\n", ""),
    "a NUL byte": (f"{RUN}    x = '\0'\n", "null bytes"),
    "an empty file": ("", ""),
    "5 MB of prints": (RUN + "    print(rank, 'x' * 10)\n" * 200_000, "taken for data"),
    "a class that derives from itself": (
        f"{HEAD}import lightning.pytorch as pl\n\n\nclass A(B):\n    def training_step(self, b, i):\n        self.log('x', b)\n\n\n"
        "class B(C):\n    pass\n\n\nclass C(A):\n    pass\n\n\nclass D(D, pl.LightningModule):\n    def a(self, b):\n"
        "        return self.a(b)\n",
        "",
    ),
    "names bound to themselves": (
        f"{HEAD}a = b\nb = a\nrank = rank\nx = y = x\n\n\ndef f():\n    global rank, dist\n    rank = dist.get_rank()\n"
        "    dist = dist\n    if rank == 0:\n        dist.barrier()\n\n\ndef g(rank=rank):\n    rank = rank\n    if rank: dist.barrier()\n",
        "",
    ),
    "stars everywhere": (
        f"{HEAD}def f(*args, **kw):\n    rank = dist.get_rank(*args)\n    print(*args, **kw)\n    torch.save(*args, **kw)\n"
        "    if rank == 0:\n        dist.all_reduce(*args, **kw)\n    f(*args, *args, **kw, **kw)\n    *a, b = args\n",
        "",
    ),
    "odd decorators": (
        f"{HEAD}@(lambda f: f)\n@[only][0]\n@(x := only)\n@only()(1)\n@property\ndef f(rank):\n    dist.barrier()\n\n\nclass A:\n"
        "    @f.setter\n    def f(): pass\n    @staticmethod\n    def g(*, self): return self.f\n    def i(*self): self.log('a', 1)\n",
        "",
    ),
    "a file cut off": (PLAIN[:-2], "line"),
    "a ring of 1,000 functions": (
        HEAD
        + "".join(
            f"def f{i}(x):\n    if dist.get_rank() == 0:\n        x = f{(i + 1) % 1000}(x)\n    dist.barrier()\n    return x\n\n\n"
            for i in range(1000)
        ),
        "",
    ),
    "a function defined 300 times": (
        HEAD
        + "".join(
            f"def step(x):\n    y = other(x)\n    torch.save(y, 'f{i}.pt')\n\n\ndef other(x):\n    dist.barrier()\n    return step(x)\n\n\n"
            for i in range(300)
        )
        + "dist.init_process_group('gloo')\nstep(1)\n",
        "",
    ),
    "150 classes, each above the next": (
        f"{HEAD}import lightning.pytorch as pl\n\n\nclass A0(pl.LightningModule):\n    pass\n\n\n"
        + "".join(
            f"class A{i}(A{i - 1}):\n    def validation_step(self, b, i):\n        self.log('v', self.loss(b))\n\n\n" for i in range(1, 151)
        ),
        "",
    ),
}


def checked(tmp_path: Path, text: str) -> Report:
    (tmp_path / "hostile.py").write_text(text, encoding="utf-8")
    (tmp_path / "plain.py").write_text(PLAIN, encoding="utf-8")
    (tmp_path / "ddpfix.toml").touch()
    (tree,) = discovery.discover([tmp_path])
    codemods = [c for c in all_codemods() if not c.opt_in]
    return engine.check(tree, Settings(), codemods, use_cache=False)


@pytest.mark.parametrize("name", CASES)
def test_a_hostile_file(name: str, tmp_path: Path) -> None:
    text, told = CASES[name]
    before = time.process_time()
    report = checked(tmp_path, text)
    assert time.process_time() - before < SECONDS
    assert "DDP301" in {f.code for f in report.findings if f.path == "plain.py"}
    said = [failure.error for failure in report.failed]
    if told is not None:
        assert any(told in reason for reason in said) if told else not said


class _Fails(DdpCodemod):
    """Fails on one file."""

    code = "DDP999"
    TRIGGERS = ((b"dist",),)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if module.path == "hostile.py":
            raise RecursionError
        yield self.finding(module, module.tree.body[0], "seen")


_Fails.__module__ = "codemods.sync.fails"


def test_a_codemod_that_fails_on_a_file(tmp_path: Path) -> None:
    """It is told of that file; the other codemods look at it, and this one at all others, in a check and in a fix."""
    for name in ("hostile.py", "plain.py"):
        (tmp_path / name).write_text(PLAIN, encoding="utf-8")
    (tmp_path / "ddpfix.toml").touch()
    (tree,) = discovery.discover([tmp_path])
    codemods = [_Fails(), *(c for c in all_codemods() if c.code == "DDP301")]
    report = engine.check(tree, Settings(), codemods, use_cache=False)
    assert {(f.code, f.path) for f in report.findings} == {
        ("DDP999", "plain.py"), ("DDP301", "plain.py"), ("DDP301", "hostile.py")
    }  # fmt: skip
    assert [(f.path, "nested too deeply" in f.error) for f in report.failed] == [("hostile.py", True)]
    fixed = engine.fix(tree, Settings(), codemods, lambda f: f.fix is not None)
    assert set(fixed.after) == {"hostile.py", "plain.py"} and len(fixed.report.failed) == 1
