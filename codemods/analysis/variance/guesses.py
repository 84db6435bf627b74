"""Values of which only a name, or a dict that holds more, says that they differ between the ranks."""

from __future__ import annotations

import ast
import re

from codemods.analysis.variance.mismatches import Mismatch
from codemods.late_pattern import late
from codemods.source import SourceModule


def is_guess(module: SourceModule, found: Mismatch) -> bool:
    """True where only the name of a parameter says that the value is the rank's own, and the test does not speak of a loss.

    A batch of a loop that may be missing is the rank's own, whatever the loader is: nothing else can decide that.
    """
    origin = found.value.origin
    if _is_under_another_key(module, found):
        return True
    if origin is not None and origin.text.endswith("own clock") and any(".update(" in x.text for x in found.value.chain):
        return True  # a time among the numbers of a dict: which of them is asked for is not shown
    if origin is None or not origin.by_name:
        return False
    if isinstance(found.leaving, ast.Continue) and isinstance(found.node, ast.If) and _asks_for_none(found.node.test):
        return False
    return not re.search(r"loss|isnan|isfinite|isinf", module.text_of(found.node).partition("\n")[0], re.I)


_TOLD = late(r"""\([\[(]?["'](\w+)["'][^`]*` keeps it$""")  # `store.update("loss", loss)`
_ASKED = late(r"""\.get\(\s*["']""")


def _is_under_another_key(module: SourceModule, found: Mismatch) -> bool:
    """True for `store.get("step")` where the store was told a rank's own value under another key, as far as is shown."""
    keys = [told[1] for link in found.value.chain if (told := _TOLD.search(link.text))]
    asked = module.text_of(found.node).partition("\n")[0] if keys else ""
    return bool(_ASKED.search(asked)) and not any(f"{q}{key}{q}" in asked for key in keys for q in "'\"")


def _asks_for_none(test: ast.expr) -> bool:
    ends = [test.left, *test.comparators] if isinstance(test, ast.Compare) else []
    return any(isinstance(e, ast.Constant) and e.value is None for e in ends)
