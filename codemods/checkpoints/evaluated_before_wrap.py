"""DDP511: a Hugging Face Trainer that evaluates in front of its training, and trains without DDP from there on."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.analysis.distribution import is_test_module
from codemods.analysis.names import dotted
from codemods.analysis.ranks.run_by_programs import is_run_by_nobody
from codemods.analysis.trainer.evaluated_first import evaluated_first
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Evidence, Finding
from codemods.files.source import SourceModule
from codemods.store.project import Project

_REASON = (
    "have the Trainer evaluate behind the wrap: `eval_on_start=True` in the TrainingArguments; or evaluate in a run of its own, "
    "or keep accelerate below 1.14"
)


class EvaluatedBeforeWrap(DdpCodemod):
    """An evaluation of a Hugging Face Trainer in front of its training, after which nothing is wrapped in DDP.

    ## What it does
    Reports `trainer.evaluate()` and `trainer.predict(...)` where the same function goes on to `trainer.train()`, or to the
    training of another Trainer of the same model.

    ## Why it matters
    The evaluation has Accelerate prepare the model without a wrapper, and marks it as prepared. Since accelerate 1.14 `prepare`
    leaves alone what bears the mark, so that `train` gets the bare model: no gradient is averaged, each rank trains on its own
    share of the data, and rank 0 saves what it has learned from it. Nothing is printed.

    ## Example
    ```python
    from transformers import Trainer


    def main(model, arguments, train_rows, test_rows):
        trainer = Trainer(model=model, args=arguments, train_dataset=train_rows, eval_dataset=test_rows)
        print(trainer.evaluate())
        trainer.train()
    ```

    ## Use instead
    ```python
    from transformers import Trainer


    def main(model, arguments, train_rows, test_rows):
        arguments.eval_on_start = True
        trainer = Trainer(model=model, args=arguments, train_dataset=train_rows, eval_dataset=test_rows)
        trainer.train()
    ```

    ## Safety
    There is no fix: the Trainer logs what it evaluates at the start, and hands it to nobody; what becomes of the numbers is the
    author's to say.

    ## Refuses
    - Says nothing where every version of accelerate that is pinned is older than 1.14, or every one of transformers than 4.31.
    - Says nothing where the run ends behind the evaluation, where one test lets through either of the two, and where the model
      was trained before.
    - Says nothing of a `model_init`, which makes a new model, and of a Trainer whose model is bound anew.
    - Says nothing of a class that wraps, prepares or evaluates in its own way, of trl, and of a model with `device_map="auto"`.
    - Says nothing where every command asks for DeepSpeed or FSDP, of notebooks, and of what no program runs.
    - A repository's own tests.

    ## References
    Two-process runs with transformers 5.23 and accelerate 1.15; `Accelerator.prepare_model` of 1.13, which asks for no mark, and
    of 1.14, which does.
    """

    code = "DDP511"
    severity = "data"
    must_show = "After some steps on two processes the weights of both agree."
    TRIGGERS = ((b".evaluate(", b".predict("), (b".train(",), (b"rainer",))
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        for one in evaluated_first(project, module):
            if is_run_by_nobody(project, module, one.call):
                continue
            message = (
                f"`{dotted(one.call.func)}` in front of the training has Accelerate (1.14 or newer) mark the model as prepared: "
                f"`{dotted(one.train.func)}` in line {one.train.lineno} trains it without DDP then, no gradients are averaged, "
                "and the weights of the ranks drift apart without an error"
            )
            proof = Evidence("static", "the same model is trained", module.path, one.train.lineno)
            yield self.finding(module, one.call, message, evidence=[proof], reason=_REASON)
