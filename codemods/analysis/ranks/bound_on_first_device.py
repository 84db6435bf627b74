"""Names that only the process on the first GPU binds, and that every process reads: a second one would end there.

    if torch.cuda.current_device() == 0:
        text = decode(found)
    file.write(text)

A program with this was never run on several processes. A test for the rank is another thing: it was written for them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.bindings import bindings_in
from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule, once_a_module, walk


@once_a_module
def needs_the_first_device(module: SourceModule) -> bool:
    """True for a file with a function that reads for all what one test of the current device binds alone."""
    if not module.holds(b"current_device()"):
        return False
    return any(_is_of_the_first(test.test) and any(_read_for_all(module, test)) for test in module.nodes(ast.If))


def _is_of_the_first(test: ast.expr) -> bool:
    """`torch.cuda.current_device() == 0`, also inside of `int(…)`."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return False
    zero = test.comparators[0]
    asked = any(isinstance(n, ast.Call) and last(dotted(n.func)) == "current_device" for n in walk(test.left))
    return asked and isinstance(zero, ast.Constant) and zero.value == 0


def _read_for_all(module: SourceModule, test: ast.If) -> Iterator[bool]:
    function = module.function_of(test)
    if function is None or test.orelse:
        return
    inside = {id(n) for n in walk(test)}
    last_line = test.end_lineno or test.lineno
    for name in {n.id for s in test.body for n in walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}:
        bound = bindings_in(module, function, name)
        if not bound or any(id(b.node) not in inside for b in bound):
            continue
        reads = (n for n in module.reads_of(name) if isinstance(n, ast.Name) and module.function_of(n) is function)
        yield any(n.lineno > last_line and not _is_under_a_like_test(module, n) for n in reads)


def _is_under_a_like_test(module: SourceModule, node: ast.AST) -> bool:
    return any(isinstance(up, (ast.If, ast.IfExp, ast.Try)) and _may_part(up) for up in module.ancestors(node))


def _may_part(up: ast.AST) -> bool:
    """True for a `try`, which may catch the error, and for a test of a device or a rank."""
    if not isinstance(up, (ast.If, ast.IfExp)):
        return True
    text = ast.unparse(up.test)
    return "device" in text or "rank" in text or "main" in text.replace("__main__", "")
