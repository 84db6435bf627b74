"""Do the processes that `mp.spawn` starts run a statement again, since they import its file first?"""

from __future__ import annotations

import ast

from codemods.analysis.guards.entry_points import main_block
from codemods.analysis.names import qualified
from codemods.api.findings import Evidence
from codemods.files.source import SourceModule


def imports_again(module: SourceModule, node: ast.AST) -> Evidence | None:
    """`mp.spawn` beside statements that no test of `__name__` keeps from the processes: each of them imports the file again."""
    if not module.holds(b"__main__") or main_block(module, node) is not None:
        return None
    for call in module.calls_named("spawn", "start_processes"):
        name = qualified(module, call.func)
        if name.startswith("torch.multiprocessing.") and not any(k.arg == "start_method" for k in call.keywords):
            return Evidence("static", "each process that mp.spawn starts imports this file again", module.path, call.lineno)
    return None
