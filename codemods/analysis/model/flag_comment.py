"""The comment at a flag that is switched off: why, how to see it if that changes, how to roll back."""

from __future__ import annotations

from codemods.analysis.frameworks import lightning_pin
from codemods.analysis.model.flag_setting import Framework, Setting
from codemods.data.find_unused_parameters import LIGHTNING_ERROR, LIGHTNING_OFF_FROM, TORCH_ERROR
from codemods.store.project import Project

COLUMNS = 100


def off_comment(project: Project, setting: Setting, framework: Framework, why: str, *, column: int) -> tuple[str, ...]:
    """The lines for a setting in Python, wrapped for the column at which they will start. `why` is the first sentence."""
    back = setting.text if setting.strategy else "True"
    return comment_lines(project, setting.module.path, framework, why, back=back, column=column)


def comment_lines(project: Project, path: str, framework: Framework, why: str, *, back: str, column: int) -> tuple[str, ...]:
    """The same for any file. back: what stood there."""
    import textwrap

    width = max(COLUMNS - column - 2, 40)
    error, names = _how_to_see(project, path, framework)
    unbroken = error.replace(" ", "\0")  # whoever searches the code for the error must find it
    how = f'If that changes, {names} the parameters behind "{unbroken}". To roll back: {back}.'
    lines = [line for text in (why, how) for line in textwrap.wrap(text, width, break_long_words=False)]
    return tuple(line.replace("\0", " ") for line in lines)


def _how_to_see(project: Project, path: str, framework: Framework) -> tuple[str, str]:
    """(how the error begins, what names the parameters): Lightning 2 replaces torch's text and loses their names."""
    pin = lightning_pin(project, near=path) if framework is Framework.LIGHTNING else None
    if framework is Framework.LIGHTNING and not (pin is not None and pin.surely_below(LIGHTNING_OFF_FROM)):
        return LIGHTNING_ERROR, "p.grad is None in on_after_backward shows"
    return TORCH_ERROR, "TORCH_DISTRIBUTED_DEBUG=INFO names"
