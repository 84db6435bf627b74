"""Saves that every rank makes to one path, and how each is left to rank 0: at the write, or at the call of its function."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from codemods.analysis.bindings import bindings_of, only_value
from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.files.asked_on_way import is_there_for_the_others
from codemods.analysis.files.behind_first_mkdir import is_behind_first_mkdir
from codemods.analysis.files.dead_ways import is_dead
from codemods.analysis.files.every_rank import Way, is_for_some, way_of_every_rank
from codemods.analysis.files.file_paths import arguments_of
from codemods.analysis.files.filled_on_demand import is_asked_for
from codemods.analysis.files.named_by_items import deals_out_items, is_named_by_a_sample, is_named_by_an_item
from codemods.analysis.files.own_moments import is_named_by_moment
from codemods.analysis.files.own_paths import callers_of, is_path_of_one
from codemods.analysis.files.rounds_of_own import in_own_rounds
from codemods.analysis.files.save_judgement import Judgement, judged
from codemods.analysis.files.saved_models import libraries_of, may_be_shared_out
from codemods.analysis.files.written_saves import Save, is_of_saves, saves_in
from codemods.analysis.guards.before_group import group_comes_later, is_of_group
from codemods.analysis.guards.lost_groups import group_is_over
from codemods.analysis.guards.shown_group import has_shown_group
from codemods.analysis.output.effects import Kind, effects_of, names_rank
from codemods.analysis.output.environment_guards import by_command
from codemods.analysis.output.guard_edits import guard_edit
from codemods.analysis.output.guard_spelling import Spelling, guard_for, written_out
from codemods.analysis.output.natures import values_of
from codemods.analysis.output.opened_files import emptied_above
from codemods.analysis.output.output_runs import makes_folder, output_runs
from codemods.analysis.output.rank_values import under_such_a_name
from codemods.analysis.output.spelled_test import GROUP_STARTED
from codemods.analysis.ranks.rank_guards import ranks_at
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.ranks.trace_items import Step
from codemods.analysis.short_texts import shortened
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.values import Cause
from codemods.api.findings import Applicability, Edit, Evidence, SetKeyword
from codemods.files.left_alone import left
from codemods.files.source import FunctionNode, SourceModule, line_of, walk
from codemods.runtime.record import record, replace
from codemods.store.project import Project

_Block = tuple[ast.stmt, ...]
_NO_TEST = "no test for rank 0 is sure to work here: let the callers of this function write on rank 0 alone"


@record
class Repair:
    """at: the statement that the finding is of, in `module`. path: as it is written. steps: the write, then what leads to it."""

    module: SourceModule
    at: ast.stmt
    path: str
    steps: tuple[Step, ...]
    shown: Evidence
    level: Applicability
    edits: tuple[Edit, ...] = ()
    reason: str = ""
    parts: bool = False  # each rank stores one of its own

    @property
    def line(self) -> int:
        return self.at.lineno


@record
class _Place:
    """Neighbouring statements that a guard would go round, and the way in which every rank comes to them."""

    module: SourceModule
    block: _Block
    way: Way
    at_call: bool = False


def repairs(project: Project, module: SourceModule) -> Iterator[Repair]:
    """One for each run of statements that stores something on every rank."""
    by_function: dict[FunctionNode | None, list[tuple[Save, Way]]] = {}
    for save in saves_in(project, module):
        if (way := _way(project, module, save)) is not None:
            by_function.setdefault(module.function_of(save.call), []).append((save, way))
    for function, saves in by_function.items():
        yield from _of_function(project, module, function, saves)


def _way(project: Project, module: SourceModule, save: Save) -> Way | None:
    """How every rank comes to a save; None where that is not shown, and where the path is each rank's own."""
    statement = module.statement_of(save.call)
    call = save.call
    if ranks_reaching(project, module, call).some and left(module, call, "not every rank comes to this save"):
        return None
    if is_for_some(project, module, call) and left(module, call, "it may be for some ranks alone"):
        return None
    if under_such_a_name(project, module, statement) and left(module, call, "a name over it may stand for the rank"):
        return None
    if in_own_rounds(project, module, [statement]) and left(module, call, "it is saved for each item of a rank's own share"):
        return None
    named = is_named_by_an_item(module, save.path) or is_named_by_a_sample(module, save.path)
    if named and deals_out_items(project) and left(module, call, "no other rank has the item"):
        return None
    if is_behind_first_mkdir(module, statement, [save.path]) and left(module, call, "the others end above it, as DDP204 says"):
        return None
    handler = next((up for up in module.ancestors(statement) if isinstance(up, ast.ExceptHandler)), None)
    if handler is not None and left(module, call, "what goes wrong on a rank is that rank's to save", at=handler):
        return None
    entered = [i for w in module.ancestors(statement) if isinstance(w, ast.With) for i in w.items]
    if any(names_rank(module.text_of(i.context_expr)) for i in entered) or _is_left_to_trainer(project, module, save):
        return None
    if (way := way_of_every_rank(project, module, call)) is None and left(module, call, "not every rank is seen to come here"):
        return None
    if way is None or (_is_own_on_way(project, module, save, way) and left(module, call, "the path is one of each rank's own")):
        return None
    if save.pretrained and may_be_shared_out(project, module, save.stored, way):
        left(module, call, "each rank may have a part of it to write")
        return None
    if is_path_of_one(project, module, save.path) and left(module, call, "the path is one of each rank's own"):
        return None
    if is_named_by_moment(module, save.path) and left(module, call, "each process reads a time of its own into the path"):
        return None
    if is_asked_for(module, call, save.path) and left(module, call, "it stands behind a test whether the path is there"):
        return None
    return None if is_dead(project, way) or is_there_for_the_others(project, way, save.path) else way


