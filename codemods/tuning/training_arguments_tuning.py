"""DDP901: speed of the Hugging Face Trainer, in the keywords of its training arguments."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file
from codemods.analysis.tuning.call_proposals import proposed
from codemods.analysis.tuning.profiles import Tuning
from codemods.analysis.tuning.training_calls import training_calls
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Finding
from codemods.files.source import SourceModule
from codemods.files.text_file import TextFile
from codemods.store.project import Project


class TrainingArgumentsTuning(DdpCodemod):
    """Training arguments that make several processes wait for each other, or for their data.

    ## What it does
    In the keywords of `TrainingArguments` and its heirs (`SFTConfig`, `Seq2SeqTrainingArguments`, a project's own): logs every 5
    steps instead of every one (10 with the profile `fast`), makes the batch larger and the accumulation smaller with their
    product kept, and gives the loader a share of the machine's cores. Only where the value stands there: what comes from an
    option, a job file or a command is DDP902's.

    `ddpfix tune` says more: the number of processes (`--world-size`), the profile, the cores. Without the number of cores it
    says nothing of workers.

    ## Why it matters
    Each logging costs two collectives (the loss, the count of operations) and three waits for the device. Accumulation takes one
    small batch after another where the device could take more at once. Without workers the process that trains also loads.

    ## Example
    ```python
    # requirements.txt: transformers>=4.46
    from transformers import AutoModelForCausalLM, Trainer, TrainingArguments


    def train(train_set):
        model = AutoModelForCausalLM.from_pretrained("name")
        args = TrainingArguments(
            "out",
            logging_steps=1,
            learning_rate=2e-4,
        )
        Trainer(model=model, args=args, train_dataset=train_set).train()
    ```

    ## Use instead
    ```python
    # requirements.txt: transformers>=4.46
    from transformers import AutoModelForCausalLM, Trainer, TrainingArguments


    def train(train_set):
        model = AutoModelForCausalLM.from_pretrained("name")
        args = TrainingArguments(
            "out",
            logging_steps=5,
            learning_rate=2e-4,
        )
        Trainer(model=model, args=args, train_dataset=train_set).train()
    ```

    ## Safety
    Never made unless asked for: `--select tuning`, or `ddpfix tune`. Safe: logging less often, where nobody reads the log by
    steps. Unsafe: batch and accumulation, because nobody has seen the larger batch fit into memory; workers, because the machine
    that trains may be another one. A value that is the default is not written. The effective batch is kept, so the learning rate
    stays; where it cannot be kept, that is reported.

    ## Refuses
    - the loss is contrastive, the model has BatchNorm, or the Trainer has a `compute_loss` that takes the mean of the
      micro-batch: the product is the same, the training is not
    - the accumulation is so large that the batch would have to grow by more than four
    - the effective batch is no multiple of the processes it is to run on
    - `eval_strategy="steps"` without `eval_steps`: the evaluation comes as often as the log
    - the value is computed, or stands behind `**`
    - the Trainer makes its loader itself: no workers
    - `ddp_bucket_cap_mb`, `save_total_limit`, four workers for every machine, `dataloader_pin_memory=True`: named for what they
      are, and left; `save_total_limit` deletes checkpoints of other runs, so it is neither set nor lowered

    ## References
    Counted in runs of transformers 5.23 on two processes: 18 collectives and 18 waits in 6 steps with `logging_steps=1`, 6 and
    none with 500. Batch 4 x 1 against 2 x 2: 1e-8 for a causal model, 3.6e-2 for a mean over micro-batches, 1.1e-1 for a
    contrastive loss. The defaults of transformers 5.23 (`logging_steps` 500, no workers, pinned memory).
    """

    code = "DDP901"
    severity = "noise"
    subject = "Log less often, and take larger batches for fewer at a time"
    must_show = (
        "Training with the same data comes to the same loss after as many steps, the first step fits into the device's memory, "
        "and a step takes less time: `ddpfix tune --measure` says how much."
    )
    printed = ("CUDA out of memory",)
    TRIGGERS = ((b"Arguments(", b"Config("),)
    READS_TESTS = False
    opt_in = True

    def __init__(self, tuning: Tuning | None = None) -> None:
        self.tuning = tuning or Tuning()

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_file(module.path) or isinstance(module, TextFile):
            return
        for call in training_calls(project, module):
            for found in proposed(call, self.tuning):
                if found.layer == "keyword":
                    made = found.proposal
                    yield self.finding(
                        module, found.node, made.message, level=made.level, edits=found.edits, evidence=found.evidence,
                        reason=made.reason,
                    )  # fmt: skip
