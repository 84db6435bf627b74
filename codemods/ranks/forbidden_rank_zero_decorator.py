"""DDP206: rank_zero_only on a hook that every rank needs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.class_index import ClassFacts, Role, class_facts
from codemods.analysis.hooks import NEEDED_ON_EVERY_RANK, OBSERVERS
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.output.effect_kinds import FOLDERS
from codemods.analysis.output.effects import Kind, effects_of, effects_of_function, phrases
from codemods.analysis.output.guard_edits import kept_to_zero
from codemods.analysis.output.guard_spelling import guard_for
from codemods.analysis.output.measured_runs import only_measures
from codemods.analysis.output.output_runs import makes_folder, output_runs
from codemods.analysis.ranks.rank_guards import ranks_at
from codemods.analysis.ranks.rank_sets import Ranks
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, DropDecorator, DropImport, Edit, Finding, WrapInGuard
from codemods.data.printed_errors import WAITING
from codemods.files.sites import Site
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_ROLES = (Role.LIGHTNING_MODULE, Role.LIGHTNING_DATA_MODULE, Role.LIGHTNING_CALLBACK)
# What happens where the other ranks leave the hook out. Seen on Lightning 2.6.6 with two processes.
_WRONG = {
    "training_step": "the other ranks return None and Lightning stops with an error (a hang before 2.3)",
    "configure_optimizers": "the other ranks train without an optimizer, and the replicas drift apart in silence",
    "forward": "the other ranks get None instead of the output",
    "prepare_data": "Lightning calls it once on each node already, and the decorator leaves out every node but the first",
    "validation_step": "only rank 0's share of the data is evaluated, and a synced log or metric hangs",
    "test_step": "only rank 0's share of the data is evaluated, and a synced log or metric hangs",
    "predict_step": "the other ranks' predictions are None",
    "setup": "the other ranks lack what it sets",
    "lr_scheduler_step": "the learning rates of the ranks drift apart in silence",
    "optimizer_step": "the other ranks never run the closure, and Lightning stops with an error",
    "load_state_dict": "the other ranks keep the state they started with",
    "on_load_checkpoint": "the other ranks keep the state they started with",
}
_UNSAFE = {
    "prepare_data": "assumes that the nodes do not share the disk, or that writing it again does no harm",
    "validation_step": "every rank then evaluates its own share: what is logged wants sync_dist=True or a metric object",
    "test_step": "every rank then evaluates its own share: what is logged wants sync_dist=True or a metric object",
    "predict_step": "every rank then returns its own share of the predictions",
    "state_dict": "assumes that the state is the same on every rank",
    "load_state_dict": "assumes that the state is the same on every rank",
    "on_load_checkpoint": "assumes that the state is the same on every rank",
    "on_save_checkpoint": "assumes that the state is the same on every rank",
}
# Hooks that may be left to rank 0 as long as they only put something out.
_SOFT = frozenset(
    {"setup", "teardown", "on_fit_start", "on_before_zero_grad", "on_before_backward", "on_after_backward",
     "on_before_optimizer_step"}
)  # fmt: skip
_DOWNLOADS = lazy(r"download|urlretrieve|requests\.|snapshot|wget", re.IGNORECASE)


@record(frozen=False)
class _Place:
    """A decorated hook: the decorator as it is written, and the finding's parts as they become known."""

    function: FunctionNode
    decorator: ast.expr
    level: Applicability
    reason: str
    guards: list[Edit]
    message: str


