"""What a log says of the flag: a run that stopped for want of it, or torch's line that it may be needless.

The line “did not find any unused parameters” is written in the first step only and takes an output that the loss ignores for
used (pytorch/pytorch#97030), so it decides nothing alone. An error is one of the run itself: it shows that the flag was off and
that a parameter went without a gradient.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from codemods.analysis.distribution import is_test_file
from codemods.analysis.frameworks import lightning_pin
from codemods.analysis.model.config_flags import config_settings
from codemods.analysis.model.effective_flag import effect_of
from codemods.analysis.model.flag_setting import Framework, Setting, State, Wrapper, static_graph_of
from codemods.analysis.model.model_usage import Usage, Verdict
from codemods.analysis.model.observed_usage import Probed
from codemods.analysis.model.trained_model import Trained
from codemods.analysis.model.unused_flag import wrappers
from codemods.api.evidence import Observed, named
from codemods.api.findings import Applicability, Evidence
from codemods.data.find_unused_parameters import LIGHTNING_OFF_FROM
from codemods.files.text_file import YAML_KINDS, TextFile
from codemods.runtime.record import record
from codemods.store.project import Project

# ids of the table of messages: torch's error with the flag off, and Lightning's text for it since 2.0
NEEDED = ("T02", "L01")
NEEDLESS = ("T01",)
# the flag on and a parameter without a gradient; static_graph and another graph; a gradient that was ready twice
AGAINST = ("T03", "T04", "T05", "T06", "T12")
_WRAPS = (b"DistributedDataParallel", b"Trainer", b"Fabric", b"DDPStrategy", b"DDPPlugin", b"Arguments")


@record
class Failure:
    """A logged error that fits a wrapper. others: where the other wrappers stand that it fits as well. against: what the logs
    say besides, and that the flag would not repair."""

    rows: tuple[Observed, ...]
    others: tuple[str, ...]
    against: tuple[Observed, ...]

    @property
    def files(self) -> str:
        return ", ".join(dict.fromkeys(row.file for row in self.rows))

    @property
    def parameters(self) -> str:
        """As the log names or counts them, "" where it does neither."""
        names = list(dict.fromkeys(name for row in self.rows for name in row.parameters))
        numbers = sorted({index for row in self.rows for index in row.indices})
        if names:
            return ", ".join(names[:4]) + (" …" if len(names) > 4 else "")
        shown = " ".join(map(str, numbers[:8])) + (" …" if len(numbers) > 8 else "")
        return f"the parameters with the numbers {shown}" if numbers else ""

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        return tuple(row.row() for row in (*self.rows, *self.against))


def failure_of(project: Project, wrapper: Wrapper) -> Failure | None:
    """The errors of the logs that the wrapper, whose flag is off, explains."""
    rows = named(project.observed, *NEEDED)
    fits = [(row, found) for row in rows if wrapper in (found := _fitting(project, row, State.OFF))]
    if not fits:
        return None
    others = [f"{w.module.path}:{w.call.lineno}" for _, found in fits for w in found if w != wrapper]
    if not all(any(path == wrapper.module.path for path, _ in row.places) for row, _ in fits):
        others += _configured(project)
    return Failure(tuple(row for row, _ in fits), tuple(dict.fromkeys(others)), named(project.observed, *AGAINST, *NEEDLESS))


def contradicting(project: Project, takers: Iterable[Wrapper]) -> tuple[Observed, ...]:
    """Errors that fit wrappers with the flag on: with it off, or in spite of it, a parameter went without a gradient."""
    rows = named(project.observed, *NEEDED, "T03")
    return tuple(row for row in rows if any(w in _fitting(project, row, State.ON) for w in takers))


def needless_line(project: Project, takers: Sequence[Wrapper]) -> tuple[tuple[Observed, ...], bool]:
    """(torch's lines that the flag may be needless, True where they can speak of no other wrapper)."""
    rows = tuple(row for row in named(project.observed, *NEEDLESS) if set(takers) & set(_fitting(project, row, State.ON)))
    return rows, all(set(_fitting(project, row, State.ON)) == set(takers) for row in rows)


def without_a_sign(trained: Iterable[Trained]) -> bool:
    """True where the model was followed from its start to the loss, and nothing on the way may leave a parameter out."""
    found = list(trained)
    usages = [usage for one in found for usage in one.usages]
    return bool(usages) and not any(one.unknown for one in found) and all(_is_plain(usage) for usage in usages)


def _is_plain(usage: Usage) -> bool:
    followed = usage.verdict in (Verdict.UNKNOWN, Verdict.ALL) and bool(usage.evidence)
    outputs = any(" output" in reason for reason in usage.reasons)  # one that the loss ignores counts as used in the line
    return followed and not (usage.skipped or usage.never or usage.checkpoints or usage.wrapped or outputs)


def judged(
    failure: Failure, setting: Setting, wrapper: Wrapper, trained: Trained, probe: Probed | None, *, alone: bool
) -> tuple[Applicability, str]:
    """How far a logged error lets the flag be switched on, and the first thing that lowers it."""
    usages = trained.usages
    if refusal := _refusal(failure, setting, wrapper, trained, probe):
        return Applicability.DISPLAY, refusal
    doubts = []
    if failure.others:
        doubts.append(f"assumes that the log is of this wrapper, not of {', '.join(failure.others[:3])}")
    if not alone or len(usages) > 1:
        doubts.append("several settings or models fit, and each needs its own answer")
    if trained.assumed:
        doubts.append(f"assumes that {trained.assumed}")
    if trained.unknown or not usages or not all(usage.evidence for usage in usages):
        why = trained.unknown or next((r for usage in usages for r in usage.reasons), "the model is not followed to a class")
        doubts.append(f"assumes no reentrant checkpointing and no output of a class of its own in the model ({why})")
    doubts += [f"forward returns a {u.wrapped}, which DDP may not look into for tensors" for u in usages if u.wrapped]
    return (Applicability.UNSAFE, doubts[0]) if doubts else (Applicability.SAFE, "")


def _refusal(
    failure: Failure, setting: Setting, wrapper: Wrapper, trained: Trained, probe: Probed | None
) -> str:
    """Why nothing is changed, "" where nothing stands against it. A static sign outweighs torch's line of the first step."""
    usages = trained.usages
    sign = any(usage.verdict in (Verdict.SOMETIMES, Verdict.NEVER) for usage in usages)
    against = [row for row in failure.against if not (sign and row.message in NEEDLESS)]
    contradiction = "the evidence contradicts itself, nothing is changed: a parameter went without a gradient in the logged run, "
    if against:
        return f"{contradiction}but {against[0].file} also says “{against[0].text[:120]}”"
    if usages and not trained.unknown and all(usage.verdict is Verdict.ALL for usage in usages):
        names = ", ".join(dict.fromkeys(usage.name for usage in usages))
        return f"{contradiction}but the source shows that every parameter of {names} reaches the loss"
    if probe is not None and probe.clean:
        return f"{contradiction}but a probe left nothing out in {probe.steps} steps"
    if static := static_graph_of(setting):
        return f"{setting.module.text_of(static)} stands beside it, and torch then ignores the flag: take that out first"
    if checkpoint := next((place for usage in usages for place in usage.checkpoints), ""):
        return f"reentrant checkpointing ({checkpoint}) fails with the flag on: use_reentrant=False first"
    if setting.strategy and wrapper.framework is Framework.LIGHTNING and not named(failure.rows, "L01"):
        return "write DDPStrategy(find_unused_parameters=True): Lightning 1 knows no name for it"
    return ""


# Which wrapper


def _fitting(project: Project, row: Observed, state: State) -> tuple[Wrapper, ...]:
    """The wrappers of the project with the flag in this state that can have said the row; of those in files that the row's
    traceback goes through, where there are any, only these."""
    found = [w for w in _of_state(project, state) if _can_say(project, w, row)]
    files = {path for path, _ in row.places}
    return tuple([w for w in found if w.module.path in files] or found)


def _of_state(project: Project, state: State) -> tuple[Wrapper, ...]:
    def build() -> tuple[Wrapper, ...]:
        paths = sorted({p for word in _WRAPS for p in project.files_containing(word)})
        modules = [m for p in paths if not is_test_file(p) and (m := project.module(p)) is not None]
        found = [w for m in modules for w in wrappers(project, m)]
        return tuple(w for w in found if any(_is_in(project, w, s, state) for s in w.settings))

    return project.memo(("wrappers by flag", state), build)


def _configured(project: Project) -> tuple[str, ...]:
    """The places in configuration files that may switch the flag off for some wrapper."""

    def build() -> tuple[str, ...]:
        words = (b"find_unused_parameters", b"strategy")
        paths = sorted({p for word in words for p in project.files_containing(word, kinds=YAML_KINDS)})
        settings = [s for p in paths if isinstance(file := project.module(p), TextFile) for s in config_settings(file)]
        off = [s for s in settings if s.state is State.OFF or (s.state is State.DEFAULT and s.framework is not Framework.HF)]
        return tuple(f"{s.file.path}:{s.span.line}" for s in off)

    return project.memo("configured flags that are off", build)


def _is_in(project: Project, wrapper: Wrapper, setting: Setting, state: State) -> bool:
    effect = effect_of(project, wrapper, setting)
    return effect is state or (state is State.OFF and effect is State.UNKNOWN and setting.state is State.DEFAULT)


def _can_say(project: Project, wrapper: Wrapper, row: Observed) -> bool:
    """Lightning 2 has a text of its own in the place of torch's error."""
    if row.message not in NEEDED:
        return True
    pin = lightning_pin(project, near=wrapper.module.path) if wrapper.framework is Framework.LIGHTNING else None
    if row.message == "L01":
        older = pin is not None and pin.surely_below(LIGHTNING_OFF_FROM)
        return wrapper.framework is Framework.LIGHTNING and not older
    return pin is None or not pin.surely_at_least(LIGHTNING_OFF_FROM)
