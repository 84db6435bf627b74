"""How a setting of the flag is changed in Python: the edit, and the comment beside it."""

from __future__ import annotations

import ast

from codemods.analysis.model.flag_setting import Setting, State
from codemods.findings import AddComment, Edit, ReplaceExpression, SetKeyword
from codemods.source import SourceModule


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
