"""The runs of a program that the commands of a project start: what each gives its options, and the defaults of the others."""

from __future__ import annotations

import ast
import re

from codemods.analysis.conditions import is_main_block
from codemods.analysis.job_files.documented_starts import Start, other_starts, starts, starts_of
from codemods.analysis.job_files.shown_run import UNKNOWN, Keys, ShownRun
from codemods.analysis.loading.same_program import whole_program
from codemods.analysis.names import dotted
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_PLACEHOLDER = lazy(r"[$<{`]|\.\.\.")
_SPREADS = lazy(r"(?i)ddp|fsdp|deepspeed")  # a strategy that a command names is meant for several processes
# What fills the options otherwise: a file of settings that is read into them.
_FILLED = lazy(
    rb"\bset_defaults\(|\bsetattr\(|\b__dict__\b|\bvars\([\w.]+\)(?:\.update|\[)|\bNamespace\(|parse_known_args\(\s*\["
)
_VALUE = r"(\"[^\"]*\"|'[^']*'|[^\s\"']+)"
_STORED = lazy(rb"\b(\w+)\.(\w+)[ \t]*=(?!=)")
_MOST = 200


@record
class ProgramOption:
    """An option of a program. default: what it has where no command gives it. given_alone: what a flag without a value makes of
    it, None for one that takes a value.
    """

    flags: tuple[str, ...]
    default: str | None
    given_alone: str | None


def command_runs(project: Project, path: str) -> tuple[ShownRun, ...]:
    """One for each command; nothing where there is none, or one may hold more than is written."""
    return project.keep(("command runs", path), lambda: tuple(_find(project, path)))


def _find(project: Project, path: str) -> list[ShownRun]:
    commands = starts_of(project, path) or []
    if any(c.more for c in commands) or len(commands) > _MOST or any(s.several and not s.script for s in starts(project)):
        return []
    if not commands or other_starts(project, path):
        return []
    options = program_options(project, path)
    return [_run(command, options) for command in commands] if options else []


def _run(command: Start, options: dict[str, ProgramOption]) -> ShownRun:
    values: dict[Keys, str | None] = {}
    for name, option in options.items():
        spelled = "|".join(map(re.escape, sorted(option.flags, key=len, reverse=True)))
        found = list(re.finditer(rf"(?<!\S)(?:{spelled})(?:(?:[ \t]+|=){_VALUE})?(?!\S)", command.given))
        values[(name,)] = _given(option, found[-1][1]) if found else option.default
    return ShownRun(values, (), command.several or _SPREADS.search(command.given) is not None)


def _given(option: ProgramOption, written: str | None) -> str | None:
    if option.given_alone is not None:
        return option.given_alone
    if written is None or written.startswith("--") or _PLACEHOLDER.search(written):
        return UNKNOWN
    return written.strip("\"'")


def program_options(project: Project, path: str) -> dict[str, ProgramOption]:
    """The options by the names of their fields; one that is asked for twice, or in a way of its own, is not known.

    What the program's own file asks for counts before what the files do that it imports.
    """
    found: dict[str, ProgramOption] = {}
    stored: dict[str, set[str]] = {}  # name -> files that may store into a field of that name
    asked: dict[str, str] = {}  # name -> the file
    for file in sorted(whole_program(project, path), key=lambda p: (p != path, p)):
        data = project.read(file) or b""
        for holder, name in _STORED.findall(data):
            if holder not in (b"self", b"cls"):
                stored.setdefault(name.decode(), set()).add(file)
        if b"add_argument(" not in data:
            continue
        if _FILLED.search(data):
            return {}
        module = project.module(file)
        for call in module.calls_named("add_argument") if module is not None else ():
            flags = tuple(a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str))
            long = next((f for f in flags if f.startswith("--")), "")
            given = {k.arg: k.value for k in call.keywords}
            name = _text(given.get("dest")) or long.lstrip("-").replace("-", "_")
            if not name or (asked.get(name) == path != file):
                continue
            option = _option(flags, given)
            found[name] = option if name not in found else ProgramOption((*found[name].flags, *flags), UNKNOWN, UNKNOWN)
            asked[name] = file
    changed = {name for name in found for file in stored.get(name, ()) if _stores(project, file, name, program=path)}
    return {name: ProgramOption(o.flags, UNKNOWN, UNKNOWN) if name in changed else o for name, o in found.items()}


def _stores(project: Project, file: str, name: str, *, program: str) -> bool:
    """True where a file gives the field a value of its own; what another file does as a program is none of this one."""
    module = project.module(file)
    fields = (n for n in module.nodes(ast.Attribute) if n.attr == name) if module is not None else ()
    for node in fields:
        if module is None or not isinstance(node.ctx, ast.Store) or dotted(node.value) in ("self", "cls"):
            continue
        if file == program or not any(isinstance(up, ast.If) and is_main_block(up) for up in module.ancestors(node)):
            return True
    return False


def _option(flags: tuple[str, ...], given: dict[str | None, ast.expr]) -> ProgramOption:
    action = _text(given.get("action")) if "action" in given else "store"
    if action in ("store_true", "store_false"):
        default = _literal(given["default"]) if "default" in given else str(action == "store_false")
        return ProgramOption(flags, default, str(action == "store_true"))
    if action != "store" or "nargs" in given or "const" in given or dotted(given.get("type")) == "bool":
        default = _literal(given["default"]) if "default" in given else None
        return ProgramOption(flags, default if action == "store" else UNKNOWN, UNKNOWN)
    return ProgramOption(flags, _literal(given["default"]) if "default" in given else None, None)


def _text(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _literal(node: ast.expr) -> str | None:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return UNKNOWN
    return None if value is None else str(value)