class ForbiddenRankZeroDecorator(DdpCodemod):
    """`@rank_zero_only` on a hook that every rank needs.

    ## What it does
    Takes `@rank_zero_only` off hooks such as `training_step`, `configure_optimizers`, `setup` and the data loaders. What the
    hook prints or writes goes under a test for rank 0, and an import that nothing else uses is dropped.

    ## Why it matters
    The decorator makes the hook return None on the other ranks. Some hooks then stop with an error or hang; others, such as
    `configure_optimizers`, do it in silence: rank 1 trains without an optimizer and the replicas drift apart.

    ## Example
    ```python
    import torch
    import lightning.pytorch as pl
    from lightning.pytorch.utilities import rank_zero_only


    class Model(pl.LightningModule):
        @rank_zero_only
        def configure_optimizers(self):
            optimizer = torch.optim.Adam(self.parameters())
            print("one optimizer")
            return optimizer
    ```

    ## Use instead
    ```python
    import torch
    import lightning.pytorch as pl


    class Model(pl.LightningModule):
        def configure_optimizers(self):
            optimizer = torch.optim.Adam(self.parameters())
            if self.global_rank == 0:
                print("one optimizer")
            return optimizer
    ```

    ## Safety
    Safe on the training step, the optimizer and learning-rate hooks, `forward`, the data loaders and a `setup` without
    downloads: one process runs the same code, and several are broken as it stands. Unsafe on `prepare_data`, the other steps,
    the hooks of checkpoints, a `setup` that downloads, and where output could not be put under a guard. Unsafe on an observing
    hook that changes what a step reads, where it does nothing else but output.

    ## Refuses
    - Hooks that only observe: there the decorator is right, and so it is where a step reads what they change on rank 0 alone.
      Reported where such a hook changes what a step reads and does more than that, or puts something out that no guard can be
      put round.
    - `on_fit_start`, `teardown`, `setup` and the hooks round the backward pass where they only print, write or log (also into a
      logger's `experiment`), or measure how fast the model runs and leave it in train mode; `on_save_checkpoint` that
      puts nothing into the checkpoint; a `prepare_data` that is empty or only prints.
    - Classes that are not shown to be Lightning's, and other decorators.

    ## References
    Two-process runs on Lightning 2.6.6 of each hook under the decorator: which stop, which hang, which diverge in silence.
    """

    code = "DDP206"
    severity = "crash"
    subject = "Run the hooks that every rank needs on every rank"
    must_show = "Both processes get through the first epoch, and the hook writes each file once."
    printed = ("AttributeError", "Skipping the `training_step` by returning None in distributed training", *WAITING)
    TRIGGERS = ((b"rank_zero_only",), (b"def ",))
    SITES = (Site(rb"@[\w.]*rank_zero_only\b|\brank_zero_only[ \t]+as\b", b"rank_zero_only"),)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        places = [p for f in module.functions if (p := self._place(module, project, f) or self._watcher(module, project, f))]
        fixed = [p for p in places if p.level is not Applicability.DISPLAY]
        drop = _unused_import(module, fixed)
        group = f"DDP206:{module.path}" if drop and len(fixed) > 1 else ""
        for place in places:
            if place.level is Applicability.DISPLAY:
                yield self.finding(module, place.function, place.message, reason=place.reason)
                continue
            text = module.text_of(place.decorator)
            edits = [DropDecorator(module.path, module.span(place.function), text), *place.guards, *drop]
            yield self.finding(
                module, place.function, place.message, level=place.level, edits=edits, reason=place.reason, group=group
            )

    def _place(self, module: SourceModule, project: Project, function: FunctionNode) -> _Place | None:
        decorator = _decorator(module, function)
        owner = module.parent(function)
        if decorator is None or not isinstance(owner, ast.ClassDef) or function.name not in NEEDED_ON_EVERY_RANK:
            return None
        if not any(class_facts(project, module, owner).is_a(r) for r in _ROLES):
            return None
        bare = _without_decorator(module, project, function, decorator)
        if bare is None:
            return None
        free, naked, plain = bare
        effects = effects_of_function(free, naked, plain)
        if function.name in _SOFT and not effects.besides() and not effects.returns:
            return None  # others go on with nothing of it: what it logs through a Trainer's logger is rank 0's already
        if function.name in _SOFT - {"setup"} and only_measures(module, function, effects):
            return None
        if function.name == "prepare_data" and all(e.kind in (Kind.PRINT, Kind.LOG) for e in effects.items):
            return None
        if function.name == "on_save_checkpoint" and not _fills_checkpoint(function):
            return None
        guards, left = _guards(free, naked, plain)
        level, reason = Applicability.SAFE, _UNSAFE.get(function.name, "")
        if function.name == "setup" and _DOWNLOADS.search(module.text_of(function)):
            reason = "assumes that every rank may download: otherwise move the download to prepare_data"
        elif function.name == "teardown":
            reason = "assumes that the other ranks may tear down too"
        unknown = effects.of(Kind.UNKNOWN) if function.name in _SOFT - {"setup"} else ()
        if unknown and not reason:
            reason = f"assumes that every rank may run what it {phrases(unknown)}: it may write a file"
        if left and not reason:
            reason = f"every rank then {left} as well: put that under a guard by hand"
        if reason:
            level = Applicability.UNSAFE
        wrong = _WRONG.get(function.name, "the other ranks leave it out, and what they go on with differs")
        message = f"@{module.text_of(decorator)} on {function.name}: {wrong}"
        return _Place(function, decorator, level, reason, guards, message)

    def _watcher(self, module: SourceModule, project: Project, function: FunctionNode) -> _Place | None:
        """An observing hook under the decorator that changes what a step reads: every rank makes the change then."""
        decorator = _decorator(module, function)
        owner = module.parent(function)
        if decorator is None or not isinstance(owner, ast.ClassDef) or function.name not in OBSERVERS:
            return None
        facts = class_facts(project, module, owner)
        changed = effects_of(project, module, function.body).of(Kind.STATE)
        changed = changed if facts.is_a(Role.LIGHTNING_MODULE) else ()
        read = [(e, r) for e in changed if (r := _step_that_reads(project, facts, e.text))]
        if not read:
            return None
        effect, reader = read[0]
        message = f"{effect.text} is changed in {function.name} on rank 0 only, and {reader} reads it"
        told = "run the change on every rank, and put the output alone under a guard"
        if (bare := _without_decorator(module, project, function, decorator)) is None:
            return _Place(function, decorator, Applicability.DISPLAY, told, [], message)
        guards, left = _guards(*bare)
        effects = effects_of_function(*bare)
        if left or effects.besides(Kind.STATE, Kind.UNKNOWN):
            return _Place(function, decorator, Applicability.DISPLAY, told, [], message)
        unknown = effects.of(Kind.UNKNOWN)
        besides = f", and that every rank may run what it {phrases(unknown)}" if unknown else ""
        reason = f"assumes that the change is meant for every rank{besides}"
        return _Place(function, decorator, Applicability.UNSAFE, reason, guards, message)


