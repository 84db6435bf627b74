"""Is the flag in a configuration file right for the models that the code trains with it? One answer for both directions."""

from __future__ import annotations

from codemods.analysis.frameworks import Pin, lightning_pin
from codemods.analysis.model.checkpoint_kinds import checkpoint_repairs
from codemods.analysis.model.config_flags import ConfigSetting
from codemods.analysis.model.configured_model import configured
from codemods.analysis.model.flag_comment import comment_lines
from codemods.analysis.model.flag_setting import Framework, State
from codemods.analysis.model.model_usage import (
    Usage,
    Verdict,
    deciding,
    left_out_where,
    modules_of,
    names_of,
    needs_flag,
    never_of,
)
from codemods.analysis.model.trained_model import Trained
from codemods.api.findings import AddComment, Applicability, Asked, Edit, Evidence, ReplaceExpression
from codemods.data.find_unused_parameters import (
    LIGHTNING_ERROR,
    LIGHTNING_OFF_FROM,
    LIGHTNING_TRUE_NAME_FROM,
    OFF_NAMES,
    ON_NAMES,
    TORCH_ERROR,
)
from codemods.runtime.record import record
from codemods.store.project import Project

ROWS = 30


@record
class Judged:
    """What to say of one setting: a finding's fields, without its codemod. open: the source does not show an answer."""

    message: str
    reason: str
    evidence: tuple[Evidence, ...]
    edits: tuple[Edit, ...] = ()
    open: bool = False

    @property
    def level(self) -> Applicability:
        """Never safe: another file or the command line may put another model behind the same configuration."""
        return Applicability.UNSAFE if self.edits else Applicability.DISPLAY


def needless(project: Project, setting: ConfigSetting) -> Judged | None:
    """The flag is on. None where a model needs it, or where nothing shows who takes it."""
    trained = configured(project, setting.framework)
    if setting.state is not State.ON or setting.static or any(needs_flag(u) for u in trained.usages):
        return None
    if setting.framework is None and not trained.usages:
        return None
    all_used = not trained.unknown and all(u.verdict is Verdict.ALL for u in trained.usages)
    evidence = (*trained.evidence, *(e for u in trained.usages for e in u.evidence))[:ROWS]
    if (dead := _dead(trained)) is not None and all(u.verdict in (Verdict.ALL, Verdict.NEVER) for u in trained.usages):
        what = f"{setting.text} is needed only because {names_of(dead.never)} of {dead.name} never reaches the loss"
        freeze = "freeze it with requires_grad_(False) before the model is wrapped, or delete it; then the flag can go"
        return Judged(what, freeze, evidence)
    if not trained.unknown and trained.usages and all(u.dead for u in trained.usages):
        sure = trained.usages[0]
        what = f"{setting.text} is needed as long as {names_of(sure.dead)} of {sure.name} never reaches the loss"
        freeze = "freeze it with requires_grad_(False) before the model is wrapped, or delete it; whether the flag can go then "
        return Judged(what, f"{freeze}the source does not show ({_open_questions(trained)})", evidence, open=True)
    if not all_used:
        what = f"{setting.text} makes DDP search the graph in every step; the source does not show whether the model needs it"
        return Judged(what, setting.fixed or _open_questions(trained), evidence, open=True)
    names = ", ".join(u.name for u in trained.usages)
    message = (
        f"{setting.text} makes DDP search the graph in every step, and every parameter of {names} reaches the loss without it"
    )
    if setting.fixed:
        return Judged(message, setting.fixed, evidence)
    framework = setting.framework or Framework.TORCH
    why = f"Off: every parameter of {trained.usages[0].name} reaches the loss ({trained.usages[0].site.module.path})."
    back = setting.value if setting.strategy else "true"
    path, line = setting.file.path, setting.file.lines[setting.span.line - 1]
    column = len(line) - len(line.lstrip())
    comment = comment_lines(project, path, framework, why, back=back, column=column)
    to = ON_NAMES[setting.value] if setting.strategy else "false"
    assumed = [f"this configuration is used with {names}", *(a for u in trained.usages for a in u.assumptions)]
    edits = (ReplaceExpression(path, setting.span, to), AddComment(path, setting.span, comment))
    return Judged(message, "assumes that " + "; ".join(dict.fromkeys(assumed)), evidence, edits)


