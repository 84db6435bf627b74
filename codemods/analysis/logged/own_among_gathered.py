"""The one number of a group that is shown as each rank has it, where all the others are put together from all ranks.

`writer.add_scalar("kl", gather(kl).mean(), step)` and its neighbours, and one `writer.add_scalar("ends", ends.sum().item(), n)`
between them; also the entries of one dict. Two such numbers may be meant so.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.names import dotted
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.number_roles import state_of
from codemods.analysis.variance.outlets import says_shown
from codemods.analysis.variance.state import State
from codemods.analysis.variance.values import SAME, Cause
from codemods.files.source import SourceModule, called_name, walk
from codemods.runtime.record import record
from codemods.store.project import Project

_FEWEST = 3  # neighbours that are gathered
_ALIKE = 2  # arguments of a call that shows one number: its name, and the number


@record
class OwnAmongGathered:
    """own: the number of one rank; gathered: the numbers beside it, of all ranks."""

    own: ast.expr
    gathered: tuple[ast.expr, ...]


def own_among_gathered(project: Project, module: SourceModule) -> Iterator[OwnAmongGathered]:
    """The number of each such group."""
    for group in (*_calls_in_a_row(module), *_entries(module)):
        if not any(_is_written_as_one_number(n) for n in group) or len(group) <= _FEWEST:
            continue
        state = state_of(variance(project), module, group[0])
        if state is None:
            continue
        gathered = tuple(n for n in group if _joins_ranks(state, n))
        if len(gathered) < _FEWEST:
            continue
        own = [n for n in group if n not in gathered and _is_written_as_one_number(n) and _is_own(project, state, n)]
        if len(own) == 1:
            yield OwnAmongGathered(own[0], gathered)


def _calls_in_a_row(module: SourceModule) -> Iterator[list[ast.expr]]:
    """What calls of one name show that stand in one block: `writer.add_scalar(name, number, step)`."""
    rows: dict[tuple[int, str], list[ast.expr]] = {}
    for call in module.nodes(ast.Call):
        up = module.parent(call)
        if isinstance(up, ast.Expr) and len(call.args) >= _ALIKE and isinstance(call.args[0], ast.Constant) and says_shown(call):
            block = module.parent(up)
            arm = isinstance(block, ast.If) and up in block.orelse
            rows.setdefault((-id(block) if arm else id(block), dotted(call.func)), []).append(call.args[1])
    yield from rows.values()


def _entries(module: SourceModule) -> Iterator[list[ast.expr]]:
    """The values of a dict that is written out where it is shown: `accelerator.log({"kl": ..., "ends": ...})`."""
    for call in module.nodes(ast.Call):
        if says_shown(call) and call.args and isinstance(call.args[0], ast.Dict) and all(call.args[0].keys):
            yield call.args[0].values


def _is_written_as_one_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and called_name(node) == "item"


def _joins_ranks(state: State, node: ast.expr) -> bool:
    """True where the number is gathered or reduced where it is shown."""
    calls = (n for n in (node, *walk(node)) if isinstance(n, ast.Call))
    return any(m.carries for call in calls for m in state.met.get(id(call), ()))


def _is_own(project: Project, state: State, node: ast.expr) -> bool:
    value = variance(project).resolved(state.site, state.values.get(id(node), SAME))
    return value.differs and value.cause is Cause.DATA
