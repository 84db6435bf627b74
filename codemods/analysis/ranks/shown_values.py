"""Which values an option or a setting has in the runs that a project shows: its default, what its commands, texts and files give.

Told by the name alone, over all programs: what one of them gives counts for each. None where one of the values cannot be told.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file
from codemods.analysis.job_files.documented_starts import starts
from codemods.analysis.job_files.script_texts import script_text
from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule
from codemods.files.text_entries import Entry, tables
from codemods.files.text_file import JSON_KINDS, NOTEBOOK, SHELL_KINDS, YAML_KINDS, TextFile
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

Known = str | int | float | bool | None

_TEXTS = (*SHELL_KINDS, *YAML_KINDS, *JSON_KINDS, NOTEBOOK, ".md", ".rst", ".txt", ".bat", ".ps1", ".cfg", ".ini", "Dockerfile")
_PROSE = (".md", ".rst", ".txt")
_OTHER_SETTINGS = (".toml", ".cfg", ".ini", ".conf", ".gin", ".jsonnet", ".json5")
_VALUE = r"(?P<value>\"[^\"\n]*\"|'[^'\n]*'|[^\s\"'\\|;&)`,\]]*)"
_WORDS: dict[str, Known] = {
    "true": True, "yes": True, "on": True, "false": False, "no": False, "off": False, "null": None, "none": None,
}  # fmt: skip
_OPTIONS = lazy(r"(?:^|\.)(?:add_argument|option|add_arg)$")
_MAKES = lazy(
    r"(?:^|\.)(?:\w*(?:Namespace|Config|Arguments|Args|Options)|dict|update|set_defaults|\w*[eE]asyDict|edict|AttrDict|replace)$"
)
_READERS = frozenset({"get", "getattr", "hasattr", "pop", "get_default"})
_MOST_FILES = 80


@record
class Shown:
    """values: all that it may be. written: a command or a file of settings says so, and not its default alone."""

    values: tuple[Known, ...]
    written: bool


def shown_values(project: Project, name: str) -> Shown | None:
    """The values of an option, a field of options or a key of settings; None where nothing gives it, or what is not known."""
    return project.keep(("shown values", name), lambda: _find(project, name))


def _find(project: Project, name: str) -> Shown | None:
    if len(name) < 3 or not name.isidentifier():
        return None  # `n`, `lr`: too short to be told from others
    paths = [p for p in project.files_containing(name.encode()) if not is_test_file(p)]
    paths += [p for p in project.files_containing(name.replace("_", "-").encode()) if p not in paths and not is_test_file(p)]
    if len(paths) > _MOST_FILES:
        return None
    modules = [m for m in map(project.module, paths) if m is not None]
    asked = [(m, c) for m in modules for c in _options(m, name)]
    found: list[Known] = []
    try:
        for module, call in asked:
            first = next(c for m, c in asked if m is module and m.function_of(c) is m.function_of(call))
            found += _of_option(call, first=call is first)
        for module in modules:
            found += _of_fields(module, name)
        written = [v for _, call in asked for v in _by_other_flags(project, call, name)]
        written += _of_settings(project, name)
        if not found and not written:
            return None
        for module in modules:
            found += _stored(module, name)
        written += _given(project, name, modules, asked=len(asked))
    except _Unknown:
        return None
    return Shown(tuple(dict.fromkeys([*found, *written])), bool(written))


class _Unknown(Exception):
    """A value that cannot be told."""


def _constant(node: ast.expr | None) -> Known:
    if node is None:
        return None
    try:
        value = ast.literal_eval(node)
    except ValueError:
        raise _Unknown from None
    if value is not None and not isinstance(value, (str, int, float, bool)):
        raise _Unknown
    return value


# Options and fields of options


def _options(module: SourceModule, name: str) -> Iterator[ast.Call]:
    """The calls that add the option to a parser."""
    for call in module.calls_named("add_argument", "option", "add_arg"):
        dest = next((k.value for k in call.keywords if k.arg == "dest"), None)
        spelled = {t.lstrip("-").replace("-", "_") for t in _spellings(call)}
        if (isinstance(dest, ast.Constant) and dest.value == name) or name in spelled:
            yield call


def _spellings(call: ast.Call) -> list[str]:
    return [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]


def _of_option(call: ast.Call, *, first: bool) -> Iterator[Known]:
    """first: of several that fill one field, `--load` and `--no-load`, the first says what it is without them."""
    given = {k.arg: k.value for k in call.keywords}
    action = _constant(given["action"]) if isinstance(given.get("action"), ast.Constant) else None
    flags = _spellings(call)
    if None in given or not all(f.startswith("-") for f in flags) or ("action" in given and action is None):
        raise _Unknown
    if action not in (None, "store", "store_true", "store_false"):
        raise _Unknown
    flag_of_click = isinstance(given.get("is_flag"), ast.Constant) and "default" not in given
    switch = action in ("store_true", "store_false") or flag_of_click
    default = _constant(given.get("default")) if "default" in given else (action == "store_false") if switch else None
    if isinstance(default, str) and dotted(given.get("type")) not in ("", "str"):
        raise _Unknown
    if not _is_required(given) and (first or "default" in given):
        yield default


def _by_other_flags(project: Project, call: ast.Call, name: str) -> Iterator[Known]:
    """What commands give by a flag that is called otherwise: `-f`, `--no-find` with `dest="find"`."""
    flags = (f for f in _spellings(call) if f.lstrip("-").replace("-", "_") != name or not f.startswith("--"))
    if any(f.lstrip("-").replace("-", "_") in s.flags for f in flags for s in starts(project)):
        action = next((k.value for k in call.keywords if k.arg == "action"), None)
        if not isinstance(action, ast.Constant) or action.value not in ("store_true", "store_false"):
            raise _Unknown
        yield action.value == "store_true"


def _is_required(given: dict[str | None, ast.expr]) -> bool:
    required = given.get("required")
    return isinstance(required, ast.Constant) and bool(required.value) and "default" not in given


def _of_fields(module: SourceModule, name: str) -> Iterator[Known]:
    """The defaults of a field of a dataclass."""
    if not module.holds(b"dataclass"):
        return
    for noted in module.nodes(ast.AnnAssign):
        owner = module.parent(noted)
        if not isinstance(noted.target, ast.Name) or noted.target.id != name or not isinstance(owner, ast.ClassDef):
            continue
        value = noted.value
        if isinstance(value, ast.Call) and last(dotted(value.func)) == "field":
            given = {k.arg: k.value for k in value.keywords}
            if "default_factory" in given or None in given:
                raise _Unknown
            value = given.get("default")
        if value is not None:
            yield _constant(value)


# Files of settings


def _of_settings(project: Project, name: str) -> Iterator[Known]:
    for path in project.files_containing(name.encode(), kinds=(*YAML_KINDS, *JSON_KINDS)):
        file = project.module(path)
        if not isinstance(file, TextFile):
            raise _Unknown
        for table in tables(file):
            yield from (_of_entry(e) for e in table.entries if e.key.rpartition(".")[2] == name)
    word = re.compile(rb"(?m)(?<![\w-])" + re.escape(name.encode()) + rb"[\"']?[ \t]*[=:]")
    held = (project.read(p) or b"" for p in project.files_containing(name.encode(), kinds=_OTHER_SETTINGS))
    if any(word.search(data) for data in held):
        raise _Unknown


def _of_entry(entry: Entry) -> Known:
    if entry.kind == "null":
        return None
    if entry.kind not in ("text", "number", "bool") or "${" in entry.value or "$(" in entry.value:
        raise _Unknown
    return entry.value if entry.quoted else _parsed(entry.value)


def _parsed(text: str) -> Known:
    """What a text stands for on a command line or in YAML."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    return value if isinstance(value, (int, float)) else text


