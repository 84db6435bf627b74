"""DDP904: a training whose learning rate stands in no log."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import ClassSite, Role, class_facts
from codemods.analysis.distribution import is_test_file
from codemods.analysis.importing import imported_files
from codemods.analysis.names import family, last, qualified
from codemods.analysis.trainer.references import binding_scope, bindings
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Finding, InsertAfter, InsertBefore, ReplaceExpression, SetKeyword
from codemods.files.source import SourceModule
from codemods.rewriting.imports import plan_beside
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

MONITOR = "LearningRateMonitor"
HOOK = "on_train_epoch_start"
# The learning rate is logged or shown already: by the monitor, by a key, or by hand; the setting alone is no schedule.
_SHOWN = lazy(
    rb"LearningRateMonitor|LearningRateFinder|log(?:_dict)?\(\s*[\"'{fF]+[^\n]*(?:\blr\b|learning_rate)|"
    rb"(?:print|info|log)\([^\n]*(?:[\[\"']lr\b|\bcurrent_lr\b|get_last_lr|param_groups)"
)
_LINE = """\
if self.trainer.is_global_zero:
    print(f"epoch {self.current_epoch}: learning rate {self.trainer.optimizers[0].param_groups[0]['lr']:.3g}")"""


@record
class NoPlace:
    """Why the learning rate cannot be logged there."""

    why: str


class LearningRateLog(DdpCodemod):
    """A Lightning training that logs no learning rate.

    ## What it does
    Adds `LearningRateMonitor(logging_interval="epoch")` to the callbacks of a `Trainer` that has a logger: into the list that
    stands there, or as one. Where the Trainer has `logger=False`, one line at the start of each epoch, printed by rank 0, in the
    module's `on_train_epoch_start`, merged into the hook that stands.

    ## Why it matters
    Going to several processes changes the effective batch, the number of steps and so the schedule. Without the learning rate in
    the log nobody sees that it warms up for too long or falls too early.

    ## Example
    ```python
    import lightning.pytorch as pl
    from lightning.pytorch.callbacks import ModelCheckpoint


    def train(model, data):
        trainer = pl.Trainer(devices=2, callbacks=[ModelCheckpoint()])
        trainer.fit(model, data)
    ```

    ## Use instead
    ```python
    import lightning.pytorch as pl
    from lightning.pytorch.callbacks import LearningRateMonitor, ModelCheckpoint


    def train(model, data):
        trainer = pl.Trainer(devices=2, callbacks=[ModelCheckpoint(), LearningRateMonitor(logging_interval="epoch")])
        trainer.fit(model, data)
    ```

    ## Safety
    Never made unless asked for: `--select tuning`, or `ddpfix tune`. Safe: the monitor writes through the logger on rank 0,
    issues no collective and works without a scheduler; its key is `lr-` and the optimizer's name, which nobody else has. The
    line is under a test for rank 0 and reads nothing that the ranks would have to agree on.

    ## Refuses
    - the learning rate is logged or printed already, anywhere in what the script imports: nothing is said
    - the logger is a variable, which may be off: `LearningRateMonitor` then ends the run with a MisconfigurationException
    - the callbacks are made by a call or come from elsewhere
    - `barebones=True` or `fast_dev_run=True`
    - without a logger: the script imports no module of its own with a `training_step`, or several

    ## References
    `LearningRateMonitor` of Lightning 2.6.6: rank 0, through the logger, with an error where there is none. Two-process runs.
    """

    code = "DDP904"
    severity = "noise"
    subject = "Log the learning rate"
    must_show = "The log has a value of the learning rate for each epoch, once and not once for each process."
    printed = ("Cannot use `LearningRateMonitor` callback with `Trainer` that has no logger",)
    TRIGGERS = ((b"Trainer(",), (b"lightning",), (b".fit(",))
    READS_TESTS = False
    opt_in = True

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_file(module.path):
            return
        for call in module.calls_named("Trainer"):
            name = qualified(module, call.func)
            if family(name) != "lightning" or last(name) != "Trainer" or _is_shown(project, module):
                continue
            given = {k.arg: k.value for k in call.keywords}
            made = _place(project, module, call, given)
            message = "the learning rate of this training stands in no log"
            if isinstance(made, NoPlace):
                yield self.finding(module, call, message, reason=made.why)
            else:
                yield self.finding(module, call, message, level=Applicability.SAFE, edits=made)


def _is_shown(project: Project, module: SourceModule) -> bool:
    return any(_SHOWN.search(project.read(path) or b"") for path in imported_files(project, module))


def _place(
    project: Project, module: SourceModule, call: ast.Call, given: dict[str | None, ast.expr]
) -> tuple[Edit, ...] | NoPlace:
    if None in given:
        return NoPlace("what stands behind ** may give a logger and callbacks")
    for name in ("barebones", "fast_dev_run"):
        if name in given and not (isinstance(given[name], ast.Constant) and not _constant(given[name])):
            return NoPlace(f"{name} is given, with which nothing is logged")
    logger = given.get("logger")
    if isinstance(logger, ast.Constant):
        return _monitored(module, call, given) if logger.value is True else _printed(project, module)
    if logger is None or (isinstance(logger, ast.Call) and last(qualified(module, logger.func)).endswith("Logger")):
        return _monitored(module, call, given)
    return NoPlace(f"whether there is a logger is not shown: {module.text_of(logger)}; without one the monitor ends the run")


def _constant(node: ast.expr) -> object:
    return node.value if isinstance(node, ast.Constant) else None


def _monitored(module: SourceModule, call: ast.Call, given: dict[str | None, ast.expr]) -> tuple[Edit, ...] | NoPlace:
    planned = plan_beside(module, "lightning", lambda flavour: (f"{flavour}.callbacks", MONITOR))
    if planned is None:
        return NoPlace("no import shows which of the Lightning packages this file uses")
    monitor = f'{planned.name}(logging_interval="epoch")'
    callbacks = given.get("callbacks")
    if callbacks is None or (isinstance(callbacks, ast.Constant) and callbacks.value is None):
        return (SetKeyword(module.path, module.span(call), "callbacks", f"[{monitor}]"), *planned.edits)
    listed = _list_of(module, callbacks)
    if listed is None:
        return NoPlace(f"the callbacks are made elsewhere: {module.text_of(callbacks)}; add LearningRateMonitor there")
    return (ReplaceExpression(module.path, module.span(listed), _with(module, listed, monitor)), *planned.edits)


def _list_of(module: SourceModule, value: ast.expr) -> ast.List | None:
    """The list literal that the argument is, or that its name is bound to, once."""
    if isinstance(value, ast.Name):
        bound = bindings(module, value.id, binding_scope(module, value))
        made = bound[0] if len(bound) == 1 else None
        value = made.value if isinstance(made, ast.Assign) and len(made.targets) == 1 else value
    return value if isinstance(value, ast.List) else None


def _with(module: SourceModule, listed: ast.List, element: str) -> str:
    """The list's own text with one element more, in its layout."""
    text = module.text_of(listed)
    if not listed.elts:
        return f"[{element}]"
    behind = module.text_of(listed.elts[-1])
    at = text.rindex(behind) + len(behind)
    tail = text[at:]
    if "\n" not in text:
        return f"{text[:at]}, {element}]"
    line = module.lines[listed.elts[-1].lineno - 1]
    indent = line[: len(line) - len(line.lstrip())]
    comma = "" if tail.lstrip().startswith(",") else ","
    newline = "\r\n" if "\r\n" in tail else "\n"
    body, _, closing = tail.rpartition(newline)
    return f"{text[:at]}{comma}{body}{newline}{indent}{element},{newline}{closing}"