def missing(project: Project, setting: ConfigSetting) -> Judged | None:
    """The flag is off. None where no model leaves a module out, or the framework has it on by default."""
    if setting.state not in (State.OFF, State.DEFAULT) or setting.framework is Framework.HF:
        return None
    pin = lightning_pin(project, near=setting.file.path)
    old = pin is not None and pin.surely_below(LIGHTNING_OFF_FROM)
    if setting.state is State.DEFAULT and old:
        return None
    trained = configured(project, setting.framework)
    found = next(((u, d) for u in trained.usages if needs_flag(u) and (d := deciding(u)) is not None), None)
    if found is None:
        return _for_dead(project, setting, trained, pin, old=old)
    usage, decision = found
    if usage.dead:
        return _told_of_dead(project, setting, trained, usage, usage.dead, pin, old=old)
    names = modules_of(decision)
    message = (
        f"{setting.text} leaves the flag off, and {names} of {usage.name} takes no part "
        f"{left_out_where(decision)}: with the flag off DDP stops there (“{_error(setting, old=old)}”)"
    )
    evidence = (
        Evidence("static", f"`{decision.text}` decides over {names}", decision.path, decision.line, asked=Asked.BRANCHES),
        *trained.evidence, *usage.evidence[:8],
    )  # fmt: skip
    refused = _refused(project, setting, trained, usage, old=old)
    if refused:
        return Judged(message, refused, evidence)
    reason = f"assumes that this configuration is used with {usage.name}, and that {decision.cause.value} leaves the module out"
    kinds = checkpoint_repairs(project, usage)
    reason = "; ".join([*([kinds.said] if kinds.said else []), reason + _two(setting, pin)])
    return Judged(message, reason, evidence, (*_on(setting), *kinds.edits))


def _dead(trained: Trained) -> Usage | None:
    """A model that some parameter never helps, where all that may be trained is seen."""
    return next((u for u in trained.usages if u.verdict is Verdict.NEVER), None) if not trained.unknown else None


def _for_dead(project: Project, setting: ConfigSetting, trained: Trained, pin: Pin | None, *, old: bool) -> Judged | None:
    """The flag for what no step uses, where the framework leaves it off."""
    usage = _dead(trained)
    if usage is None or setting.static:
        return None
    return _told_of_dead(project, setting, trained, usage, usage.never, pin, old=old)


def _told_of_dead(
    project: Project, setting: ConfigSetting, trained: Trained, usage: Usage, never: tuple[str, ...], pin: Pin | None,
    *, old: bool,
) -> Judged:  # fmt: skip
    message = (
        f"{setting.text} leaves the flag off, and {never_of(usage, never)}: DDP stops in the second step "
        f"(“{_error(setting, old=old)}”)"
    )
    better = "freezing it with requires_grad_(False) before the model is wrapped, or deleting it, does without the flag"
    evidence = (*trained.evidence, *usage.evidence[:8])
    if refused := _refused(project, setting, trained, usage, old=old):
        return Judged(message, f"{refused}; {better}", evidence)
    assumed = [f"this configuration is used with {usage.name}", *usage.assumptions[:2]]
    return Judged(message, f"{better}; assumes that {'; '.join(assumed)}{_two(setting, pin)}", evidence, _on(setting))


def _error(setting: ConfigSetting, *, old: bool) -> str:
    return LIGHTNING_ERROR if setting.framework is Framework.LIGHTNING and not old else TORCH_ERROR


def _two(setting: ConfigSetting, pin: Pin | None) -> str:
    if setting.state is State.DEFAULT and not (pin is not None and pin.surely_at_least(LIGHTNING_TRUE_NAME_FROM)):
        return "; assumes Lightning 2.0 or newer, which the project does not pin"
    return ""


def _on(setting: ConfigSetting) -> tuple[Edit, ...]:
    to = OFF_NAMES.get(setting.value, "") if setting.strategy else "true"
    return (ReplaceExpression(setting.file.path, setting.span, to),)


def _refused(project: Project, setting: ConfigSetting, trained: Trained, usage: Usage, *, old: bool) -> str:
    """Why nothing is changed, "" where it can be."""
    if setting.fixed:
        return setting.fixed
    if setting.static:
        return "static_graph stands beside it, and this graph is not static: take that out first"
    if text := checkpoint_repairs(project, usage).refused:
        return text
    if setting.strategy and old:
        return "name the class DDPStrategy with find_unused_parameters: true; Lightning 1 knows no name for it"
    others = [u.name for u in trained.usages if not needs_flag(u) and u.verdict is not Verdict.NEVER]
    if others:
        return f"the value depends on the model: {', '.join(others)} may be trained with the same configuration"
    return ""


def _open_questions(trained: Trained) -> str:
    reasons = [trained.unknown] if trained.unknown else []
    reasons += [reason for u in trained.usages for reason in u.reasons]
    return "; ".join(dict.fromkeys(reasons[:3])) or "what is trained with this configuration is not followed"
