"""May rank 0 store something for all? What is stored, what the statement waits for, who reads it next."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from codemods.analysis.files.every_rank import Way
from codemods.analysis.files.file_calls import Act
from codemods.analysis.files.file_paths import forms
from codemods.analysis.files.left_unsharded import is_an_average, without_kinds_left_out
from codemods.analysis.files.models_of_each_rank import trains_own_models
from codemods.analysis.files.named_by_items import OWN_ITEMS, is_named_by_an_item
from codemods.analysis.files.own_parts import is_own_part
from codemods.analysis.files.paths_given_out import given_out, returned_to
from codemods.analysis.files.read_back import read_back
from codemods.analysis.files.saved_models import is_stored_whole
from codemods.analysis.files.sharding_jobs import sharded_by
from codemods.analysis.files.written_saves import Save
from codemods.analysis.guards.barrier_spelling import Barrier, barrier_for
from codemods.analysis.guards.before_group import group_comes_later
from codemods.analysis.guards.file_handover import first_use, not_made_above
from codemods.analysis.guards.guarded_changes import Write
from codemods.analysis.guards.meeting_place import parted_before
from codemods.analysis.names import dotted, is_parameter, last, qualified
from codemods.analysis.output.effects import Kind, effects_of
from codemods.analysis.output.shared_values import same_everywhere
from codemods.analysis.paths import origin_text
from codemods.analysis.ranks.collectives import collective_at
from codemods.analysis.ranks.reached_collectives import reached_by
from codemods.analysis.variance.analysis import variance
from codemods.analysis.variance.values import Cause, Value
from codemods.analysis.wrapped.may_hold import may_hold
from codemods.api.findings import Applicability, Edit, InsertAfter, lowest
from codemods.data.host_only import RUNS_THE_MODEL
from codemods.files.source import FunctionNode, SourceModule, line_of, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record, replace
from codemods.store.project import Project

_SHARDED = lazy(
    rb"FullyShardedDataParallel|\bFSDP\b|FSDPStrategy|fully_shard\b|\bdeepspeed\b|DeepSpeedPlugin|DeepSpeedStrategy"
    rb"|ZeroRedundancyOptimizer|parallelize_module|\bDTensor\b"
)
_OF_A_NODE = lazy(r"cache|scratch|/tmp|tmpdir|temp_?dir|shm", re.IGNORECASE)
_STATE = lazy(r"state_dict|model|net|module|optim|tokenizer|processor|config|args|encoder|decoder", re.IGNORECASE)
# What has files of its own and no part of the model.
_NO_MODEL = lazy(r"tokenizer|processor|config|feature_extractor|vocab", re.IGNORECASE)
_OWN_STATE = lazy(r"loader|sampler|stream|dataset|rng|generator", re.IGNORECASE)  # what each rank has a state of its own in
_CONFIGURED = lazy(rb"Accelerator\b|\bTrainer\b|TrainingArguments|Fabric\b")
_ASKS_ALL = frozenset({"get_state_dict", "get_model_state_dict", "consolidate_state_dict", "full_tensor", "zero_to_fp32"})
_OWN_MODELS = (
    "no wrapper and no reduced gradients keep the models of the ranks equal: each stores its own; put the rank into the name, or "
    "put the weights together first and write them on rank 0"
)
_SAFE, _UNSAFE, _DISPLAY = Applicability.SAFE, Applicability.UNSAFE, Applicability.DISPLAY


@record
class Judgement:
    """told: why there is no repair. reason: what the repair rests on. uses: the paths, for what comes behind.

    parts: each rank stores a part of its own.
    """

    level: Applicability = _SAFE
    reason: str = ""
    told: str = ""
    edits: tuple[Edit, ...] = ()
    writes: tuple[Write, ...] = ()
    parts: bool = False

    def behind(self, project: Project, module: SourceModule, end: ast.stmt, test: str) -> Judgement:
        """With the barrier that is needed behind the statement `end`, where every rank uses the path next.

        test: the one for rank 0.
        """
        if self.told or not self.writes:
            return self
        function = module.function_of(end)
        use = self._use_behind(project, module, end, function)
        if not use:
            return self
        if parted := parted_before(project, module, end, function):
            return Judgement(told=f"{use}, and a barrier here could hang: it is not shown that {parted}")
        if later := group_comes_later(project, module, end):
            return Judgement(told=f"{use}, and there is no group for a barrier yet: {later}")
        barrier = _barrier(project, module, end, test)
        if not barrier.code:
            return Judgement(told=f"{use}: the test needs a barrier behind it ({barrier.reason})")
        insert = InsertAfter(module.path, module.span(end), barrier.code)
        reason = "; ".join(filter(None, (self.reason, barrier.reason)))
        return replace(self, level=lowest(self.level, barrier.level), reason=reason, edits=(*self.edits, insert))

    def _use_behind(self, project: Project, module: SourceModule, end: ast.stmt, function: FunctionNode | None) -> str:
        """Where every rank uses the file behind the statement `end`, or may: its path is given to others. "" for nowhere."""
        found = first_use(project, module, end, list(self.writes))
        if found is None and (folders := self._folders(project, module, end)):
            found = first_use(project, module, end, folders)
        verb = "uses" if found is not None else "may read"
        if found is None:
            found = first_use(project, module, end, [replace(w, loosely=True) for w in self.writes])
        if found is not None:
            line = line_of(found.use.call)
            place = f"line {line}" if found.use.module is module else f"{found.use.module.path}:{line}"
            return f"every rank {verb} it in {place}"
        for path in (w.path for w in self.writes if w.path is not None and w.module is module and function is not None):
            assert function is not None
            if out := given_out(function, [path]):
                return f"whoever gets `{out}` may read the file, on every rank"
            if place := returned_to(project, module, function, path):
                return f"`{module.text_of(path)}` is returned, and every rank goes on with it in {place}"
        return ""

    def _folders(self, project: Project, module: SourceModule, end: ast.stmt) -> list[Write]:
        """The folders that `save_pretrained` makes, where no rank has made them above: what the others write there fails."""
        made = [replace(w, act=Act.MAKES) for w in self.writes if w.act is Act.FILLS]
        return not_made_above(project, module, end, made)


def _barrier(project: Project, module: SourceModule, end: ast.stmt, test: str) -> Barrier:
    """In the words of the object that the test asks; a Trainer above `fit` has none."""
    function = module.function_of(end)
    holder, _, asked = test.removesuffix("()").rpartition(".")
    if asked == "is_main_process":
        return Barrier(f"{holder}.wait_for_everyone()", _SAFE)
    if asked == "is_global_zero" and last(holder) == "fabric":
        return Barrier(f"{holder}.barrier()", _SAFE)
    if asked == "is_world_process_zero" and "state" not in holder:
        assumes = "assumes a trainer of transformers with an accelerator"
        return Barrier(f"{holder}.accelerator.wait_for_everyone()", _UNSAFE, assumes)
    made = barrier_for(project, module, end, function)
    if asked in ("is_global_zero", "rank") and holder and ".strategy.barrier" not in made.code:
        above = [c for c in module.calls_named("fit") if module.function_of(c) is function and c.lineno < end.lineno]
        if asked == "is_global_zero" and above:
            return Barrier(f"{holder}.strategy.barrier()", _UNSAFE, "assumes Lightning 1.6 or newer, which has trainer.strategy")
        return Barrier("", _DISPLAY, "before fit() a barrier is silently nothing")
    return made


def judged(
    project: Project, module: SourceModule, saves: Sequence[Save], block: Sequence[ast.stmt], way: Way, *,
    waits_in_callee: bool = False,
) -> Judgement:  # fmt: skip
    """waits_in_callee: the call that stores lets one process write by itself, and asks for the state on all of them."""
    if not waits_in_callee:
        if waits := _collective_in(project, module, block):
            return Judgement(told=f"{waits} waits for every rank: call it before, on all of them, and write on rank 0")
        if _is_sharded(saves, block, module, way):
            return Judgement(
                told="the model may be sharded, and asking for its state is a collective then: ask on every rank, write on rank 0"
            )
        if _may_be_sharded(module, saves, block) and (job := sharded_by(project, module.path)):
            return Judgement(told=_told_of_shards(module, saves, job))
    if runs := _forward_in(project, module, block):
        return Judgement(told=runs)
    if filled := next(filter(None, (read_back(project, module, s.stored) for s in saves)), ""):
        told = f"what is stored is read from {filled}: rank 0 may find it incomplete; put a barrier above the reading first"
        return Judgement(told=told)
    values = [v for s in saves for v in _values(project, module, s)]
    if any(is_own_part(project, module, s) for s in saves):
        return Judgement(told="gather the parts on every rank and write on rank 0, or put the rank into the name", parts=True)
    if trains_own_models(project, way.frames[-1][0].path) and any(_is_state(module, s) for s in saves):
        return Judgement(told=_OWN_MODELS)
    if any(v.differs and v.cause is Cause.DATA for v in values) and not any(_is_state(module, s) for s in saves):
        return Judgement(told="what is stored is this rank's own: gather it on every rank, then write on rank 0")
    if any(v.cause is not Cause.SAME for v in values) and any(is_named_by_an_item(module, s.path) for s in saves):
        return Judgement(told=OWN_ITEMS)
    level, reason = _level(project, module, saves, block, values, waits_in_callee=waits_in_callee)
    writes = tuple(
        Write(Act.FILLS if s.pretrained else Act.WRITES, known, module, s.call, module.text_of(s.path), s.path)
        for s in saves if (known := forms(module, s.path))
    )  # fmt: skip
    return Judgement(level, reason, writes=writes)


def _level(
    project: Project, module: SourceModule, saves: Sequence[Save], block: Sequence[ast.stmt], values: Sequence[Value], *,
    waits_in_callee: bool,
) -> tuple[Applicability, str]:  # fmt: skip
    rest = effects_of(project, module, block).besides() if not waits_in_callee else ()
    if rest:
        return _UNSAFE, f"assumes that no other rank needs what else is done there ({rest[0].phrase})"
    if any(_OF_A_NODE.search(origin_text(module, s.path)) for s in saves):
        return _UNSAFE, "assumes that the nodes share the disk on which it lies"
    unknown = [] if all(v.cause is Cause.SAME for v in values) else _unknown(module, block)
    if not unknown and not waits_in_callee and _may_be_sharded(module, saves, block):
        return _UNSAFE, "assumes that no configuration shards the model (FSDP, DeepSpeed): its state is a collective then"
    if not unknown:
        return _of_an_unknown_kind(project, module, saves)
    return _UNSAFE, f"assumes that {', '.join(unknown[:3])} is the same on every rank"


def _of_an_unknown_kind(project: Project, module: SourceModule, saves: Sequence[Save]) -> tuple[Applicability, str]:
    """A method of that name that nobody knows may write one part on each rank, and wait for all of them."""
    models = (s for s in saves if s.pretrained and not _NO_MODEL.search(module.text_of(s.stored)))
    for save in models:
        if not is_stored_whole(project, module, save.stored):
            written = module.text_of(save.call.func)
            return _UNSAFE, f"assumes that `{written}` stores all of it, and does not wait for the other ranks"
    return _SAFE, ""


def _unknown(module: SourceModule, block: Sequence[ast.stmt]) -> list[str]:
    """The names that are not shown to be the same, but for those whose `state_dict()` DDP keeps equal."""
    kept = [n for s in block for n in walk(s) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)
            and n.func.attr in ("state_dict", "save_pretrained") and not _OWN_STATE.search(module.text_of(n.func))]  # fmt: skip
    roots = {id(n) for c in kept for n in walk(c.func)}
    names = [n for s in block for n in walk(s) if isinstance(n, (ast.Name, ast.Attribute)) and id(n) not in roots]
    left = {dotted(n) for n in names}
    return [n for n in same_everywhere(module, block) if n.partition(".")[0] not in module.imports and n in left]


def _may_be_sharded(module: SourceModule, saves: Sequence[Save], block: Sequence[ast.stmt]) -> bool:
    """True where a launcher's configuration decides over it, and the statement itself asks for the state of a model."""
    if not _CONFIGURED.search(module.data):
        return False
    asked = any(".state_dict(" in module.text_of(s) for s in block)
    return asked or any(s.pretrained and not _NO_MODEL.search(module.text_of(s.stored)) for s in saves)


