"""DDP804: hooks of Lightning 1 that are handed the outputs of an epoch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import ClassSite, Role, class_facts
from codemods.analysis.distribution import is_test_file
from codemods.analysis.trainer.epoch_outputs import NEW_NAMES, new_hook
from codemods.analysis.trainer.lightning_upgrade import is_tried, standing
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Finding, lowest
from codemods.data.lightning_names import ALWAYS, V2
from codemods.files.source import SourceModule
from codemods.store.project import Project


class EpochEndOutputs(DdpCodemod):
    """A hook that is handed the outputs of all steps of an epoch, which Lightning 2 refuses.

    ## What it does
    Reports `training_epoch_end`, `validation_epoch_end` and `test_epoch_end` of a LightningModule. One that does not read its
    outputs gets its new name. For the plain shape of the other two, the step keeps what it returns in a list of the module, and
    the hook takes it from there.

    ## Why it matters
    The training ends before its first step: `NotImplementedError: Support for validation_epoch_end has been removed in v2.0.0`.

    ## Example
    ```python
    # requirements.txt: pytorch-lightning>=2.0
    import pytorch_lightning as pl
    import torch


    class Net(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 1)

        def validation_step(self, batch, batch_idx):
            loss = self.layer(batch).mean()
            return loss

        def validation_epoch_end(self, outputs):
            self.log("loss", torch.stack(outputs).mean(), sync_dist=True)
    ```

    ## Use instead
    ```python
    # requirements.txt: pytorch-lightning>=2.0
    import pytorch_lightning as pl
    import torch


    class Net(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.validation_step_outputs = []
            self.layer = torch.nn.Linear(2, 1)

        def validation_step(self, batch, batch_idx):
            loss = self.layer(batch).mean()
            self.validation_step_outputs.append(loss)
            return loss

        def on_validation_epoch_end(self):
            outputs = self.validation_step_outputs
            self.validation_step_outputs = []
            self.log("loss", torch.stack(outputs).mean(), sync_dist=True)
    ```

    ## Safety
    Never safe. Unsafe: the hook does not read its outputs; or the class itself has `__init__`, the step and the hook, the step
    ends in its one `return` of a name, and nobody else calls either of them. It is assumed that the step runs with one loader.

    ## Refuses
    - an upper bound or an exact pin below 2.0: nothing is said, unless `target-lightning` is set
    - a class under a test of a version: nothing is said
    - outputs of `training_epoch_end`: what is kept there has to be detached, and this is reported
    - a step that takes `dataloader_idx`, has several returns or a `_step_end` behind it
    - the new hook is there as well, or a base class or an heir has the old one
    - other code calls the hook or the step

    ## References
    `_verify_loop_configuration` of Lightning 2.0.9 and 2.6.6; two-process runs of Lightning 2.6.6.
    """

    code = "DDP804"
    severity = "crash"
    subject = "Keep the outputs of the steps in the module"
    must_show = "The training begins with the version of Lightning that is installed, and logs the same numbers."
    printed = ("has been removed in v2.0.0",)
    TRIGGERS = ((b"ightning",), tuple(name.encode() for name in NEW_NAMES))
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        known = None if is_test_file(module.path) else standing(project, module.path, module, since=ALWAYS, gone=V2)
        if known is None:
            return
        for owner in module.nodes(ast.ClassDef):
            hooks = {name: hook for name, hook in module.methods_of(owner).items() if name in NEW_NAMES}
            if not hooks:
                continue
            facts = class_facts(project, module, owner)
            if not facts.is_a(Role.LIGHTNING_MODULE) or is_tried(module, owner, "ImportError"):
                continue
            for name, hook in hooks.items():
                change = new_hook(project, ClassSite(module, owner), facts, hook)
                now = f"it is {NEW_NAMES[name]}(self), without outputs"
                yield self.finding(
                    module,
                    hook,
                    f"{owner.name}.{name} ends the program from Lightning 2.0 on: {now}",
                    level=lowest(change.level, known.level),
                    edits=change.edits,
                    evidence=known.evidence,
                    reason=change.reason,
                )
