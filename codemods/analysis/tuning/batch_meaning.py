"""Where a larger batch with less accumulation is not the same training, although their product is.

Measured on transformers 5.23 with batch 4 x 1 against 2 x 2: causal models of transformers agree to 1e-8, because the loss is
divided by the tokens of the whole step (`num_items_in_batch`, from 4.46 on); a model that returns the mean of its own micro-batch
is off by 3.6e-2 where the counts differ, an in-batch contrastive loss by 1.1e-1, and BatchNorm sees other statistics.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.frameworks import transformers_pin
from codemods.analysis.importing import imported_files
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

TOKENS_OF_THE_STEP = (4, 46, 0)
_BATCH_NORM = lazy(rb"\bBatchNorm[123]?d?\b|\bSyncBatchNorm\b")
_CONTRASTIVE = lazy(
    rb"\b(?:InfoNCE\w*|info_nce\w*|NTXent\w*|nt_xent\w*|MultipleNegatives\w*|ContrastiveLoss|contrastive_loss|"
    rb"SupConLoss|in_batch_negatives|CLIPModel|ClipLoss|SiglipModel)\b"
)
_CAUSAL = lazy(rb"\bAutoModelForCausalLM\b|\bSFTTrainer\b|\w+ForCausalLM\b|\w+LMHeadModel\b")
_COUNTS_ALIKE = lazy(rb"\w*For(?:Sequence|Image|Audio)Classification\b")


@record
class Meaning:
    """unequal: why the training would be another one, "" where nothing says so. assumes: what was not shown, "" for nothing."""

    unequal: str = ""
    assumes: str = ""


def meaning_of_the_batch(project: Project, module: SourceModule) -> Meaning:
    """What splitting the batch otherwise means to the training that the file, with what it imports, sets up."""
    return project.memo(("meaning of the batch", module.path), lambda: _meaning(project, module))


def _meaning(project: Project, module: SourceModule) -> Meaning:
    paths = sorted(imported_files(project, module))
    for pattern, why in (
        (_CONTRASTIVE, "a contrastive loss takes its negatives from the micro-batch, so that another split has others"),
        (_BATCH_NORM, "BatchNorm takes its statistics from the micro-batch"),
    ):
        for path in paths:
            data = project.read(path) or b""
            if found := pattern.search(data):
                line = data.count(b"\n", 0, found.start()) + 1
                return Meaning(f"{why} ({path}:{line} has {found.group().decode()})")
    for path in paths:
        if own := _mean_of_its_own(project, path):
            return Meaning(f"{own} takes the mean over each micro-batch, which weighs short ones like long ones")
    return Meaning(assumes="; ".join(_assumed(project, module, paths)))


def _mean_of_its_own(project: Project, path: str) -> str:
    """A Trainer's own `compute_loss` that does not read how many items the step has."""
    data = project.read(path) or b""
    module = project.module(path) if b"def compute_loss" in data else None
    for owner in module.nodes(ast.ClassDef) if module else ():
        method = module.methods_of(owner).get("compute_loss") if module else None
        if method and module and class_facts(project, module, owner).is_a(Role.HF_TRAINER):
            uses = [n for n in ast.walk(method) if isinstance(n, ast.Name) and n.id == "num_items_in_batch"]
            hands_on = "super().compute_loss" in module.text_of(method)
            if not uses and not hands_on:
                return f"{owner.name}.compute_loss ({path}:{method.lineno})"
    return ""


def _assumed(project: Project, module: SourceModule, paths: list[str]) -> Iterator[str]:
    data = b"\n".join(project.read(p) or b"" for p in paths)
    if _COUNTS_ALIKE.search(data) and not _CAUSAL.search(data):
        return
    pin = transformers_pin(project, near=module.path)
    if not _CAUSAL.search(data):
        yield "the loss weighs all samples alike, which this model was not shown to do"
    elif pin is None or not pin.surely_at_least(TOKENS_OF_THE_STEP):
        yield "transformers is 4.46 or newer, where the loss is divided by the tokens of the whole step"
