"""Does a file hold the run's settings alone, and does nobody read it? Each rank writes the same then, and no run misses it."""

from __future__ import annotations

import ast
import builtins
import re

from codemods.analysis.bound_values import assigned
from codemods.analysis.files.file_calls import Act, FileCall, file_call
from codemods.analysis.files.files_of_objects import dumps_config
from codemods.analysis.files.own_contents import contents
from codemods.analysis.names import dotted, is_parameter, qualified
from codemods.analysis.output.file_readers import reader_on_every_rank, suffixes
from codemods.analysis.output.shared_values import SETTINGS
from codemods.analysis.paths import origin_text
from codemods.files.source import SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_FILE_NAME = lazy(r"[\w-]+\.(?:json|ya?ml|pkl|txt|toml|py|cfg|ini)\b")
_DEPTH = 3
_WHOLE = frozenset(
    {"__dict__", "to_dict", "to_json_string", "to_yaml", "dump", "pretty", "pretty_text", "text", "_asdict", "dict", "copy"}
)


def is_unread_settings(project: Project, module: SourceModule, file: FileCall) -> bool:
    """True for `json.dump(vars(args), f)`, `OmegaConf.save(cfg, path)` and `cfg.dump(path)` into a file that nobody reads."""
    if file.act is not Act.WRITES or qualified(module, file.call.func).startswith("logging."):
        return False  # a log, whatever it is set up with
    if not _is_of_settings(module, file):
        return False
    function = module.function_of(file.call)
    if reader_on_every_rank(project, module, function or file.call, suffixes(module, file.path)):
        return False
    names = set(_FILE_NAME.findall(origin_text(module, file.path)))
    return not any(_is_read(project, name) for name in names)


def _is_read(project: Project, name: str) -> bool:
    """True where a call of the project reads a file of that name."""
    homes = (project.module(path) for path in project.files_containing(name.encode()))
    calls = ((home, call) for home in homes if home is not None for call in home.nodes(ast.Call))
    reads = ((home, f) for home, c in calls if (f := file_call(home, c)) is not None and f.act in (Act.READS, Act.LOADS))
    return any(re.search(rf"(?<![\w-]){re.escape(name)}", origin_text(home, f.path)) for home, f in reads)


def _is_of_settings(module: SourceModule, file: FileCall) -> bool:
    if dumps_config(module, file.call.func):
        return True
    held = [node for node in contents(module, file) if not isinstance(node, ast.Constant)]
    return bool(held) and all(_holds_settings(module, node, _DEPTH) for node in held)


def _holds_settings(module: SourceModule, node: ast.expr, depth: int) -> bool:
    """True for what is made of all the settings by functions of packages alone; `args.rows` may be anything."""
    if any(isinstance(n, ast.Attribute) and dotted(n.value) in SETTINGS and n.attr not in _WHOLE for n in walk(node)):
        return False
    names = [n for n in walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    values = [n for n in names if n.id not in module.imports and not hasattr(builtins, n.id)]
    return bool(values) and all(_is_setting(module, n, depth) for n in values)


def _is_setting(module: SourceModule, name: ast.Name, depth: int) -> bool:
    if name.id in SETTINGS:
        return True
    if depth == 0 or is_parameter(module, name.id, name):
        return False
    values = assigned(module, name, dotted(name))
    return bool(values) and all(_holds_settings(module, v, depth - 1) for v in values)
