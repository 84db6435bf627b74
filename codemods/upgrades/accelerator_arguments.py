"""DDP806: arguments and properties of the Accelerator that are gone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.accelerators import Made, is_accelerator
from codemods.analysis.distribution import is_test_module
from codemods.analysis.literals import is_true
from codemods.analysis.loading.prepared_loaders import prepares_loaders
from codemods.analysis.names import qualified
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.analysis.trainer.accelerate_upgrade import accelerate_standing
from codemods.analysis.trainer.lightning_trainers import Change, literal_text
from codemods.analysis.trainer.lightning_upgrade import Standing, is_tried
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import DropKeyword, Edit, Finding, RenameKeyword, ReplaceExpression, lowest
from codemods.data.accelerate_names import ARGUMENTS, CONFIGURATION, FP16, OF_LOADERS, USE_FP16, Gone
from codemods.files.source import SourceModule
from codemods.rewriting.imports import Planned, in_scope, plan_beside
from codemods.store.project import Project

_PLAIN = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)
_OF_ALL = "assumes that the batch size is that of all processes together, as it was before"


class AcceleratorArguments(DdpCodemod):
    """An argument or a property of the Accelerator that is gone in the versions of Accelerate that the project allows.

    ## What it does
    Writes `Accelerator(logging_dir=…)` as `project_dir=`, `fp16=` as `mixed_precision=`, and puts `split_batches`,
    `even_batches`, `dispatch_batches` and `use_seedable_sampler` into `dataloader_config=DataLoaderConfiguration(…)`. Writes
    `accelerator.use_fp16` as `accelerator.mixed_precision != "no"`.

    ## Why it matters
    The program ends where it makes its Accelerator: `TypeError: Accelerator.__init__() got an unexpected keyword argument`.
    `split_batches=True` is taken in silence from 1.0 on, and ignored: each process takes batches of the size that was meant for
    all of them, and an epoch has fewer steps.

    ## Example
    ```python
    # requirements.txt: accelerate>=1.0
    from accelerate import Accelerator


    def make(folder):
        return Accelerator(logging_dir=folder, even_batches=False)
    ```

    ## Use instead
    ```python
    # requirements.txt: accelerate>=1.0
    from accelerate import Accelerator, DataLoaderConfiguration


    def make(folder):
        return Accelerator(project_dir=folder, dataloader_config=DataLoaderConfiguration(even_batches=False))
    ```

    ## Safety
    Safe: every version that the nearest pin allows has the new spelling. Unsafe: nothing pins Accelerate, or the pin allows
    versions on both sides; `split_batches`, whose batches get smaller again.

    ## Refuses
    - an upper bound or an exact pin below the change, or a Python that has no Accelerate with it: nothing is said
    - a call in a `try` that catches TypeError, a property in one that catches AttributeError, or under a test of a version:
      nothing is said
    - `split_batches=False`, which is the default, and `split_batches` where no loader is seen to be prepared, or one of single
      samples: nothing is said
    - heirs of the Accelerator, and arguments in a dictionary behind `**`: nothing is said
    - the new argument is given as well, or may be, behind `**`
    - `fp16=` with a value that is put together from others
    - says nothing in a repository's own tests, and of code that no program runs

    ## References
    The parameters of the Accelerator in the wheels of Accelerate 0.10 to 1.15; a run of 1.15 with `split_batches=True`.
    """

    code = "DDP806"
    severity = "crash"
    subject = "Call the Accelerator's arguments as Accelerate calls them now"
    must_show = "The program makes its Accelerator with the version of Accelerate that is installed."
    printed = ("Accelerator.__init__() got an unexpected keyword argument", "object has no attribute 'use_fp16'")
    TRIGGERS = (
        (b"ccelerate", b"ccelerator"),
        (*(name.encode() for name in ARGUMENTS if name != FP16.name), b"fp16"),
    )
    READS_TESTS = False

    @classmethod
    def appendix(cls) -> str:
        """The table."""
        head = ["## The names", "", "| name | from | | now | since |", "|" + " --- |" * 5]
        rows = [
            f"| `{g.name}` | {_v(g.gone)} | {'ignored' if g.ignored else 'error'} | `{g.new}` | {_v(g.since)} |"
            for g in (*ARGUMENTS.values(), USE_FP16)
        ]
        return "\n".join([*head, *rows])

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        for call in module.calls_named("Accelerator"):
            name = qualified(module, call.func)
            if not name.startswith("accelerate.") or not ARGUMENTS.keys() & {k.arg for k in call.keywords}:
                continue
            if is_tried(module, call, "TypeError") or is_run_by_nobody(project, module, call):
                continue
            made = Made(module, call)
            for keyword in call.keywords:
                if (row := ARGUMENTS.get(keyword.arg or "")) is not None and row.name not in OF_LOADERS:
                    yield from self._argument(module, project, made, keyword, row)
            yield from self._of_loaders(module, project, made)
        yield from self._reads(module, project)

    def _argument(self, module: SourceModule, project: Project, made: Made, keyword: ast.keyword, row: Gone) -> Iterator[Finding]:
        """`logging_dir=` and `fp16=`."""
        known = accelerate_standing(project, module.path, keyword, since=row.since, gone=row.gone)
        if known is None:
            return
        message = f"`{row.name}` is no argument of the Accelerator from {_v(row.gone)} on"
        yield self._judged(module, keyword.value, message, _changed(module, made, keyword, row), known)

    def _of_loaders(self, module: SourceModule, project: Project, made: Made) -> Iterator[Finding]:
        """Those that are told the loaders' configuration now, in one finding."""
        given = [(k, OF_LOADERS[k.arg]) for k in made.call.keywords if k.arg is not None and k.arg in OF_LOADERS]
        lost = [(k, row) for k, row in given if not row.ignored or literal_text(k.value) not in row.idle]
        if not lost or (all(row.ignored for _, row in lost) and not prepares_loaders(project, module.path)):
            return
        first, row = lost[0]
        known = accelerate_standing(project, module.path, first, since=row.since, gone=row.gone)
        if known is None:
            return
        errors = [f"`{r.name}`" for _, r in lost if not r.ignored]
        ignored = [f"`{r.name}`" for _, r in lost if r.ignored]
        parts = [f"{_are(errors)} of the Accelerator from {_v(row.gone)} on"] if errors else []
        if ignored:
            where = "" if errors else f" from {_v(row.gone)} on"
            parts.append(f"the Accelerator ignores {ignored[0]}{where}: each process has batches of the size meant for all")
        change = _configured(module, made, lost)
        yield self._judged(module, first.value, "; ".join(parts), change, known, "" if errors else "data")

    def _reads(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        """`accelerator.use_fp16`."""
        for node in module.reads_of(USE_FP16.name):
            if not isinstance(node, ast.Attribute) or not is_accelerator(project, module, node.value):
                continue
            if is_tried(module, node, "AttributeError") or is_run_by_nobody(project, module, node):
                continue
            known = accelerate_standing(project, module.path, node, since=USE_FP16.since, gone=USE_FP16.gone)
            if known is None:
                continue
            code = f'{module.text_of(node.value)}.mixed_precision != "no"'
            edit = ReplaceExpression(module.path, module.span(node), code)
            message = f"the Accelerator has no `use_fp16` from {_v(USE_FP16.gone)} on"
            yield self._judged(module, node, message, Change((edit,)), known)

    def _judged(
        self, module: SourceModule, at: ast.AST, message: str, change: Change, known: Standing, lowered: str = ""
    ) -> Finding:
        level = lowest(change.level, known.level)
        reason = change.reason if change.refusals else "; ".join(r for r in (known.assumes, change.reason) if r)
        return self.finding(
            module, at, message, level=level, edits=change.edits, evidence=known.evidence, reason=reason,
            severity="data" if lowered else "",
        )  # fmt: skip


def _changed(module: SourceModule, made: Made, keyword: ast.keyword, row: Gone) -> Change:
    span, value = module.span(made.call), literal_text(keyword.value)
    if value in row.idle:
        return Change((DropKeyword(module.path, span, row.name),))
    if row is FP16 and value is None and not isinstance(keyword.value, _PLAIN):
        return Change((), refusals=(f'write it as {row.new}=: "fp16", or None',))
    if made.keyword(row.new) is not None or (row is not FP16 and made.keyword("project_config") is not None):
        both = "put both into project_config=ProjectConfiguration(project_dir=…, logging_dir=…)"
        return Change((), refusals=(f"{row.new} is given as well" if row is FP16 else both,))
    if made.may_hold(row.new, "project_config"):
        return Change((), refusals=(f"the options behind `**` may give {row.new} as well",))
    edits: list[Edit] = [RenameKeyword(module.path, span, row.name, row.new)]
    if row is FP16:
        wanted = '"fp16"' if is_true(keyword.value) else f'"fp16" if {module.text_of(keyword.value)} else None'
        edits.append(ReplaceExpression(module.path, module.span(keyword.value), wanted))
    return Change(tuple(edits))


def _configured(module: SourceModule, made: Made, given: list[tuple[ast.keyword, Gone]]) -> Change:
    """The arguments in a `DataLoaderConfiguration` in the place of the first of them."""
    if made.keyword("dataloader_config") is not None or made.may_hold("dataloader_config"):
        return Change((), refusals=("put it into the DataLoaderConfiguration that dataloader_config= is given",))
    span = module.span(made.call)
    kept = [(k, row) for k, row in given if literal_text(k.value) not in row.idle]
    if not kept:
        return Change(tuple(DropKeyword(module.path, span, row.name) for _, row in given))
    planned = _configuration(module)
    if planned is None:
        return Change((), refusals=(f"hand it over in dataloader_config={CONFIGURATION}(…)",))
    first, row = kept[0]
    options = ", ".join(f"{r.name}={module.text_of(k.value)}" for k, r in kept)
    edits: list[Edit] = [
        *planned.edits,
        RenameKeyword(module.path, span, row.name, row.new),
        ReplaceExpression(module.path, module.span(first.value), f"{planned.name}({options})"),
        *(DropKeyword(module.path, span, r.name) for k, r in given if k is not first),
    ]
    return Change(tuple(edits), (_OF_ALL,) if any(r.ignored for _, r in kept) else ())


def _configuration(module: SourceModule) -> Planned | None:
    names = (f"accelerate.{CONFIGURATION}", f"accelerate.utils.{CONFIGURATION}")
    if name := in_scope(module, lambda dotted: dotted in names):
        return Planned(name)
    return plan_beside(module, "accelerate", lambda _: ("accelerate", CONFIGURATION))


def _are(names: list[str]) -> str:
    return f"{names[0]} is no argument" if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]} are no arguments"


def _v(version: tuple[int, int]) -> str:
    return f"Accelerate {'.'.join(map(str, version))}"
