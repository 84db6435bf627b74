"""The finding where rank 0 reads, or removes, the parts of all ranks before they are there."""

from __future__ import annotations

from collections.abc import Iterator

from codemods.analysis.files.file_calls import Act
from codemods.analysis.guards.file_handover import Use
from codemods.analysis.guards.merged_too_early import Merge
from codemods.analysis.names import dotted
from codemods.analysis.ranks.rank_guards import Ranks
from codemods.api.findings import Evidence
from codemods.files.source import SourceModule, line_of

# Whether they are removed -> what rank 0 does to the parts of all ranks, and what comes of it.
_DOES = {
    False: ("reads the parts of all ranks", "it finds parts missing, half written, or of an earlier run"),
    True: ("removes the parts of all ranks", "what a rank still writes is taken away from it"),
}


def merge_message(found: Merge) -> str:
    who = "rank 0" if found.ranks is Ranks.ZERO else "local rank 0"
    does, comes = _DOES[found.read.act is Act.REMOVES]
    module = found.module
    return (
        f"{who} alone {does} from here on ({line_there(module, found.read)}), and each rank writes its own in "
        f"{line_there(module, found.write)}: nobody waits between the two, and {comes}"
    )


def merge_evidence(found: Merge) -> Iterator[Evidence]:
    does, _ = _DOES[found.read.act is Act.REMOVES]
    for use, what in ((found.write, "writes the part of each rank"), (found.read, does)):
        called = dotted(getattr(use.call, "func", use.call)) or "this"
        yield Evidence("static", f"{called} {what}", use.module.path, line_of(use.call))


def line_there(module: SourceModule, found: Use) -> str:
    """Where it stands, as it is said in `module`."""
    line = line_of(found.call)
    return f"line {line}" if found.module is module else f"{found.module.path}:{line}"
