"""The options of a program whose parser makes them of dataclasses: `HfArgumentParser((ModelArguments, TrainingArguments))`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from codemods.analysis.class_index import ClassSite, find_class
from codemods.analysis.job_files.command_runs import ProgramOption
from codemods.analysis.job_files.shown_run import UNKNOWN
from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule
from codemods.runtime.record import record
from codemods.store.project import Project

_PARSER, _PARSES = "HfArgumentParser", "parse_args_into_dataclasses"
_OF_A_TRAINER = ("do_train", "do_eval", "do_predict")


@record
class MadeOptions:
    """held: names that hold the objects that the parser makes."""

    options: Mapping[str, ProgramOption]
    held: frozenset[str]


def dataclass_options(project: Project, files: frozenset[str]) -> MadeOptions | None:
    """Of the only parser of that kind that the files have; None where there is none, or there are several."""
    speaking = (path for path in sorted(files) if _PARSER.encode() in (project.read(path) or b""))
    found = [m for path in speaking if isinstance(m := project.module(path), SourceModule)]
    made = [(m, call) for m in found for call in m.calls_named(_PARSER)]
    if len(made) != 1:
        return None
    module, call = made[0]
    options: dict[str, ProgramOption] = {name: ProgramOption((f"--{name}",), "False", "True") for name in _OF_A_TRAINER}
    for site in _classes(project, module, call):
        options |= dict(_fields(site))
    held = {last(dotted(name)) for parse in module.calls_named(_PARSES) for name in _targets(module, parse)}
    stored = {
        n.attr for m in found for n in m.nodes(ast.Attribute) if isinstance(n.ctx, ast.Store) and last(dotted(n.value)) in held
    }
    known = {name: ProgramOption(o.flags, UNKNOWN, UNKNOWN) if name in stored else o for name, o in options.items()}
    return MadeOptions(known, frozenset(held - {""}))


def _classes(project: Project, module: SourceModule, call: ast.Call) -> Iterator[ClassSite]:
    given = call.args[0] if call.args else None
    for name in given.elts if isinstance(given, (ast.Tuple, ast.List)) else [given]:
        if name is not None and (site := find_class(project, module, dotted(name))) is not None:
            yield site


def _fields(site: ClassSite) -> Iterator[tuple[str, ProgramOption]]:
    for statement in site.node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            switch = ast.unparse(statement.annotation) in ("bool", "Optional[bool]")
            yield (
                statement.target.id,
                ProgramOption((f"--{statement.target.id}",), _default(statement.value), "True" if switch else None),
            )


def _default(value: ast.expr | None) -> str | None:
    if isinstance(value, ast.Call):
        value = next((k.value for k in value.keywords if k.arg == "default"), ast.Constant("") if not value.keywords else value)
    if not isinstance(value, ast.Constant):
        return UNKNOWN
    return None if value.value is None else str(value.value)


def _targets(module: SourceModule, call: ast.Call) -> Iterator[ast.expr]:
    statement = module.statement_of(call)
    for target in statement.targets if isinstance(statement, ast.Assign) else ():
        yield from target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
