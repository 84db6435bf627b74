"""Says of a number that is shown or compared that nothing shows it to be of the rank's own data."""

from __future__ import annotations

import ast

from codemods.analysis.variance.number_words import is_number
from codemods.analysis.variance.values import Value
from codemods.files.left_alone import is_heard, left
from codemods.files.source import SourceModule, walk


def leave_unseen(module: SourceModule, part: ast.expr, value: Value) -> None:
    """For who listens; nothing is asked of the number for anybody else."""
    if is_heard() and any(isinstance(n, (ast.Name, ast.Attribute, ast.Subscript)) and is_number(n) for n in walk(part)):
        how = value.cause.text if value.differs else "every rank may have the same"
        left(module, part, "{} is not seen to be of the rank's own share of the data: {}", part, how)
