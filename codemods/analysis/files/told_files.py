"""The message and the advice for a file that every rank writes where no test for rank 0 is at hand, and what to write there."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.analysis.files.file_calls import Act
from codemods.analysis.files.files_of_all import FileOfAll
from codemods.analysis.files.filled_on_demand import is_asked_for
from codemods.analysis.files.own_contents import own_among, own_in
from codemods.analysis.files.own_results import Filled, filled_by_batches
from codemods.analysis.files.read_at_import import read_at_import
from codemods.analysis.files.rotating_logs import keeps_copies, rotates
from codemods.analysis.files.scratch_files import OF_ONE_PROCESS, is_scratch
from codemods.analysis.files.taken_away import puts_up_with_it
from codemods.analysis.files.tests_at_hand import test_at_hand
from codemods.analysis.guards.before_group import group_comes_later
from codemods.analysis.guards.lost_groups import group_is_over
from codemods.analysis.names import dotted, qualified
from codemods.analysis.output.environment_guards import may_lack_rank
from codemods.analysis.ranks.asked_by_callers import asked_by_callers
from codemods.analysis.short_texts import shortened
from codemods.analysis.variance.values import Value
from codemods.files.source import SourceModule, line_of
from codemods.store.project import Project


def message_of(found: FileOfAll) -> str:
    what, does = shortened(found.module.text_of(found.path)), found.home.text_of(found.file.call.func)
    there = f"line {found.file.call.lineno}" if found.home is found.module else f"{found.home.path}:{found.file.call.lineno}"
    near = found.home is found.module and found.at is found.home.statement_of(found.file.call)
    who = f"every rank comes here, and {does}(…)" if near else f"every rank comes here, and {does}(…) in {there}"
    if found.removes and puts_up_with_it(found.home, found.file.call):
        return f"{who} takes `{what}` away: a rank that is late removes what another has made anew"
    if found.removes and is_asked_for(found.home, found.file.call, found.file.path):
        harm = "a rank that is late removes what another has made anew, or finds it gone behind its test"
        return f"{who} takes `{what}` away: {harm}"
    if found.removes:
        return f"{who} takes `{what}` away: the second one raises FileNotFoundError"
    if found.file.act is Act.FILLS:
        return f"{who} fills `{what}`: FileExistsError, or a torn copy"
    if rotates(found.home, found.file.call):
        return f"{who} logs into `{what}`: {_harm_of_rotating(found)}"
    if qualified(found.home, found.file.call.func).startswith("logging."):
        return f"{who} writes `{what}`: each rank empties the log as it opens it, and what others have logged is lost"
    return f"{who} writes `{what}`: the ranks overwrite each other's output"


def _harm_of_rotating(found: FileOfAll) -> str:
    if not keeps_copies(found.home, found.file.call):
        return "each rank empties the full log by itself, and what others have logged is lost"
    return "each rank rotates the log by itself, which renames it under the others, and kept logs are overwritten"


def gathered_first(own: Filled) -> str:
    return (
        f"the loop in line {own.line} fills `{own.name}` batch by batch, which may be this rank's share alone: gather the "
        "parts first (`all_gather_object`) and let rank 0 write them, or put the rank into the name"
    )


def shared_out(project: Project, module: SourceModule, statements: Iterable[ast.stmt]) -> str:
    """What is to be done first where statements write what is made of this rank's share of the data; "" where they do not."""
    own = own_among(project, module, statements)
    return _gathered_or_parted(module, *own) if own is not None else ""


def own_share_in(project: Project, module: SourceModule, opening: ast.Call) -> str:
    """The same for all that is written to the file that a call opens."""
    own = own_in(project, module, opening)
    return _gathered_or_parted(module, *own) if own is not None else ""


def _gathered_or_parted(module: SourceModule, text: str, value: Value) -> str:
    link = value.chain[0]
    there = f"line {link.line}" if link.path == module.path else f"{link.path}:{link.line}"
    return (
        f"`{text}` is made of this rank's own share of the data ({there}), and rank 0 alone would give its part out as the "
        "whole: gather the parts first and let rank 0 write them, or put the rank into the name"
    )


