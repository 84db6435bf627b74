"""The names that torch.distributed and horovod have in a file."""

from __future__ import annotations

import ast

from codemods.analysis.names import dotted
from codemods.files.source import SourceModule
from codemods.rewriting.imports import in_scope


def horovod_name(module: SourceModule) -> str:
    """`hvd`, or `horovod.torch` in a file that writes it out; "" where it is not imported."""
    if name := in_scope(module, lambda dotted_name: dotted_name == "horovod.torch"):
        return name
    root = in_scope(module, lambda dotted_name: dotted_name == "horovod")
    return f"{root}.torch" if root and module.holds(b"horovod.torch.") else ""


def asks_the_group(module: SourceModule) -> bool:
    """True where torch.distributed has a name in the file: its group can be asked there."""
    return group_name(module) is not None


def group_name(module: SourceModule) -> str | None:
    """`dist`, or `torch.distributed` in a file that writes it out."""
    name = in_scope(module, lambda dotted_name: dotted_name == "torch.distributed")
    if name is None and module.holds(b"torch.distributed."):
        root = in_scope(module, lambda dotted_name: dotted_name == "torch")
        used = (dotted(n) == "torch.distributed" for n in module.nodes(ast.Attribute) if n.attr == "distributed")
        uses = root == "torch" and any(used)
        return "torch.distributed" if uses else None
    return name