# What code stores


def _stored(module: SourceModule, name: str) -> Iterator[Known]:
    fields = module.holds(b"dataclass")
    for node in module.nodes(ast.Attribute):
        if node.attr == name and not isinstance(node.ctx, ast.Load) and (fields or dotted(node.value) not in ("self", "cls")):
            yield _assigned(module, node)
    for constant in module.nodes(ast.Constant):
        if constant.value == name:
            yield from _of_key(module, constant)
    for keyword in module.nodes(ast.keyword):
        call = module.parent(keyword)
        if keyword.arg == name and isinstance(call, ast.Call) and _MAKES.search(dotted(call.func)):
            yield _constant(keyword.value)


def _assigned(module: SourceModule, target: ast.expr) -> Known:
    up = module.parent(target)
    if not isinstance(up, (ast.Assign, ast.AnnAssign)) or (isinstance(up, ast.Assign) and target not in up.targets):
        raise _Unknown
    return _constant(up.value)


def _of_key(module: SourceModule, constant: ast.Constant) -> Iterator[Known]:
    """What a text that is the name itself does: a key that is read says nothing, one that is written gives a value."""
    up = module.parent(constant)
    if isinstance(up, ast.Subscript):
        if not isinstance(up.ctx, ast.Load):
            yield _assigned(module, up)
    elif isinstance(up, ast.Dict) and constant in up.keys:
        yield _constant(up.values[up.keys.index(constant)])
    elif isinstance(up, ast.Call):
        if last(dotted(up.func)) not in _READERS and not _OPTIONS.search(dotted(up.func)):
            raise _Unknown
    elif isinstance(up, ast.Compare):
        return
    elif not isinstance(up, (ast.Expr, ast.keyword)):
        raise _Unknown