# Without a logger


def _printed(project: Project, module: SourceModule) -> tuple[Edit, ...] | NoPlace:
    sites = []
    for path in sorted(imported_files(project, module)):
        other = project.module(path)
        for owner in other.nodes(ast.ClassDef) if other is not None else ():
            if other is not None and "training_step" in other.methods_of(owner):
                if class_facts(project, other, owner).is_a(Role.LIGHTNING_MODULE):
                    sites.append(ClassSite(other, owner))
    if len(sites) != 1:
        many = "several modules train here" if sites else "no module of the project trains here"
        return NoPlace(f"the Trainer has no logger, and {many}: print the learning rate at the start of an epoch by hand")
    return (_line_in(project, sites[0]),)


def _line_in(project: Project, site: ClassSite) -> Edit:
    module, methods = site.module, site.module.methods_of(site.node)
    if hook := methods.get(HOOK):
        first = next((s for s in hook.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))), hook.body[-1])
        return InsertBefore(module.path, module.span(first), _LINE)
    facts = class_facts(project, module, site.node)
    bases = [s for s in facts.lineage if s.node is not site.node and HOOK in s.methods()]
    body = "\n".join(f"    {line}" for line in _LINE.splitlines())
    base = f"    super().{HOOK}()\n" if bases else ""
    return InsertAfter(module.path, module.span(methods["training_step"]), f"\ndef {HOOK}(self):\n{base}{body}")
