"""The programs that codemods are shown on: the example of each page, and texts that its own test file hands to the kit."""

from __future__ import annotations

import ast
import hashlib
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from codemods.api.codemod import DdpCodemod

HERE = Path(__file__).parent
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)
_CHECKS = frozenset({"check_transformed", "check_told"})
_LONGEST = 2500


@cache
def programs(codemod: type[DdpCodemod], most: int = 4) -> tuple[str, ...]:
    """The example, and some of the programs of the tests; single files of Python only. They are drawn by a digest of the text, so
    that a new test beside them rarely changes which.
    """
    example = _BLOCK.findall(codemod.sections()["Example"])
    tested = [text for text in dict.fromkeys(_tested(codemod)) if text not in example]
    tested.sort(key=lambda text: hashlib.sha256(text.encode()).hexdigest())
    return (*example, *tested[: max(most - len(example), 0)])


def _tested(codemod: type[DdpCodemod]) -> Iterator[str]:
    tree = ast.parse((HERE / "codemods" / f"test_{codemod.file_name()}.py").read_bytes())
    known: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            if (text := _text(node.value, known)) is not None:
                known[node.targets[0].id] = text
    for function in (n for n in tree.body if isinstance(n, ast.FunctionDef)):
        here = dict(known)
        inside = list(ast.walk(function))
        for assign in (n for n in inside if isinstance(n, ast.Assign)):
            if isinstance(assign.targets[0], ast.Name) and (text := _text(assign.value, here)) is not None:
                here[assign.targets[0].id] = text
        for call in (n for n in inside if isinstance(n, ast.Call)):
            if isinstance(call.func, ast.Name) and call.func.id in _CHECKS and len(call.args) > 1:
                text = None if any(k.arg in ("files", "path") for k in call.keywords) else _text(call.args[1], here)
                if text and len(text) < _LONGEST and _is_python(text):
                    yield textwrap.dedent(text)


def _text(node: ast.expr, known: dict[str, str]) -> str | None:
    """The text that an expression of texts comes to."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _text(node.left, known), _text(node.right, known)
        return left + right if left is not None and right is not None else None
    if isinstance(node, ast.JoinedStr):
        parts = [_text(p.value if isinstance(p, ast.FormattedValue) else p, known) for p in node.values]
        return "".join(p for p in parts if p is not None) if None not in parts else None
    return None


def _is_python(text: str) -> bool:
    try:
        ast.parse(textwrap.dedent(text))
    except SyntaxError:
        return False
    return True