def _decorator(module: SourceModule, function: FunctionNode) -> ast.expr | None:
    """The decorator expression, where it is Lightning's under any alias."""
    for decorator in function.decorator_list:
        if last(qualified(module, decorator)) == "rank_zero_only":
            return decorator
    return None


def _without_decorator(
    module: SourceModule, project: Project, function: FunctionNode, decorator: ast.expr
) -> tuple[Project, SourceModule, FunctionNode] | None:
    """The project with the decorator's line left blank, so that every place keeps its position."""
    lines = list(module.lines)
    span = module.span(decorator)
    if span.line != span.end_line or not lines[span.line - 1].lstrip().startswith("@"):
        return None
    text = lines[span.line - 1]
    lines[span.line - 1] = text[len(text.rstrip("\r\n")) :]
    free = project.with_overlay({module.path: module.mark + "".join(lines).encode(module.encoding)})
    naked = free.module(module.path)
    if naked is None:
        return None
    plain = next((f for f in naked.functions if f.name == function.name and f.lineno == function.lineno), None)
    return (free, naked, plain) if plain is not None else None


def _guards(project: Project, module: SourceModule, function: FunctionNode) -> tuple[list[Edit], str]:
    """(edits that keep the hook's output on rank 0, what of it they do not cover)."""
    guards: list[Edit] = []
    held: set[int] = set()
    for run in output_runs(project, module, function, lambda s: not makes_folder(module, s)):
        spelled = guard_for(project, module, run.first)
        if spelled is None or spelled.assumes or function.name == "prepare_data":
            continue
        guards += kept_to_zero(project, module, run, spelled).edits
        held |= set(range(run.first.lineno, (run.last.end_lineno or run.last.lineno) + 1))
    inside = range(function.lineno, (function.end_lineno or function.lineno) + 1)
    output = effects_of_function(project, module, function).output
    output = tuple(e for e in output if e.called not in FOLDERS)
    left = [e for e in output if e.kind is not Kind.TRACKER and not (e.line in inside and e.line in held)]
    left = [e for e in left if not (e.line not in inside and guards)]
    return guards, phrases(left, 2)


def _fills_checkpoint(function: FunctionNode) -> bool:
    """True where the hook puts something into the checkpoint it is handed; otherwise it may be there for its output."""
    handed = {a.arg for a in function.args.args[1:]}
    for node in walk(function):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and dotted(node.value) in handed:
            return True
        if isinstance(node, ast.Call) and last(dotted(node.func)) in ("update", "setdefault"):
            if dotted(node.func).partition(".")[0] in handed:
                return True
    return False


def _step_that_reads(project: Project, facts: ClassFacts, text: str) -> str:
    """A step of the class that reads or fills `self.x` on a rank where the decorated hook leaves it as it was."""
    for site in facts.lineage:
        for name, function in site.methods().items():
            if name not in NEEDED_ON_EVERY_RANK or not name.endswith("_step"):
                continue
            used = [n for n in walk(function) if isinstance(n, ast.Attribute) and dotted(n) == text]
            decorated = _decorator(site.module, function) is not None  # which goes, too: then every rank makes the step
            if used and (decorated or any(ranks_at(site.module, n, project=project) is not Ranks.ZERO for n in used)):
                return name
    return ""


def _unused_import(module: SourceModule, places: list[_Place]) -> list[Edit]:
    """The edit that drops the import, where these decorators are all that uses it."""
    if not places or len({p.level for p in places}) > 1:
        return []
    name = dotted(places[0].decorator)
    found = module.imports.get(name, [])
    dropped = {id(n) for p in places for n in walk(p.decorator)}
    used = [n for n in module.nodes(ast.Name) if n.id == name and id(n) not in dropped]
    tests = [e.test for p in places for e in p.guards if isinstance(e, WrapInGuard)]
    exported = any(isinstance(c.value, str) and c.value == name for c in module.nodes(ast.Constant))
    if len(found) != 1 or used or exported or any(dotted(p.decorator) != name for p in places):
        return []
    if any(name in t for t in tests) or not module.is_whole(found[0].node):
        return []
    if not isinstance(module.parent(found[0].node), ast.Module):
        return []
    return [DropImport(module.path, module.span(found[0].node), name)]
