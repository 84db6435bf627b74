"""The flag in YAML: strategies of Hydra and of the Lightning CLI, arguments of the Hugging Face Trainer, keys that code reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from codemods.analysis.model.flag_setting import Framework, State
from codemods.analysis.model.strategy_names import state_of_name
from codemods.api.findings import Span
from codemods.data.find_unused_parameters import HF_KEYWORD, RAW_KEYWORD, STATIC_KEYWORDS, STRATEGY_CLASSES
from codemods.files.text_file import TextFile
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record

if TYPE_CHECKING:
    import yaml

CLASS_KEYS = ("_target_", "class_path", "target")
_TRUE, _FALSE = ("true", "yes", "on"), ("false", "no", "off")
_SITE = lazy(rb"find_unused_parameters|strategy[\"']?[ \t]*:[ \t]*(?:[&!]\S+[ \t]+)*[\"']?ddp")
_PROPERTIES = lazy(r"(?:[&!][^\s,\[\]{}]*\s+)*")  # an anchor and a tag stand in front of their scalar


@record
class ConfigSetting:
    """One scalar that decides the flag.

    framework: who takes it, None where only a key of that name is seen. value: the scalar's text; text: how it reads, for
    messages. strategy: it is a strategy's name. fixed: why it cannot be changed in its place, "" where it can. static:
    `static_graph` is on beside it.
    """

    state: State
    framework: Framework | None
    file: TextFile
    span: Span
    value: str
    text: str
    strategy: bool = False
    fixed: str = ""
    static: bool = False


def config_settings(file: TextFile) -> Iterator[ConfigSetting]:
    """Every place of the file that decides the flag, in order."""
    if not _SITE.search(file.data):
        return
    for root in file.documents:
        shared = _shared(root)
        for path, mapping in _mappings(root):
            values = {k.value: v for k, v in mapping.value if k.id == "scalar"}
            for key, value in mapping.value:
                if key.id == value.id == "scalar" and (found := _setting(file, path, values, key.value, value)):
                    state, framework, strategy = found
                    fixed = "the value is an anchor that other keys take as well" if id(value) in shared else ""
                    static = any(_truth(values[k]) for k in STATIC_KEYWORDS if k in values)
                    text = f"{key.value}: {value.value}"
                    span = span_of(file, value)
                    yield ConfigSetting(state, framework, file, span, value.value, text, strategy, fixed, static)


def span_of(file: TextFile, scalar: yaml.ScalarNode) -> Span:
    """The scalar alone, without its anchor and tag."""
    start, end = scalar.start_mark.index, scalar.end_mark.index
    properties = _PROPERTIES.match(file.text, start, end)
    return file.span_between(properties.end() if properties and not scalar.style else start, end)


def _setting(
    file: TextFile, path: tuple[str, ...], values: dict[str, yaml.Node], key: str, value: yaml.ScalarNode
) -> tuple[State, Framework | None, bool] | None:
    if value.style in ("|", ">"):
        return None
    if key == "strategy":
        state = state_of_name(value.value)
        return (state, Framework.LIGHTNING, True) if state is not None else None
    if key not in (RAW_KEYWORD, HF_KEYWORD) or value.style or (truth := _truth(value)) is None:
        return None
    state = State.ON if truth else State.OFF
    if key == HF_KEYWORD:
        return state, Framework.HF, False
    made = [v.value for k, v in values.items() if k in CLASS_KEYS and v.id == "scalar"]
    lightning = any(str(name).rpartition(".")[2] in STRATEGY_CLASSES for name in made) or path[-2:] == ("strategy", "init_args")
    return state, Framework.LIGHTNING if lightning else None, False


def _truth(node: yaml.Node) -> bool | None:
    text = str(node.value).lower() if node.id == "scalar" else ""
    return True if text in _TRUE else False if text in _FALSE else None


def _mappings(root: yaml.Node) -> Iterator[tuple[tuple[str, ...], yaml.MappingNode]]:
    """(keys on the way, mapping) of every mapping, each once, in order."""
    seen: set[int] = set()
    stack: list[tuple[tuple[str, ...], yaml.Node]] = [((), root)]
    while stack:
        path, node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node.id == "mapping":
            yield path, node
            stack += [((*path, str(k.value) if k.id == "scalar" else ""), v) for k, v in reversed(node.value)]
        elif node.id == "sequence":
            stack += [((*path, ""), v) for v in reversed(node.value)]


def _shared(root: yaml.Node) -> set[int]:
    """The scalars that an alias takes to another place as well."""
    once: set[int] = set()
    twice: set[int] = set()
    for _, mapping in _mappings(root):
        for _, value in mapping.value:
            (twice if id(value) in once else once).add(id(value))
    return twice
