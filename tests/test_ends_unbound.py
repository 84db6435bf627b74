"""Lines in an arm behind which every rank ends: a name is read that only the other arms bind."""

from __future__ import annotations

import ast

import pytest

from codemods.analysis.output.ends_unbound import ends_unbound
from codemods.files.source import SourceModule
from ddpfix.testing import project_of

CHAIN = """
if kind == "small":
    net = Small()
elif kind == "large":
    net = Large()
else:
    print("unknown kind")
"""
USED = "optimizer = SGD(net.parameters())\n"


def _asked(source: str, *, inside: bool) -> bool:
    body = f"def main(kind):\n{''.join(f'    {line}' for line in source.splitlines(keepends=True))}" if inside else source
    module: SourceModule | None = project_of(body).module("module.py")
    assert module is not None
    said = next(c for c in module.calls_named("print") if "unknown" in module.text_of(c))
    statement = module.statement_of(said)
    assert isinstance(statement, ast.Expr)
    return ends_unbound(module, statement)


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize(
    "source",
    [
        f"{CHAIN}{USED}",
        f"{CHAIN}rate = 0.1\n{USED}",
        f"{CHAIN}if rate > 1:\n    rate = 1\n{USED}",
        f"{CHAIN}for p in net.parameters():\n    p.zero_()\n",
        f"if train:\n{''.join(f'    {line}' for line in CHAIN.splitlines(keepends=True))}\n{USED}",
    ],
)
def test_a_name_that_is_read_behind(source: str, *, inside: bool) -> None:
    assert _asked(source, inside=inside)


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize(
    "source",
    [
        f"net = None\n{CHAIN}{USED}",  # it has a value already
        f"{CHAIN}if kind == 'small':\n    {USED}",  # read on some ways
        f"{CHAIN}net = Other()\n{USED}",
        CHAIN.replace('    print("unknown kind")\n', '    print("unknown kind")\n    net = Other()\n') + USED,
        f"{CHAIN}step = lambda: net.step()\n",
        f"{CHAIN}ready = kind and net\n",
        # the round before may have bound it
        f"for kind in kinds:\n{''.join(f'    {line}' for line in (CHAIN + USED).splitlines(keepends=True))}",
        CHAIN.replace("net = Large()", "found = [net for net in nets]").replace("net = Small()", "pass") + USED,
        CHAIN + "optimizer = None\n",
    ],
)
def test_a_run_that_goes_on(source: str, *, inside: bool) -> None:
    assert not _asked(source, inside=inside)


def test_a_parameter_and_a_global_name() -> None:
    assert not _asked(f"{CHAIN}{USED}".replace("net", "kind"), inside=True)
    assert not _asked(f"global net\n{CHAIN}{USED}", inside=True)