def _is_own_on_way(project: Project, module: SourceModule, save: Save, way: Way) -> bool:
    """True where the path is made of the rank or its data: of what the call on this way hands over, whatever others do."""
    own = (Cause.RANK, Cause.DATA)
    asked = variance(project)
    if asked.argument(module, save.call, save.index).cause not in own:
        return False
    used = [n for n in walk(save.path) if isinstance(n, ast.Name) and n.id not in module.imports]
    if used and all(_is_one_text(module, n) or asked.value(module, n).cause not in own for n in used):
        return False  # its own data decide whether a rank names it, and not how
    function, (caller, call) = module.function_of(save.call), way.frames[1] if len(way.frames) > 1 else (module, save.call)
    names = {n.id for n in walk(save.path) if isinstance(n, ast.Name) and n.id not in module.imports}
    given = arguments_of(function, call) if function is not None and isinstance(call, ast.Call) else {}
    if call is save.call or not names <= given.keys():
        return True
    return any(asked.value(caller, given[name]).cause in own for name in names)


def _is_one_text(module: SourceModule, name: ast.Name) -> bool:
    """True for `best = "best.pt"`, wherever it stands: no rank has another text in that name."""
    value = only_value(bindings_of(module, name))
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _is_left_to_trainer(project: Project, module: SourceModule, save: Save) -> bool:
    """True in methods that the Trainer of transformers runs on the process that saves."""
    place = module.method_of(save.call)
    return place is not None and place[1].name == "_save" and class_facts(project, module, place[0]).is_a(Role.HF_TRAINER)


def _of_function(
    project: Project, module: SourceModule, function: FunctionNode | None, saves: Sequence[tuple[Save, Way]]
) -> Iterator[Repair]:
    left = list(saves)
    while left:
        save, way = left[0]
        if (keyword := _keyword(project, module, save, way)) is not None:
            yield keyword
            left = left[1:]
            continue
        block = _block_of(project, module, function, save)
        inside = {id(n) for s in block for n in walk(s)}
        together = [s for s, _ in left if id(s.call) in inside] or [save]
        left = [(s, w) for s, w in left if s not in together]
        yield from _repaired(project, _Place(module, block, way), together)


def _block_of(project: Project, module: SourceModule, function: FunctionNode | None, save: Save) -> _Block:
    """The neighbours that only put something out round a save, else its own statement."""
    for run in output_runs(project, module, function or module.tree, lambda s: _is_wanted(project, module, s)):
        if any(n is save.call for s in run.statements for n in walk(s)):
            return _with_opening(project, module, run.statements)
    statement = module.statement_of(save.call)
    handle = module.parent(statement)
    return (handle,) if isinstance(handle, ast.With) and handle.body == [statement] else (statement,)


