"""DDP903: flags of Lightning that cost time in every step or epoch."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file
from codemods.analysis.importing import imported_files
from codemods.analysis.names import family, last, qualified
from codemods.analysis.trainer.metric_obstacles import nearby
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Finding, SetKeyword
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

LOG_EVERY = 10
_STEPS_READ = lazy(rb"log_every_n_steps(?!\s*=)")
# What hands something on to the data set of the process that trains: workers that stay keep their old copy.
_CHANGES_DATA = lazy(
    rb"\.set_epoch\(|\.dataset\.\w+\s*=[^=]|\b(?:train_set|train_dataset|trainset|dataset)\.(?:set|update|resize|grow|shuffle)\w*\(|"
    rb"reload_dataloaders_every_n_epochs|update_resolution"
)
_TOUCHES_GRADIENTS = lazy(rb"\.grad\.detach_\(|\.grad\s*=[^=]|automatic_optimization\s*=\s*False|ddp_comm_hook")


class LightningSpeedFlags(DdpCodemod):
    """Flags of Lightning's Trainer, its strategy and its loaders that cost time in every step or epoch.

    ## What it does
    `log_every_n_steps` below 10 becomes 10. A `DataLoader` with workers of a Lightning script gets `persistent_workers=True`. A
    `DDPStrategy` that is written out gets `gradient_as_bucket_view=True`.

    ## Why it matters
    Each logging of a step waits for the device. Without persistent workers every epoch starts its processes anew. Without the
    view each gradient is kept twice.

    ## Example
    ```python
    import lightning.pytorch as pl


    def train(model, data):
        trainer = pl.Trainer(devices=2, log_every_n_steps=1)
        trainer.fit(model, data)
    ```

    ## Use instead
    ```python
    import lightning.pytorch as pl


    def train(model, data):
        trainer = pl.Trainer(devices=2, log_every_n_steps=10)
        trainer.fit(model, data)
    ```

    ## Safety
    Never made unless asked for: `--select tuning`, or `ddpfix tune`. Safe: logging less often; what is reduced with
    `sync_dist=True` in a step still is. Unsafe: persistent workers, which keep the data set as it was when they started, and the
    view, which some optimizers of one's own do not put up with. Bucket sizes, `static_graph` and numerics are left alone.

    ## Refuses
    - persistent workers where something changes the data set between epochs (`dataset.set_epoch`, a resolution that grows,
      `reload_dataloaders_every_n_epochs`), and without workers, where torch raises a ValueError
    - the view where code replaces or detaches gradients, optimizes by hand or registers a communication hook
    - `log_every_n_steps` that other code reads
    - a value that is no literal, and arguments behind `**`: nothing is said

    ## References
    Two-process runs on Lightning 2.6.6 and torch 2.13: the same weights with the view; "Can't detach views in-place" where
    gradients are detached.
    """

    code = "DDP903"
    severity = "noise"
    subject = "Set the flags that cost time in every step"
    must_show = "An epoch comes to the same weights, and the second epoch sees the data that it is meant to see."
    printed = ("persistent_workers option needs num_workers > 0", "Can't detach views in-place")
    TRIGGERS = ((b"lightning",), (b"log_every_n_steps", b"DataLoader(", b"DDPStrategy("))
    READS_TESTS = False
    opt_in = True

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_file(module.path) or not any(family(i.dotted) == "lightning" for f in module.imports.values() for i in f):
            return
        for call in module.calls_named("Trainer", "DataLoader", "DDPStrategy"):
            given = {k.arg: k.value for k in call.keywords}
            name = last(qualified(module, call.func))
            if None in given:
                continue
            if name == "Trainer" and family(qualified(module, call.func)) == "lightning":
                yield from self._log(module, project, call, given)
            elif name == "DataLoader":
                yield from self._workers(module, project, call, given)
            elif name == "DDPStrategy" and "gradient_as_bucket_view" not in given:
                yield from self._view(module, project, call)

    def _log(
        self, module: SourceModule, project: Project, call: ast.Call, given: dict[str | None, ast.expr]
    ) -> Iterator[Finding]:
        now = given.get("log_every_n_steps")
        if not isinstance(now, ast.Constant) or type(now.value) is not int or not 0 < now.value < LOG_EVERY:
            return
        message = f"log_every_n_steps={now.value}: each logging of a step waits for the device; {LOG_EVERY} does so less often"
        if place := _first(project, imported_files(project, module), _STEPS_READ):
            yield self.finding(module, call, message, reason=f"{place} reads it as well")
            return
        edit = SetKeyword(module.path, module.span(call), "log_every_n_steps", str(LOG_EVERY))
        yield self.finding(module, call, message, level=Applicability.SAFE, edits=[edit])

    def _workers(
        self, module: SourceModule, project: Project, call: ast.Call, given: dict[str | None, ast.expr]
    ) -> Iterator[Finding]:
        workers = given.get("num_workers")
        there = isinstance(workers, ast.Constant) and type(workers.value) is int and workers.value > 0
        if not there or "persistent_workers" in given:
            return
        message = "the workers of this loader are started anew for each epoch"
        if place := _first(project, nearby(project, module), _CHANGES_DATA):
            why = f"{place} changes the data between epochs, of which workers that stay would not hear"
            yield self.finding(module, call, message, reason=why)
            return
        edit = SetKeyword(module.path, module.span(call), "persistent_workers", "True")
        why = "assumes that nothing changes the data set between epochs, and that there are several"
        yield self.finding(module, call, message, level=Applicability.UNSAFE, edits=[edit], reason=why)

    def _view(self, module: SourceModule, project: Project, call: ast.Call) -> Iterator[Finding]:
        message = "each gradient is kept twice, as itself and in its bucket"
        if place := _first(project, nearby(project, module), _TOUCHES_GRADIENTS):
            yield self.finding(
                module, call, message, reason=f"{place} handles gradients itself, which a view may not put up with"
            )
            return
        edit = SetKeyword(module.path, module.span(call), "gradient_as_bucket_view", "True")
        why = "assumes that the optimizer neither replaces nor detaches gradients"
        yield self.finding(module, call, message, level=Applicability.UNSAFE, edits=[edit], reason=why)


def _first(project: Project, paths: frozenset[str], pattern: re.Pattern[bytes]) -> str:
    for path in sorted(paths):
        data = project.read(path) or b""
        if found := pattern.search(data):
            line = data.count(b"\n", 0, found.start()) + 1
            return f"{path}:{line}"
    return ""
