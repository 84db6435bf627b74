"""How a setting of the flag is changed in Python: the edit, and the comment beside it."""

from __future__ import annotations

import ast

from codemods.analysis.frameworks import lightning_pin
from codemods.analysis.model.flag_setting import Framework, Setting, State
from codemods.analysis.names import last, qualified
from codemods.api.findings import AddComment, DropKeyword, Edit, ReplaceExpression, SetKeyword
from codemods.data.find_unused_parameters import LIGHTNING_OFF_FROM
from codemods.files.source import SourceModule
from codemods.store.project import Project


def switched(setting: Setting, to: str) -> Edit | None:
    """The edit that writes `to` (`True`, `False`, or a strategy's name) in place of the setting."""
    module = setting.module
    if setting.strategy:
        quote = module.text_of(setting.node)[:1]
        return ReplaceExpression(module.path, module.span(setting.node), f"{quote}{to}{quote}") if quote in "'\"" else None
    if setting.call is not None:
        return SetKeyword(module.path, module.span(setting.call), setting.keyword, to)
    if setting.state in (State.ON, State.OFF):
        whole = chosen_by(setting)  # `False if debug else False` asks for nothing any more
        return ReplaceExpression(module.path, module.span(whole if whole is not None else setting.node), to)
    return None


def with_comment(setting: Setting, to: str, comment: tuple[str, ...]) -> tuple[Edit, ...]:
    """`to` in place of the setting, with the comment beside it."""
    edit = switched(setting, to)
    return (edit, comment_at(setting, comment)) if edit is not None else ()


def left_out(project: Project, setting: Setting, framework: Framework) -> tuple[Edit, ...]:
    """The argument taken away, where leaving it out is off: that needs no comment; none where something speaks against it."""
    if setting.call is None or not _is_off_if_left_out(project, setting, framework):
        return ()
    return (DropKeyword(setting.module.path, setting.module.span(setting.call), setting.keyword),)


def _is_off_if_left_out(project: Project, setting: Setting, framework: Framework) -> bool:
    """True for an argument of the wrapper itself, without a comment of its own, whose default is off in all pinned versions."""
    module, argument = setting.module, setting.module.parent(setting.node)
    if setting.call is None or setting.state is not State.ON or not isinstance(argument, ast.keyword):
        return False
    span = module.span(argument)
    if any("#" in line for line in module.lines[max(span.line - 2, 0) : span.end_line]):
        return False
    made = last(qualified(module, setting.call.func))
    if framework is Framework.LIGHTNING:
        pin = lightning_pin(project, near=module.path)
        return made == "DDPStrategy" and pin is not None and pin.surely_at_least(LIGHTNING_OFF_FROM)
    wanted = {Framework.TORCH: "DistributedDataParallel", Framework.ACCELERATE: "DistributedDataParallelKwargs"}
    return made == wanted.get(framework)


def chosen_by(setting: Setting) -> ast.IfExp | None:
    """The `True if several else False` of which the setting is an arm, where the other arm is the opposite."""
    up = setting.module.parent(setting.node)
    if not isinstance(up, ast.IfExp) or setting.strategy or setting.node is up.test:
        return None
    other = up.orelse if setting.node is up.body else up.body
    opposite = {State.ON: False, State.OFF: True}.get(setting.state)
    return up if isinstance(other, ast.Constant) and opposite is not None and other.value is opposite else None


def comment_at(setting: Setting, lines: tuple[str, ...]) -> Edit:
    """The comment above the argument where the call has one argument a line, else above the statement."""
    module = setting.module
    if setting.call is not None and setting.state is not State.DEFAULT and _own_line(module, setting):
        return AddComment(module.path, module.span(setting.call), lines, setting.keyword)
    return AddComment(module.path, module.span(module.statement_of(setting.node)), lines)


def comment_column(setting: Setting) -> int:
    """The column that the comment will start at."""
    module = setting.module
    if setting.call is not None and _own_line(module, setting):
        keyword = module.parent(setting.node)
        return module.span(keyword).column if isinstance(keyword, ast.keyword) else 0
    return module.span(module.statement_of(setting.node)).column


def _own_line(module: SourceModule, setting: Setting) -> bool:
    """True where the argument begins its line."""
    keyword = module.parent(setting.node)
    if not isinstance(keyword, ast.keyword) or setting.call is None or keyword.lineno == setting.call.lineno:
        return False
    span = module.span(keyword)
    return not module.lines[span.line - 1][: span.column].strip()
