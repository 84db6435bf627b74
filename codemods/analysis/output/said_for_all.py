"""Is what a statement puts out the same from every rank? Not where it names the rank or its device, or speaks of an error."""

from __future__ import annotations

import ast
import re

from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.output.effects import names_rank
from codemods.analysis.output.ends_unbound import ends_unbound
from codemods.analysis.output.made_of_rank import is_made_of_rank
from codemods.analysis.output.natures import values_of
from codemods.analysis.output.why_it_ends import says_why_it_ends
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy

_ERRORS = lazy(
    r"\b(error|fail|failed|failure|exception|traceback|warn|warning|invalid|missing|not found|cannot|can't|could not|nan|inf|"
    r"mismatch|unexpected|abort\w*|stopping training|non-?finite|not finite|diverg\w+|oom|"
    r"out of memory|corrupt|skipping|skipped|worker)\b|"
    r"\b(this|each|per)[ -](process|node|gpu|device)\b|⚠|❌|debug|"
    r"\bno\s+(?:\w+\s+){1,3}found\b|\b(?:does|do|did)(?: not|n't) exist\b",
    re.IGNORECASE,
)  # fmt: skip
# A setting, the same everywhere, that is named after the device.
_SETTING = lazy(r"batch[ _]size[ _-]per[ _-]\w+|per[ _-]\w+[ _-](?:train |eval )?batch", re.IGNORECASE)
_DEVICE = frozenset({"device", "root_device", "gpu", "gpu_id", "device_id", "hostname", "node", "hf_device_map"})
_OF_THE_PROCESS = ("torch.cuda.", "psutil.", "os.getpid", "socket.", "platform.node")


def is_for_everybody(module: SourceModule, statement: ast.stmt) -> bool:
    """True for output that is the same from every rank: it names no rank, host or device, and speaks of no error."""
    if names_rank(module.text_of(statement)) or says_why_it_ends(module, statement):
        return False
    if ends_unbound(module, statement):
        return False
    for node in walk(statement):
        if isinstance(node, (ast.Name, ast.Attribute)) and last(dotted(node)) in _DEVICE:
            return False
        if isinstance(node, ast.Call) and qualified(module, node.func).startswith(_OF_THE_PROCESS):
            return False
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _ERRORS.search(_SETTING.sub("", node.value)):
            return False
        if isinstance(node, ast.Name) and any(_is_of_the_process(module, v) for v in values_of(module, node)):
            return False
        if isinstance(node, ast.Name) and any(_is_a_share(v) for v in values_of(module, node)):
            return False
        if isinstance(node, (ast.Name, ast.Attribute)) and any(map(is_made_of_rank, values_of(module, node))):
            return False
    return True


def _is_a_share(value: ast.expr) -> bool:
    """True for what a Trainer predicts: each rank has the answers for its own samples."""
    return isinstance(value, ast.Call) and last(dotted(value.func)) == "predict" and "trainer" in dotted(value.func).lower()


def _is_of_the_process(module: SourceModule, value: ast.expr) -> bool:
    """True for a value that is measured on this process: its memory, its device."""
    for node in walk(value):
        if isinstance(node, ast.Call) and qualified(module, node.func).startswith(_OF_THE_PROCESS):
            return True
        if isinstance(node, ast.Attribute) and node.attr in ("memory_info", "virtual_memory", "memory_full_info"):
            return True
    return False
