"""Which module a call takes a class out of by its name."""

from __future__ import annotations

import ast

import pytest

from codemods.analysis.files.named_classes import holder_of_named
from codemods.files.source import SourceModule


@pytest.mark.parametrize(
    ("source", "holder"),
    [
        ("getattr(sets, name)(root)", "sets"),
        ("getattr(data.sets, name, None)(root)", "data.sets"),
        ("eval('sets.' + name)(root)", "sets"),
        ("eval(f'data.sets.{name}')(root)", "data.sets"),
        ("eval('sets.{}'.format(name))(root)", "sets"),
        ("kind = getattr(sets, name)\nkind(root)", "sets"),
        ("kind = getattr(sets, name)\nkind = getattr(nets, name)\nkind(root)", ""),
        ("getattr(sets, 'Rows')(root)", ""),
        ("eval('sets.' + name + '.make')(root)", ""),
        ("eval(f'sets.{name}.make')(root)", ""),
        ("eval('sets.{}.make'.format(name))(root)", ""),
        ("eval(name)(root)", ""),
        ("sets.Rows(root)", ""),
    ],
)
def test_the_module_of_a_named_class(source: str, holder: str) -> None:
    module = SourceModule("a.py", source.encode())
    call = next(c for c in reversed(module.nodes(ast.Call)) if module.text_of(c).endswith("(root)"))
    assert holder_of_named(module, call) == holder
