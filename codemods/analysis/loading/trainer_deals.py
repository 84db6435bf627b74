"""The data sets whose samples the Trainer of transformers deals out to the ranks by their indices."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.analysis.class_index import ClassSite
from codemods.analysis.distribution import is_test_file
from codemods.analysis.loading.origins import Origin, made_class, origins, origins_of_part
from codemods.analysis.ranks.seen_starts import is_of_several
from codemods.analysis.trainer.trainer_calls import TrainerCall, trainer_calls
from codemods.runtime.record import record
from codemods.store.project import Project

_GIVEN = "train_dataset"


@record
class TrainerDeal:
    """made: the call that makes the data set, an object of the class `site`; `trainer` deals its indices out."""

    site: ClassSite
    trainer: TrainerCall
    made: Origin


def trainer_deals(project: Project) -> tuple[TrainerDeal, ...]:
    """The project's own data sets that a Trainer trains on, in programs that are started as several processes."""
    return project.memo("deals of the Trainer", lambda: tuple(_find(project)))


def _find(project: Project) -> Iterator[TrainerDeal]:
    for path in project.files_containing(b"Trainer("):
        module = None if is_test_file(path) else project.module(path)
        for trainer in trainer_calls(project, module) if module is not None else ():
            if trainer.method("get_train_dataloader") is not None:
                continue  # it has loaders of its own
            made = [(o, site) for o in _given(trainer) if (site := made_class(project, o)) is not None]
            if made and is_of_several(project, trainer.module, trainer.call):
                yield from (TrainerDeal(site, trainer, origin) for origin, site in made)


def _given(trainer: TrainerCall) -> Iterator[Origin]:
    """What makes the data set: `train_dataset=`, or that entry of `**data`."""
    for keyword in trainer.call.keywords:
        if keyword.arg == _GIVEN:
            yield from origins(trainer.project, trainer.module, keyword.value)
        elif keyword.arg is None:
            yield from origins_of_part(trainer.project, trainer.module, keyword.value, _GIVEN)