def advice_for(project: Project, found: FileOfAll) -> str:
    """What to write, for no test is sure at the place itself."""
    if is_scratch(found.home, found.file.call, found.file.path):
        return OF_ONE_PROCESS
    if (read_in := read_at_import(project, found.home, found.file.call, found.file.path)) is not None:
        return (
            f"every rank reads it in {read_in[0]}:{read_in[1]}, which is imported behind it: what rank 0 alone writes is not "
            "there in time, and what all write may be read while it is empty; hand it over without a file, as in `os.environ`"
        )
    if not found.removes and (own := filled_by_batches(found.way.frames)) is not None:
        return gathered_first(own)
    if (asked := _asked_on_the_way(project, found)) is not None:
        where = "{}:{}".format(*asked)
        return f"rank 0 comes here alone as well, by the test in {where}, where a barrier would hang: let it do all of this alone"
    read = "and put a barrier behind it" if found.removes else "with a barrier behind it if another rank reads the file"
    if over := group_is_over(project, found.way.frames):
        return f"{over} has destroyed the process group above: keep the rank in a name before that, and write on rank 0 alone"
    if "mp.spawn" in found.way.shown.text:
        return 'move it under `if __name__ == "__main__":`, where the process that starts the others comes alone'
    later = group_comes_later(project, found.module, found.at)
    if "ightning" in found.way.shown.text:
        if not later:
            return f"let `rank_zero_only.rank == 0` do it, {read}"
        return (
            f"let `rank_zero_only.rank == 0` do it; there is no group for a barrier yet, for {later}: what another rank reads is "
            "made in `prepare_data` of a data module, which lets the others wait"
        )
    if later or any(is_above_the_start(home, node) for home, node in found.way.frames):
        if spawning := _spawning(found):
            return (
                f"no group exists yet, and {spawning} sets no RANK: do it behind the start of the group, on rank 0, or before "
                "the processes are started"
            )
        if may_lack_rank(project):
            return "no group exists yet: do it behind its start, on rank 0"
        return 'no group exists yet: do it behind its start, on rank 0, or test `int(os.environ.get("RANK", 0)) == 0`'
    if (known := test_at_hand(project, found.module, found.at)) is not None:
        where = "this function" if known.here else "the class"
        who = "the first rank of each node" if known.of_node else "rank 0"
        move = "move it below that, under this test" if known.below else "put it under this test"
        if _sets_up_a_log(found):
            move, read = "name the file on that rank alone", "the others log without it"
        return f"{where} knows {who} by `{shortened(known.text)}` (line {known.line}): {move}, {read}"
    return f"no test for rank 0 is seen here: let the caller that knows the rank do it on rank 0 alone, {read}"


def _asked_on_the_way(project: Project, found: FileOfAll) -> tuple[str, int] | None:
    """The test of the rank over another call of a function on the way of every rank: a hook that rank 0 calls itself, too."""
    asked = (asked_by_callers(project, home, node, 1) for home, node in found.way.frames)
    return next((place for place in asked if place is not None), None)


def _sets_up_a_log(found: FileOfAll) -> bool:
    """True for `logging.basicConfig(filename=…)`: it does more than to write, and no rank reads the file."""
    return qualified(found.home, found.file.call.func) == "logging.basicConfig" and found.home is found.module


def _spawning(found: FileOfAll) -> str:
    """The call that starts the processes in a file on the way: they get their number as an argument, and no variable."""
    calls = (c for home, _ in found.way.frames for c in home.calls_named("spawn", "start_processes"))
    return next((name for c in calls if (name := dotted(c.func))), "")


def is_above_the_start(module: SourceModule, node: ast.AST) -> bool:
    """True above the call, in the same function, that starts the process group or makes the Accelerator."""
    line = line_of(node)
    calls = module.calls_named("init_process_group", "Accelerator", "init_distributed_mode", "init_distributed")
    return any(module.function_of(c) is module.function_of(node) and c.lineno > line for c in calls)