def _with_opening(project: Project, module: SourceModule, block: _Block) -> _Block:
    """The `with` round the block that opens, and so empties, the file, where nothing else stands in it; else the block."""
    handle = module.parent(block[0])
    if not isinstance(handle, ast.With) or len(handle.items) != 1 or not emptied_above(module, block):
        return block
    whole = handle.body[0] is block[0] and handle.body[-1] is block[-1]
    return (handle,) if whole and not ranks_at(module, handle, project=project).some else block


def _is_wanted(project: Project, module: SourceModule, statement: ast.stmt) -> bool:
    return holds_save(project, module, statement) and not makes_folder(module, statement)


def holds_save(project: Project, module: SourceModule, statement: ast.stmt) -> bool:
    """True for a statement that stores something in that way, itself or in what it calls."""
    found = effects_of(project, module, [statement]).output
    return any(e.kind is Kind.FILE and is_of_saves(project, e) for e in found)


# Where the guard goes


def _repaired(project: Project, place: _Place, saves: Sequence[Save]) -> Iterator[Repair]:
    """The places in the order in which they are tried: what the function knows, what its callers know, what torch knows."""
    module = place.module
    judgement = judged(project, module, saves, place.block, place.way)
    if not judgement.told and (opened := emptied_above(module, place.block)):
        told = f"every rank opens that file, and empties it, in line {opened}: put a test for rank 0 round the opening too"
        judgement = Judgement(told=told)
    if judgement.told:
        yield _made(place, saves, judgement)
        return
    known = guard_for(project, module, place.block[0])
    sure = known if known is not None and not known.assumes else written_out(project, module, place.block[0])
    if sure is None or _is_guarded_elsewhere(project, place):
        calls = list(_at_calls(project, place))
        if calls and all(spelled is not None for _, spelled in calls):
            for at, spelled in calls:
                yield _guarded(project, at, saves, judgement, spelled)
            return
    spelled = sure or written_out(project, module, place.block[0], imported=False) or by_command(project, module) or known
    if spelled is not None and _can_be_wrapped(module, place.block):
        yield _guarded(project, place, saves, judgement, spelled)
        return
    yield _made(place, saves, Judgement(told=_NO_TEST))


def _at_calls(project: Project, place: _Place) -> Iterator[tuple[_Place, Spelling | None]]:
    """The calls of the function that every rank makes, with their tests."""
    function = place.module.function_of(place.block[0])
    for site in callers_of(project, place.module, function) if function is not None else ():
        way = way_of_every_rank(project, site.module, site.call)
        if way is None:
            continue
        statement = site.module.statement_of(site.call)
        alone = isinstance(statement, ast.Expr) and _is_only_output(project, site.module, statement)
        spelled = guard_for(project, site.module, statement) if alone else None
        if spelled is None or spelled.assumes:
            spelled = written_out(project, site.module, statement) if alone else None
        at = _Place(site.module, (statement,), Way((*place.way.frames[:1], *way.frames), way.shown), at_call=True)
        yield at, spelled


def _is_guarded_elsewhere(project: Project, place: _Place) -> bool:
    """True where other calls of the function stand under a test of the rank: it belongs round this one too."""
    function = place.module.function_of(place.block[0])
    if function is None or len(place.way.frames) < 1:
        return False
    sites = callers_of(project, place.module, function)
    return any(is_for_some(project, s.module, s.call) for s in sites)


def _is_only_output(project: Project, module: SourceModule, statement: ast.stmt) -> bool:
    found = effects_of(project, module, [statement])
    return not found.besides() and module.is_whole(statement)


def _can_be_wrapped(module: SourceModule, block: _Block) -> bool:
    plain = all(isinstance(s, (ast.Expr, ast.If, ast.With, ast.For, ast.Assign)) for s in block)
    return plain and all(module.is_whole(s) for s in block) and isinstance(block[0], (ast.Expr, ast.If, ast.With, ast.For))


