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

NAMES_RANK = "it names the rank"
_SAYS_WHY = "it says why the run ends there"
_OF_UNBOUND = "the run ends behind it, where a name was bound to nothing"
_OF_DEVICE = "it speaks of the rank's own device, host or process"
_OF_ERROR = "it speaks of something that went wrong"
_OF_STOP = "it says why this rank stops"
_OF_ONE = "it speaks of each process for itself"
_OF_SHARE = "it shows what each rank has predicted"
_OF_RANK = "a value in it is made of the rank"
OWN_WORDS = frozenset({NAMES_RANK, _SAYS_WHY, _OF_UNBOUND, _OF_DEVICE, _OF_ERROR, _OF_STOP, _OF_ONE, _OF_SHARE, _OF_RANK})

_STOPS = lazy(r"\b(?:abort\w*|stopping training)\b", re.IGNORECASE)
_EACH = lazy(r"\b(?:this|each|per)[ -](?:process|node|gpu|device)\b", re.IGNORECASE)
_ERRORS = lazy(
    r"\b(error|fail|failed|failure|exception|traceback|warn|warning|invalid|missing|not found|cannot|can't|could not|nan|inf|"
    r"mismatch|unexpected|non-?finite|not finite|diverg\w+|oom|"
    r"out of memory|corrupt|skipping|skipped|worker)\b|"
    r"⚠|❌|debug|"
    r"\bno\s+(?:\w+\s+){1,3}found\b|\b(?:does|do|did)(?: not|n't) exist\b",
    re.IGNORECASE,
)  # fmt: skip
# A setting, the same everywhere, that is named after the device.
_SETTING = lazy(r"batch[ _]size[ _-]per[ _-]\w+|per[ _-]\w+[ _-](?:train |eval )?batch", re.IGNORECASE)
_DEVICE = frozenset({"device", "root_device", "gpu", "gpu_id", "device_id", "hostname", "node", "hf_device_map"})
_OF_THE_PROCESS = ("torch.cuda.", "psutil.", "os.getpid", "socket.", "platform.node")


def is_for_everybody(module: SourceModule, statement: ast.stmt) -> bool:
    """True for output that is the same from every rank: it names no rank, host or device, and speaks of no error."""
    return not why_for_itself(module, statement)


def why_for_itself(module: SourceModule, statement: ast.stmt) -> str:
    """What makes output the rank's own, one of OWN_WORDS; "" where it is the same from every rank."""
    if names_rank(module.text_of(statement)):
        return NAMES_RANK
    if says_why_it_ends(module, statement):
        return _SAYS_WHY
    if ends_unbound(module, statement):
        return _OF_UNBOUND
    return next((why for node in walk(statement) if (why := _why(module, node))), "")


def _why(module: SourceModule, node: ast.AST) -> str:
    if isinstance(node, ast.Constant):
        return _of_text(_SETTING.sub("", node.value)) if isinstance(node.value, str) else ""
    if isinstance(node, ast.Call):
        return _OF_DEVICE if qualified(module, node.func).startswith(_OF_THE_PROCESS) else ""
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return ""
    if last(dotted(node)) in _DEVICE:
        return _OF_DEVICE
    values = values_of(module, node)
    if isinstance(node, ast.Name) and any(_is_of_the_process(module, v) for v in values):
        return _OF_DEVICE
    if isinstance(node, ast.Name) and any(_is_a_share(v) for v in values):
        return _OF_SHARE
    return _OF_RANK if any(map(is_made_of_rank, values)) else ""


def _of_text(text: str) -> str:
    if _ERRORS.search(text):
        return _OF_ERROR
    if _STOPS.search(text):
        return _OF_STOP
    return _OF_ONE if _EACH.search(text) else ""


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
