"""A way on which the program ends right below, wherever there are several processes."""

from __future__ import annotations

import textwrap

import pytest

from codemods.analysis.ranks.refused_below import is_refused_below
from codemods.store.project import Project

SOURCE = """
def main(args, model, loader):
    if args.cache:
        {place}
        {below}
    else:
        train(model, loader)
    {behind}
"""
RAISES = "if args.distributed:\n    raise NotImplementedError"


@pytest.mark.parametrize(
    ("place", "below", "behind", "refused"),
    [
        ("show(model)", RAISES, "pass", True),
        ("show(model)", "assert not args.distributed", "pass", True),
        ("show(model)", f"rows = model.rows()\n{RAISES}", "pass", True),
        ("if args.long:\n    show(model)", RAISES, "pass", True),
        ("show(model)", "pass", RAISES, False),  # the other arm trains
        ("show(model)", "if args.small:\n    raise NotImplementedError", "pass", False),
        ("show(model)", "if not args.distributed:\n    raise NotImplementedError", "pass", False),
        ("show(model)", f"train(model, loader)\n{RAISES}", "pass", False),
        ("show(model)", f"if args.early:\n    return\n{RAISES}", "pass", False),
        ("show(model)", "pass", "pass", False),
        ("try:\n    show(model)\nfinally:\n    pass", RAISES, "pass", False),
    ],
)
def test_what_ends_right_below(place: str, below: str, behind: str, refused: bool) -> None:
    assert _is_refused(place, below, behind) is refused


def _is_refused(place: str, below: str, behind: str) -> bool:
    texts = {"place": place, "below": below}
    deep = {name: textwrap.indent(text, "        ").lstrip() for name, text in texts.items()}
    source = SOURCE.format(**deep, behind=textwrap.indent(behind, "    ").lstrip())
    module = Project.of({"main.py": source.encode()}).module("main.py")
    assert module is not None
    (call,) = module.calls_named("show")
    return is_refused_below(module, module.statement_of(call))
