"""Files in the folder of a tracker that rank 0 alone has: `accelerator.get_tracker(…).dir`."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.analysis.paths import origin_text
from codemods.files.source import SourceModule


def is_beside_tracker(module: SourceModule, paths: Iterable[ast.expr]) -> bool:
    """True where a path is made of Accelerate's tracker: elsewhere that is a blank one, without a folder or a name."""
    return module.holds(b"get_tracker(") and any("get_tracker(" in origin_text(module, p) for p in paths)
