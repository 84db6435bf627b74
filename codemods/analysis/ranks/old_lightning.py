"""Is a Trainer made by a Lightning below 2.0? By what is pinned, and by arguments that 2.0 has no longer."""

from __future__ import annotations

from collections.abc import Iterable

from codemods.analysis.frameworks import lightning_pin
from codemods.data.lightning_arguments import OLD
from codemods.data.lightning_names import V2
from codemods.files.source import SourceModule
from codemods.store.project import Project

_GONE = frozenset({"gpus"} | {row.name for row in OLD.values() if row.gone <= V2})  # 2.0 and later raise a TypeError
PARSED = "from_argparse_args"  # a method of Lightning 1 alone


def is_before_two(project: Project, module: SourceModule, given: Iterable[str | None]) -> bool:
    """True where a Trainer that is given these arguments, or made by `PARSED`, is surely one of Lightning 1.

    A requirement that leaves the version open says nothing against an argument that 2.0 refuses.
    """
    pin = lightning_pin(project, near=module.path)
    if pin is not None and (pin.surely_below(V2) or pin.surely_at_least(V2)):
        return pin.surely_below(V2)
    return any(name in _GONE or name == PARSED for name in given)