def _guarded(
    project: Project, place: _Place, saves: Sequence[Save], judgement: Judgement, spelled: Spelling | None
) -> Repair:
    assert spelled is not None
    if (spelled.asks_group or is_of_group(spelled.test)) and (over := group_is_over(project, place.way.frames)):
        told = f"{over} has destroyed the process group above: keep the rank in a name before that, and write on rank 0 alone"
        return _made(place, saves, Judgement(told=told))
    if spelled.asks_group or is_of_group(spelled.test):
        if later := group_comes_later(project, place.module, place.block[0]):
            told = f"there is no process group yet: {later}, and until then a test that asks it is true on every rank"
            if (launched := by_command(project, place.module)) is None:
                return _made(place, saves, Judgement(told=told))
            spelled = launched
        elif not spelled.assumes and not has_shown_group(project, place.module, place.block[0]):
            spelled = by_command(project, place.module) or replace(spelled, assumes=GROUP_STARTED)
    module, first, end = place.module, place.block[0], place.block[-1]
    barrier = judgement.behind(project, module, end, spelled.test)
    if barrier.told:
        return _made(place, saves, barrier)
    guard = guard_edit(project, module, first, end, spelled.test, alone=not barrier.edits)
    edits: list[Edit] = [guard, *spelled.edits, *barrier.edits]
    level, reason = barrier.level, barrier.reason
    if spelled.assumes:
        level, reason = Applicability.UNSAFE, "; ".join(filter(None, (reason, spelled.assumes)))
    return _made(place, saves, Judgement(level=level, reason=reason, edits=tuple(edits)))


def _made(place: _Place, saves: Sequence[Save], judgement: Judgement) -> Repair:
    steps, home = _steps(place, saves[0]), place.way.frames[0][0]
    level = Applicability.DISPLAY if judgement.told else judgement.level
    return Repair(
        place.module, _at(place, saves[0]), shortened(home.text_of(saves[0].path)), steps, place.way.shown, level,
        judgement.edits, judgement.told or judgement.reason, judgement.parts,
    )  # fmt: skip


def _at(place: _Place, save: Save) -> ast.stmt:
    """The statement that stores, where the guard goes round others too."""
    return place.block[0] if place.at_call else place.way.frames[0][0].statement_of(save.call)


def _steps(place: _Place, save: Save) -> tuple[Step, ...]:
    home = place.way.frames[0][0]
    found = [Step(home.path, save.call.lineno, f"{shortened(home.text_of(save.call.func))} writes")]
    for module, node in place.way.frames[1:4]:
        called = node.func if isinstance(node, ast.Call) else node
        line = line_of(node)
        found.append(Step(module.path, line, f"{shortened(module.text_of(called))} leads there"))
    return tuple(found)


# The word of peft


def _keyword(project: Project, module: SourceModule, save: Save, way: Way) -> Repair | None:
    """`is_main_process=` for a model of peft that an accelerator has unwrapped: in transformers 4 and diffusers, all ranks with
    that word write the weights, and the configuration alone is left to one."""
    if not save.pretrained or libraries_of(project, module, save.stored) != {"peft"}:
        return None
    made = [save.stored, *(values_of(module, save.stored) if isinstance(save.stored, ast.Name) else ())]
    calls = [v.func for v in made if isinstance(v, ast.Call)]
    unwrapped = [f for f in calls if isinstance(f, ast.Attribute) and f.attr == "unwrap_model"]
    if not unwrapped:
        return None
    holder = module.text_of(unwrapped[0].value)
    statement = module.statement_of(save.call)
    edits = (SetKeyword(module.path, module.span(save.call), "is_main_process", f"{holder}.is_main_process"),)
    place = _Place(module, (statement,), way)
    judgement = judged(project, module, [save], (statement,), way, waits_in_callee=True)
    judgement = judgement.behind(project, module, statement, f"{holder}.is_main_process")
    if judgement.told:
        return _made(place, [save], judgement)
    return _made(place, [save], Judgement(level=judgement.level, reason=judgement.reason, edits=(*edits, *judgement.edits)))
