"""One place where the flag for unused parameters is decided, and the wrapper that takes it."""

from __future__ import annotations

import ast
from enum import Enum

from codemods.data.find_unused_parameters import STATIC_KEYWORDS
from codemods.files.source import SourceModule
from codemods.runtime.record import record


class Framework(Enum):
    """Who builds the wrapper from the flag."""

    TORCH = "DistributedDataParallel"
    LIGHTNING = "the Lightning Trainer"
    FABRIC = "Fabric"
    HF = "the Hugging Face Trainer"
    ACCELERATE = "Accelerate"


class State(Enum):
    """What is written: on, off, nothing (the framework's default), or something only known at run time."""

    ON = "on"
    OFF = "off"
    DEFAULT = "default"
    UNKNOWN = "unknown"


@record
class Setting:
    """One place where the flag is decided.

    node: the expression that says it; for a keyword its value, for DEFAULT the call that could say it. call: the call whose
    keyword `node` is, None where it stands elsewhere. text: how it reads, for messages. strategy: it is a strategy's name.
    overridable: what has to hold for the value to count, where it is a default that others may not keep.
    """

    state: State
    module: SourceModule
    node: ast.expr
    keyword: str
    call: ast.Call | None = None
    strategy: bool = False
    text: str = ""
    conditional: bool = False
    overridable: str = ""


@record
class Wrapper:
    """A place where a framework takes the flag. call: DDP(…), Trainer(…), TrainingArguments(…), or the strategy's call."""

    framework: Framework
    module: SourceModule
    call: ast.Call
    settings: tuple[Setting, ...]
    static_graph: bool | None


def anchor_of(setting: Setting) -> ast.AST:
    """What a finding about the setting points at: the whole argument where it is one."""
    up = setting.module.parent(setting.node)
    return up if isinstance(up, ast.keyword) and setting.call is not None else setting.node


def static_graph_of(setting: Setting) -> ast.keyword | None:
    """`static_graph=…` in the call that the setting stands in, unless it is written as False or None."""
    for keyword in setting.call.keywords if setting.call is not None else []:
        off = isinstance(keyword.value, ast.Constant) and not keyword.value.value
        if keyword.arg in STATIC_KEYWORDS and not off:
            return keyword
    return None


def is_on(keyword: ast.keyword) -> bool:
    return isinstance(keyword.value, ast.Constant) and keyword.value.value is True