def _told_of_shards(module: SourceModule, saves: Sequence[Save], job: str) -> str:
    """What to do where a command of the repository shards the model."""
    stored = next((module.text_of(s.stored) for s in saves if s.pretrained), "")
    holder, _, end = stored.rpartition(".")
    trainer = end == "model" and module.holds(b"Trainer")
    way = f"call `{holder}.save_model()` on every rank" if trainer and holder else "ask on every rank, write on rank 0"
    return f"{job} shards the model, and asking for its state is a collective then, which rank 0 alone would wait in: {way}"


def _values(project: Project, module: SourceModule, save: Save) -> list[Value]:
    """What is known of the path and of what is stored."""
    analysis = variance(project)
    path = analysis.argument(module, save.call, save.index)
    return [path] if save.pretrained else [path, analysis.argument(module, save.call, 0)]


def _is_state(module: SourceModule, save: Save) -> bool:
    """True for what holds a model, an optimizer or settings, whatever else is in it."""
    return save.pretrained or _STATE.search(origin_text(module, save.stored)) is not None


def _forward_in(project: Project, module: SourceModule, block: Sequence[ast.stmt]) -> str:
    """Why `torch.onnx.export(model, …)` cannot be left to rank 0: it runs the forward, and the model may be the DDP wrapper."""
    for call in (n for s in block for n in walk(s) if isinstance(n, ast.Call) and n.args):
        model = call.args[0]
        if qualified(module, call.func) not in RUNS_THE_MODEL or not project.files_containing(b"DistributedDataParallel"):
            continue
        handed_over = isinstance(model, ast.Name) and is_parameter(module, model.id, model)
        if handed_over or may_hold(project, module, model, {}) is not None:
            text = module.text_of(model)
            return (
                f"{module.text_of(call.func)}(…) runs the forward of `{text}`, and the one of a DDP wrapper waits for the other "
                f"ranks: on rank 0, hand it `{text}.module`"
            )
    return ""