# What commands and texts give


def _given(project: Project, name: str, modules: list[SourceModule], *, asked: int) -> Iterator[Known]:
    spelled = re.escape(name).replace("_", "[-_]")
    flag = re.compile(rf"(?<![\w-])--?{spelled}(?![\w-])(?:[ \t]*=?[ \t]*{_VALUE})?")
    setting = re.compile(rf"(?<![\w-])(?:[\w]+\.)*{spelled}=(?!=){_VALUE}")
    in_code = sum(len(re.findall(rf"(?<![\w-])--?{spelled}(?![\w-])", m.text)) for m in modules if not isinstance(m, TextFile))
    if in_code > asked + _spoken(modules, spelled):
        raise _Unknown  # a command is put together in code
    word = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")
    for path in {p for w in {name, name.replace("_", "-")} for p in project.files_containing(w.encode(), kinds=_TEXTS)}:
        text = script_text(project, path)
        yield from (_of_flag(f) for f in flag.finditer(text))
        yield from (_of_word(f["value"]) for f in setting.finditer(text))
        if path.endswith(_PROSE) and word.search(setting.sub("", flag.sub("", text))):
            raise _Unknown  # "set it to 5"
    shorter = {f for s in starts(project) for f in s.flags if name.startswith(f) and f != name and len(f) > 3}
    if any(not _is_option(project, f) for f in shorter):
        raise _Unknown  # argparse takes the beginning of a name


def _spoken(modules: list[SourceModule], spelled: str) -> int:
    """How often comments and help texts have the flag: there it is no command."""
    helped = rf"(?:help|description|epilog)[ ]*=[^\n]*--{spelled}(?![\w-])"
    comment = re.compile(rf"(?m)^[ \t]*#[^\n]*--?{spelled}(?![\w-])|{helped}")
    return sum(len(comment.findall(m.text)) for m in modules if not isinstance(m, TextFile))


def _is_option(project: Project, flag: str) -> bool:
    spelled = {f"--{flag}", f"--{flag.replace('_', '-')}"}
    quoted = (f"{quote}{s}{quote}" for s in sorted(spelled) for quote in "\"'")
    return any(project.files_containing(q.encode()) for q in quoted)


def _of_flag(found: re.Match[str]) -> Known:
    value = found["value"] or ""
    return True if not value or (value.startswith("-") and not value[1:2].isdigit()) else _of_word(value)


def _of_word(text: str) -> Known:
    if "$" in text or "<" in text or "{" in text:
        raise _Unknown
    return _parsed(text.strip("\"'"))
