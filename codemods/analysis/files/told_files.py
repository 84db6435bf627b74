"""The message and the advice for a file that every rank writes where no test for rank 0 is at hand, and what to write there."""

from __future__ import annotations

import ast

from codemods.analysis.files.file_calls import Act
from codemods.analysis.files.files_of_all import FileOfAll
from codemods.source import SourceModule, line_of


def message_of(found: FileOfAll) -> str:
    what, does = short(found.module.text_of(found.path)), found.home.text_of(found.file.call.func)
    there = f"line {found.file.call.lineno}" if found.home is found.module else f"{found.home.path}:{found.file.call.lineno}"
    near = found.home is found.module and found.at is found.home.statement_of(found.file.call)
    who = f"every rank comes here, and {does}(…)" if near else f"every rank comes here, and {does}(…) in {there}"
    if found.removes:
        return f"{who} takes `{what}` away: the second one raises FileNotFoundError"
    if found.file.act is Act.FILLS:
        return f"{who} fills `{what}`: FileExistsError, or a torn copy"
    return f"{who} writes `{what}`: the ranks overwrite each other's output"


def advice_for(found: FileOfAll) -> str:
    """What to write, for no test is sure at the place itself."""
    read = "and put a barrier behind it" if found.removes else "with a barrier behind it if another rank reads the file"
    if "mp.spawn" in found.way.shown.text:
        return 'move it under `if __name__ == "__main__":`, where the process that starts the others comes alone'
    if "ightning" in found.way.shown.text:
        return f"let `rank_zero_only.rank == 0` do it, {read}"
    if any(is_above_the_start(home, node) for home, node in found.way.frames):
        return 'no group exists yet: do it behind its start, on rank 0, or test `int(os.environ.get("RANK", 0)) == 0`'
    return f"no test for rank 0 is at hand here: let the caller that knows the rank do it on rank 0 alone, {read}"


def short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:57] + "..."


def is_above_the_start(module: SourceModule, node: ast.AST) -> bool:
    """True above the call, in the same function, that starts the process group or makes the Accelerator."""
    line = line_of(node)
    calls = module.calls_named("init_process_group", "Accelerator", "init_distributed_mode", "init_distributed")
    return any(module.function_of(c) is module.function_of(node) and c.lineno > line for c in calls)