def _collective_in(project: Project, module: SourceModule, block: Sequence[ast.stmt]) -> str:
    for node in (n for s in block for n in walk(s)):
        if isinstance(node, ast.Attribute) and (read := collective_at(module, node, project)) is not None:
            return read.text
        if isinstance(node, ast.Call):
            found = collective_at(module, node, project)
            if (found is not None and not found.grouped) or last(dotted(node.func)) in _ASKS_ALL:
                return f"{module.text_of(node.func)}()"
            if found is None and last(dotted(node.func)) not in ("save", "save_pretrained") and reached_by(project, module, node):
                return f"{module.text_of(node.func)}()"
    for effect in effects_of(project, module, block).of(Kind.COLLECTIVE):
        return effect.text
    return ""


def _is_sharded(saves: Sequence[Save], block: Sequence[ast.stmt], module: SourceModule, way: Way) -> bool:
    """True where the files on the way speak of a sharded model, and the statement itself asks for its state."""
    at = block[0]
    if not any(_SHARDED.search(without_kinds_left_out(module, home.data, at)) for home, _ in way.frames):
        return False
    if all(is_an_average(module, s.stored) for s in saves):
        return False
    text = " ".join(module.text_of(s) for s in block)
    asked = "state_dict(" in text or any(s.pretrained and not _NO_MODEL.search(module.text_of(s.stored)) for s in saves)
    return asked or any("state_dict(" in home.text_of(home.statement_of(node)) for home, node in way.frames)
