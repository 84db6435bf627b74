"""Data sets that draw which sample they give, and that a Trainer of transformers trains on: it seeds all ranks alike."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.analysis.frameworks import transformers_pin
from codemods.analysis.loading.drawn_items import DrawnItem, drawn_items, may_draw_items
from codemods.analysis.loading.seeds import seeded_by_rank
from codemods.analysis.loading.trainer_deals import TrainerDeal, trainer_deals
from codemods.analysis.trainer.references import in_text_files
from codemods.files.left_alone import left
from codemods.files.source import SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project

_WORKERS = "dataloader_num_workers"
_RANK_IN_WORKERS = (4, 52)  # from here on `seed_worker` adds the rank to the seed of each worker


@record
class ItemOfTrainer:
    """item: the draw. deal: the Trainer that deals out indices of which the data set takes no notice."""

    item: DrawnItem
    deal: TrainerDeal


def may_train_on_items(project: Project) -> bool:
    return bool(may_draw_items(project)) and bool(project.files_containing(b"Trainer("))


def items_of_trainers(project: Project, module: SourceModule) -> Iterator[ItemOfTrainer]:
    """The draws of the data sets that the Trainers of a file are given."""
    if not may_train_on_items(project):
        return
    for deal in trainer_deals(project):
        if deal.trainer.module is not module:
            continue
        for item in drawn_items(project, module.path):
            if item.kept is not deal.site.node or item.module.holds(b"worker_init_fn"):
                continue
            if seeded_by_rank(project, module.path) and left(item.module, item.call, "a seed differs between the ranks"):
                continue
            if _draws_apart(project, module) and left(item.module, item.call, "the workers may have seeds with the rank in them"):
                continue
            yield ItemOfTrainer(item, deal)


def _draws_apart(project: Project, module: SourceModule) -> bool:
    """True where workers may draw the samples, of a release that gives those of each rank a seed of their own."""
    pin = transformers_pin(project, near=module.path)
    if pin is not None and pin.surely_below(_RANK_IN_WORKERS):
        return False
    return bool(project.files_containing(_WORKERS.encode()) or in_text_files(project, _WORKERS))
