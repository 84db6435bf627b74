"""What a probe saw of the model behind a wrapper: whether a parameter was left out in some step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from codemods.analysis.model.flag_setting import Framework, Wrapper
from codemods.api.evidence import Observed
from codemods.api.findings import Evidence
from codemods.runtime.record import record
from codemods.store.project import Project

ENOUGH = 20  # steps: of a branch taken in one step of ten, fewer miss more than one in eight
_NAMES = {
    Framework.TORCH: "torch",
    Framework.LIGHTNING: "Lightning",
    Framework.HF: "transformers",
    Framework.ACCELERATE: "Accelerate",
}


@record
class Probed:
    """The observations of one setting's models, at least one. A model that was not probed leaves `whole` False."""

    rows: tuple[Observed, ...]
    whole: bool

    @property
    def models(self) -> str:
        return ", ".join(dict.fromkeys(row.model for row in self.rows))

    @property
    def steps(self) -> int:
        return min(row.steps for row in self.rows)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Parameters that had no path to the loss in some step, or in any."""
        return tuple(dict.fromkeys(name for row in self.rows for name in (*row.never, *row.sometimes)))

    @property
    def only_never(self) -> bool:
        """True where what is left out is left out in every step."""
        return bool(self.left_out) and not any(row.sometimes for row in self.rows)

    @property
    def clean(self) -> bool:
        """True where every model was watched long enough and nothing was left out."""
        return self.whole and not self.left_out and self.steps >= ENOUGH

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        return tuple(row.row() for row in self.rows)

    def chance(self) -> str:
        """What a clean probe may have missed."""
        chances = {p: chance for row in self.rows if row.steps == self.steps for p, chance in row.missed}
        shown = ", ".join(f"{chance:.1%} for one in {round(1 / p)} steps" for p, chance in sorted(chances.items()))
        return f"a branch taken seldom may have been missed in {self.steps} steps" + (f" (chance: {shown})" if shown else "")


def probed(project: Project, wrappers: Sequence[Wrapper], models: Iterable[str]) -> Probed | None:
    """What was seen of the models that the wrappers take, None where nothing was.

    A row belongs to the wrapper on whose lines the run made the wrap, its Trainer or its arguments; else to the one whose model
    bears its class's name. models: the names of the classes that the source shows behind the wrappers.
    """
    rows = [row for row in project.observed if row.kind == "probe"]
    names = set(models)
    found = [_rows(wrapper, rows, names) for wrapper in wrappers] if rows else []
    kept = tuple(dict.fromkeys(row for some in found for row in some))
    return Probed(kept, all(found)) if kept else None


def _rows(wrapper: Wrapper, rows: Sequence[Observed], models: set[str]) -> list[Observed]:
    span = range(wrapper.call.lineno, (wrapper.call.end_lineno or wrapper.call.lineno) + 1)
    here = [row for row in rows if any(path == wrapper.module.path and line in span for path, line in row.places)]
    if here:
        return here
    framework = _NAMES.get(wrapper.framework, "")
    return [row for row in rows if row.framework == framework and row.model.rpartition(".")[2] in models]


def named(parameters: Sequence[str], most: int = 4) -> str:
    """The modules of some parameters, for a message."""
    modules = list(dict.fromkeys(name.rpartition(".")[0] or name for name in parameters))
    return ", ".join(modules[:most]) + (" …" if len(modules) > most else "")
