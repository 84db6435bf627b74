"""Lines that go into a file which is already open: a guard round them would leave the file to all ranks, without them."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from codemods.analysis.bound_values import assigned
from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule, walk

_WRITES = frozenset({"write", "writelines", "writerow", "writerows", "writeheader"})


def goes_into_open_files(module: SourceModule, statements: Sequence[ast.stmt]) -> bool:
    """True where a line is written to a field, or to a writer that the statements themselves do not make.

    `rows.writerow(["step", "loss"])` of a table that every rank has opened further up: it is the opening that is one too many.
    A plain file that the function opens is looked at with its mode (`emptied_above`).
    """
    inside = [n for s in statements for n in walk(s)]
    bound = {n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for call in inside:
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr not in _WRITES:
            continue
        holder = dotted(call.func.value)
        if not holder or holder.startswith("sys.") or holder.partition(".")[0] in bound:
            continue
        here = module.function_of(call)
        opened = [v for v in assigned(module, call, holder) if module.function_of(v) is here]
        if not opened or not all(isinstance(v, ast.Call) and last(dotted(v.func)) == "open" for v in opened):
            return True
    return False
