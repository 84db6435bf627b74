"""DDP604: a Trainer that finds no labels in its batches."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file
from codemods.analysis.frameworks import transformers_pin
from codemods.analysis.names import dotted, last
from codemods.analysis.trainer.label_names import NAME, unlabelled
from codemods.analysis.trainer.trainer_calls import trainer_calls
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Evidence, Finding, SetKeyword
from codemods.files.source import SourceModule
from codemods.store.project import Project

_OLDEST = (4, 20)  # before, other defaults stood in for what the signature does not name


class MissingLabelNames(DdpCodemod):
    """An evaluation without `eval_loss`: no input of the model is called a label.

    ## What it does
    Finds a Hugging Face `Trainer` that evaluates a model of the project whose `forward` has no parameter with `label` in its name
    (`targets`, `y`, or all of them behind `**kwargs`), or has one that no batch of the project's own data set holds
    (`label_weights`), while the training arguments give no `label_names`. Names the input that the loss is made with.

    ## Why it matters
    The `Trainer` looks for the labels in the signature of `forward`. Unless a batch holds all of them, and one at least, it takes
    the batch of an evaluation for one without targets, in silence: there is no `eval_loss`, and `compute_metrics` is never
    called. Training goes on as if nothing were wrong, until something asks for the loss: `load_best_model_at_end` stops every
    rank with `KeyError: The metric_for_best_model training argument is set to 'eval_loss', which is not found`.

    ## Example
    ```python
    import torch
    from transformers import Trainer, TrainingArguments


    class Classifier(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.head = torch.nn.Linear(4, 2)

        def forward(self, x, targets=None):
            logits = self.head(x)
            loss = None if targets is None else torch.nn.functional.cross_entropy(logits, targets)
            return {"loss": loss, "logits": logits}


    def train(train_set, dev_set):
        args = TrainingArguments("out", eval_strategy="epoch", load_best_model_at_end=True)
        trainer = Trainer(model=Classifier(), args=args, train_dataset=train_set, eval_dataset=dev_set)
        trainer.train()
    ```

    ## Use instead
    ```python
    import torch
    from transformers import Trainer, TrainingArguments


    class Classifier(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.head = torch.nn.Linear(4, 2)

        def forward(self, x, targets=None):
            logits = self.head(x)
            loss = None if targets is None else torch.nn.functional.cross_entropy(logits, targets)
            return {"loss": loss, "logits": logits}


    def train(train_set, dev_set):
        args = TrainingArguments("out", eval_strategy="epoch", load_best_model_at_end=True, label_names=["targets"])
        trainer = Trainer(model=Classifier(), args=args, train_dataset=train_set, eval_dataset=dev_set)
        trainer.train()
    ```

    ## Safety
    Unsafe: it assumes that the batches of the evaluation hold the input that the loss is made with. The training itself stays
    as it is; the evaluation gets its numbers.

    ## Refuses
    - Reports a model that has more than one such input, or none that is shown, and a Trainer with a `compute_loss` of its own.
    - Says nothing where the Trainer does not evaluate, or has a `prediction_step`, `evaluate` or `evaluation_loop` of its own.
    - Says nothing where the model's class or the training arguments are not seen to be made beside the Trainer, and of several
      labels where the keys of the data set are not all literal, or a collator makes the batches.
    - Says nothing where anybody sets `label_names`, or `forward` has `return_loss=True`.
    - Says nothing where a version before 4.20 is pinned, and in a repository's own tests.

    ## References
    transformers 5.23, `find_labels` and `prediction_step`; runs with `targets`, `**kwargs`, `labels`, and `labels` beside
    `label_weights`.
    """

    code = "DDP604"
    severity = "data"
    subject = "Name the labels that the Trainer does not find"
    must_show = "One evaluation reports `eval_loss` and what compute_metrics gives: its batches hold the named input."
    printed = ("The `metric_for_best_model` training argument is set to",)
    TRIGGERS = ((b"Trainer",), (b"Arguments(",), (b"eval_dataset",))
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_file(module.path):
            return
        pin = transformers_pin(project, near=module.path)
        if pin is not None and pin.surely_below(_OLDEST):
            return
        for trainer in trainer_calls(project, module):
            found = unlabelled(trainer)
            if found is None:
                continue
            model, shown = found.model, f"{found.model.site.name}.forward"
            lost = ", and ".join((", ".join(found.lost[:-1]), found.lost[-1])) if len(found.lost) > 1 else found.lost[0]
            why = f"no parameter of {shown} is called a label"
            if found.missing:
                why = f"{shown} has {', '.join(found.missing)} among its labels, which no batch of the evaluation holds"
            taken = f"so this {last(dotted(trainer.call.func))} takes every batch of its evaluation for one without targets"
            message = f"{why}, {taken}: {lost}"
            wraps = f"; line {model.wrapped} may put another model in its place" if model.wrapped else ""
            if found.targets:
                import json

                given = f"[{', '.join(json.dumps(name) for name in found.targets)}]"
                named = " and ".join(repr(name) for name in found.targets)
                reason = f"assumes that the batches of the evaluation hold {named}, which the loss is made with{wraps}"
                edits = [SetKeyword(module.path, module.span(found.arguments), NAME, given)]
            else:
                reason = f"which input holds the targets is not shown: name it, TrainingArguments({NAME}=[…]){wraps}"
                edits = []
            yield self.finding(
                module,
                trainer.call,
                message,
                level=Applicability.UNSAFE if edits else Applicability.DISPLAY,
                edits=edits,
                evidence=[Evidence("static", why, model.site.module.path, model.forward.lineno)],
                reason=reason,
            )
