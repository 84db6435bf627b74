"""Locks between processes round a place: fasteners, filelock, portalocker, fcntl."""

from __future__ import annotations

import ast

from codemods.analysis.paths import origin_text
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy

_LOCK = lazy(r"lock\b|lock\(")
_OF_ONE_PROCESS = lazy(r"\b(threading|multiprocessing|mp|asyncio)\.\w*Lock\(|\bRLock\(")


def is_under_lock(module: SourceModule, node: ast.AST) -> bool:
    """True in a `with` of a lock that no thread's or parent's own lock is: one process at a time comes there."""
    blocks = (up for up in module.ancestors(node) if isinstance(up, (ast.With, ast.AsyncWith)))
    texts = (origin_text(module, item.context_expr) for block in blocks for item in block.items)
    return any(_LOCK.search(text.lower()) and not _OF_ONE_PROCESS.search(text) for text in texts)
