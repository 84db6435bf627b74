"""The matching check: which ways of rank 0 and of the other ranks meet the same collectives."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
import time

import pytest

from codemods.analysis.ranks.matching import mismatches
from codemods.analysis.ranks.trace_items import Side
from codemods.store.project import Project

HEAD = "import torch\nimport torch.distributed as dist\n\n"


def left_over(body: str, *, head: str = HEAD, more: str = "") -> list[tuple[str, str, str]]:
    """(who, text of the way, what the others meet instead) for each mismatch in `f`."""
    source = f"{head}def f(self, rank, x, args, loader, accelerator):\n{textwrap.indent(textwrap.dedent(body), '    ')}\n{more}"
    project = Project.of({"m.py": source.encode()})
    module = project.module("m.py")
    assert module is not None
    (function,) = [f for f in module.functions if f.name == "f"]
    out = []
    for found in mismatches(project, module, function):
        way = " -> ".join(step.text.replace("torch.distributed.", "") for step in found.meeting.steps)
        out.append((found.side.value, way, found.other.name if found.other else ""))
    return out


def loops(of_zero: str, of_others: str) -> str:
    return f"if rank == 0:\n    {of_zero}:\n        dist.broadcast(b, 0)\nelse:\n    {of_others}:\n        dist.broadcast(b, 0)"


@pytest.mark.parametrize(
    ("body", "who", "way"),
    [
        ("if rank == 0:\n    dist.barrier()", "rank 0", "barrier"),
        ("if x:\n    pass\nelif rank == 0:\n    dist.barrier()", "rank 0", "barrier"),
        ("if rank == 0:\n    pass\nelse:\n    dist.barrier()", "the other ranks", "barrier"),
        ("if rank != 0:\n    return\nwork()\ndist.barrier()", "rank 0", "barrier"),
        ("for b in loader:\n    if rank != 0:\n        continue\n    print(b)\n    dist.all_reduce(x)", "rank 0", "all_reduce"),
        ("for b in loader:\n    dist.all_reduce(x)\n    if rank == 0 and x():\n        break", "the other ranks", "all_reduce"),
        ("for b in loader:\n    dist.all_reduce(x)\n    if rank != 0:\n        break", "rank 0", "all_reduce"),
        ("if rank == 0 and x:\n    return\ndist.barrier()", "the other ranks", "barrier"),
        ("if x:\n    if rank != 0:\n        return\ndist.barrier()", "rank 0", "barrier"),
        ("try:\n    if rank == 0:\n        dist.barrier()\nexcept OSError:\n    pass", "rank 0", "barrier"),
        ("try:\n    work()\nfinally:\n    if rank == 0:\n        dist.barrier()", "rank 0", "barrier"),
        ("with open('a') as f:\n    if rank != 0:\n        return\ndist.barrier()", "rank 0", "barrier"),
        ("while rank == 0:\n    dist.barrier()", "rank 0", "barrier"),
        ("y = dist.all_reduce(x) if rank == 0 else None", "rank 0", "all_reduce"),
        ("rank == 0 and dist.barrier()", "rank 0", "barrier"),
        ("rank == 0 or dist.barrier()", "the other ranks", "barrier"),
        ("match rank:\n    case 0:\n        dist.barrier()\n    case _:\n        pass", "rank 0", "barrier"),
        ("def g():\n    dist.barrier()\nif rank == 0:\n    g()", "rank 0", "g() -> barrier"),
        ("if dist.get_world_size() > 1:\n    if rank == 0:\n        dist.barrier()", "rank 0", "barrier"),
        ("if rank == 0:\n    [dist.broadcast(p, 0) for p in x]", "rank 0", "broadcast"),
        ("with accelerator.main_process_first():\n    dist.all_reduce(x)", "rank 0", "all_reduce"),
        ("for b in x:\n    if rank == 0:\n        dist.broadcast(b, 0)\n    else:\n        b.zero_()", "rank 0", "broadcast"),
    ],
)
def test_a_collective_without_a_partner(body: str, who: str, way: str) -> None:
    assert [found[:2] for found in left_over(body)] == [(who, way)]


def test_two_collectives_that_are_taken_for_each_other() -> None:
    body = "if rank == 0:\n    dist.all_reduce(x)\nelse:\n    dist.barrier()"
    assert left_over(body) == [("rank 0", "all_reduce", "barrier")]
    assert left_over(loops("for b in x", "for b in loader")) == [("rank 0", "broadcast", "broadcast")]


@pytest.mark.parametrize(
    "body",
    [
        "if rank != 0:\n    dist.barrier()\ndownload()\nif rank == 0:\n    dist.barrier()",
        "if rank == 0:\n    dist.gather(x, out)\nelse:\n    dist.gather(x)",
        "if rank != 0:\n    dist.barrier()\n    return\nwrite()\ndist.barrier()",
        "if rank == 0:\n    save(x)\n    dist.barrier()\nelse:\n    dist.barrier()\n    load(x)",
        "if rank == 0:\n    save(x)\ndist.barrier()",
        "if x:\n    pass\nelif rank == 0:\n    save(x)\ndist.barrier()",
        "if dist.is_initialized():\n    dist.barrier()",
        "if not dist.is_initialized():\n    return\nif rank == 0:\n    print(1)\ndist.barrier()",
        "if not x:\n    return\ndist.barrier()",
        "for b in loader:\n    dist.all_reduce(x)\n    if b > 3:\n        break",
        "try:\n    if rank != 0:\n        return\n    work()\nfinally:\n    dist.barrier()",
        "match rank:\n    case 0:\n        dist.barrier()\n    case _:\n        dist.barrier()",
        "with accelerator.main_process_first():\n    dist.barrier()",
        "if rank == 0:\n    g = lambda: dist.barrier()",
        "def g():\n    dist.barrier()\nif rank == 0:\n    print(1)\ng()",
        "if args.local_rank != -1:\n    dist.init_process_group('nccl')",
        "if rank == 0 and x:\n    raise ValueError(x)\ndist.barrier()",
        "x = dist.all_reduce(x) if dist.get_world_size() > 1 else x",
        loops("for a, b in zip(x, loader)", "for b in loader"),
        loops("for i, b in enumerate(tqdm(x))", "for b in x"),
        loops("for k, b in x.items()", "for b in x.values()"),
    ],
)
def test_every_rank_meets_as_much(body: str) -> None:
    assert left_over(body) == []


@pytest.mark.parametrize(
    "body",
    [
        "if rank == 0:\n    dist.broadcast(x, 0)\nelse:\n    receive(x)",
        "if rank != 0:\n    serve()\n    return\ndist.broadcast(x, 0)",
        "if rank == 0:\n    dist.barrier(group=x)",
        "if rank == src:\n    dist.barrier()",
        "if rank == 0:\n    dist.broadcast(x, 0)\nif rank == 1:\n    dist.broadcast(x, 0)",
    ],
)
def test_an_unknown_call_or_rank_may_be_the_other_half(body: str) -> None:
    assert left_over(body) == []


def test_functions_that_call_each_other_come_to_an_end() -> None:
    more = "def one(n):\n    if n:\n        other(n - 1)\n    dist.barrier()\n\ndef other(n):\n    one(n)\n"
    assert left_over("if rank == 0:\n    other(3)", more=more) == [("rank 0", "other() -> one() -> barrier", "")]
    assert left_over("if rank == 0:\n    other(3)\nelse:\n    one(2)", more=more) == []


def test_a_callee_that_asks_for_the_rank_itself() -> None:
    more = (
        "def save(rank, x):\n    if rank == 0:\n        torch.save(x, 'p')\n        dist.barrier()\n"
        "    else:\n        dist.barrier()\n"
    )
    assert left_over("save(rank, x)\nif rank == 0:\n    print(1)\n    save(rank, x)", more=more) == [
        ("rank 0", "save() -> barrier", "")
    ]


def test_a_collective_that_the_argument_decides_about() -> None:
    more = "def maybe(wait):\n    if wait:\n        dist.barrier()\n"
    assert left_over("if rank == 0:\n    maybe(False)", more=more) == []


def test_a_context_that_the_project_makes() -> None:
    head = f"{HEAD}from contextlib import contextmanager\n"
    more = (
        "@contextmanager\ndef first(rank):\n    if rank != 0:\n        dist.barrier()\n    yield\n"
        "    if rank == 0:\n        dist.barrier()\n"
    )
    assert left_over("with first(rank):\n    if rank == 0:\n        print(1)", head=head, more=more) == []


def test_metrics_that_are_reduced_before_they_are_read() -> None:
    source = (
        "import lightning.pytorch as pl\nclass C(pl.Callback):\n    def {}(self, trainer, m):\n"
        "        if trainer.is_global_zero:\n            self.write(trainer)\n"
        "    def write(self, trainer):\n        print(trainer.callback_metrics)\n"
    )
    found = {}
    for hook in ("on_train_epoch_end", "on_validation_epoch_end"):
        project = Project.of({"m.py": source.format(hook).encode()})
        module = project.module("m.py")
        assert module is not None
        found[hook] = mismatches(project, module, module.functions[0])
    assert [m.side for m in found["on_train_epoch_end"]] == [Side.ZERO]
    assert found["on_validation_epoch_end"] == ()


# Depth


def test_a_long_sum_is_read() -> None:
    long = "x = " + " + ".join(["one(x)"] * 900)
    assert left_over(f"if rank == 0:\n    dist.barrier()\n{long}") == [("rank 0", "barrier", "")]


def test_nothing_is_said_of_what_is_nested_too_deeply() -> None:
    chain = "".join(f"    {'el' if n else ''}if x == {n}:\n        one(x)\n" for n in range(200))
    source = f"{HEAD}def f(rank, x):\n    if rank == 0:\n        dist.barrier()\n{chain}"
    project = Project.of({"m.py": source.encode()})
    module = project.module("m.py")
    assert module is not None
    (function,) = [f for f in module.functions if f.name == "f"]
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 250)  # how deep one can read depends on the stack that is left
    try:
        assert not list(mismatches(project, module, function))
    finally:
        sys.setrecursionlimit(before)
    few = "".join(textwrap.dedent(chain).splitlines(keepends=True)[:20])
    assert left_over(f"if rank == 0:\n    dist.barrier()\n{few}") == [("rank 0", "barrier", "")]


# Cost


def a_thousand_files() -> dict[str, bytes]:
    """A tree of calls through 1,000 files, with cycles back to its root; the last file waits for the other ranks."""
    body = "".join(f"def helper_{n}(x):\n    for i in range(x):\n        x += i * {n}\n    return x\n\n\n" for n in range(8))
    files = {}
    for i in range(1, 1000):
        calls = [c for c in (2 * i, 2 * i + 1) if c < 1000] or [1]
        lines = "".join(f"from pkg.m{c} import go{c}\n" for c in calls)
        inner = "".join(f"    go{c}(helper_{c % 8}(x))\n" for c in calls)
        waits = "    dist.barrier()\n" if i == 999 else ""
        files[f"pkg/m{i}.py"] = f"import torch.distributed as dist\n{lines}\n\n{body}def go{i}(x):\n{inner}{waits}".encode()
    main = "def main():\n    if dist.get_rank() == 0:\n        go1(3)\n"
    return {**files, "main.py": f"import torch.distributed as dist\nfrom pkg.m1 import go1\n\n\n{main}".encode()}


def test_a_thousand_files_cost_little_more_than_their_parsing_and_are_read_once() -> None:
    """About a second, ten times what `ast.parse` alone takes: a ratio says the same on every machine."""
    project = Project.of(a_thousand_files())
    main = project.module("main.py")
    assert main is not None
    started = time.process_time()
    for data in a_thousand_files().values():
        ast.parse(data)
    parsing = time.process_time() - started
    started = time.process_time()
    (found,) = mismatches(project, main, main.functions[0])
    spent = time.process_time() - started
    assert [s.path for s in found.meeting.steps][-1] == "pkg/m999.py"
    assert spent < 20 * parsing
    started = time.process_time()
    assert [len(mismatches(project, m, f)) for m in [project.module("pkg/m7.py")] if m for f in m.functions] == [0] * 9
    assert time.process_time() - started < spent / 20


def test_a_file_that_speaks_of_no_ranks_costs_nothing() -> None:
    files = a_thousand_files()
    read: list[str] = []

    def reader(path: str) -> bytes | None:
        read.append(path)
        return files.get(path)

    project = Project(files, reader)
    module = project.module("pkg/m1.py")
    assert module is not None and [mismatches(project, module, f) for f in module.functions] == [()] * 9
    assert set(read) == {"pkg/m1.py"}


@pytest.mark.parametrize(
    "body",
    [
        "for b in loader:\n    dist.barrier()\n    if rank == 0:\n        if not x:\n            continue\n        print(b)",
        "for b in loader:\n    dist.all_reduce(b)\n    for c in b:\n        if rank == 0:\n            if c:\n"
        "                continue\n            print(c)\n",
        "while x:\n    dist.barrier()\n    if rank == 0:\n        if args:\n            pass\n        else:\n"
        "            continue\n        print(x)\ndist.all_reduce(x)",
    ],
)
def test_who_goes_on_with_the_next_round_comes_to_its_collectives(body: str) -> None:
    assert left_over(body) == []


@pytest.mark.parametrize(
    "body",
    [
        f"for b in loader:\n    dist.barrier()\n    if rank == 0:\n        if not x:\n            {word}\n        print(b)"
        for word in ("break", "return")
    ]
    + ["for b in loader:\n    if rank == 0:\n        if not x:\n            continue\n        print(b)\n    dist.barrier()"],
)
def test_who_leaves_the_round_before_a_collective_is_missed_there(body: str) -> None:
    assert [(who, way) for who, way, _ in left_over(body)] == [("the other ranks", "barrier")]
