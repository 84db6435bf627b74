"""Which parser of transformers refuses what `torch.distributed.launch` of torch 2 hands over?

Run: `HfArgumentParser` of transformers 4.45.2 takes `--local_rank` alone and ends with an error at `--local-rank=1`; since 4.46 a
field has both spellings.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from codemods.analysis.frameworks import transformers_pin
from codemods.analysis.names import last, qualified
from codemods.files.source import SourceModule
from codemods.store.project import Project

_BOTH_SPELLINGS = (4, 46)  # transformers
_PARSER, _PARSES = "HfArgumentParser", "parse_args_into_dataclasses"
_FIRST_ARGUMENT = "args"  # what is parsed instead of the command line
_LENIENT = "return_remaining_strings"


def refusing_parser(project: Project, script: str, program: Iterable[str]) -> str:
    """A sentence's end about the parser of a script, or of a file that it imports, which ends each process; "" for none."""
    pin = transformers_pin(project, near=script)
    if pin is None or not pin.surely_below(_BOTH_SPELLINGS):
        return ""
    for path in program:
        data = project.read(path) or b""
        if _PARSES.encode() not in data or _PARSER.encode() not in data or (path != script and b"__main__" in data):
            continue
        module = project.module(path)
        line = _line_of(module) if module is not None else 0
        if line:
            return f"the {_PARSER} at {path}:{line} takes `--local_rank` alone before transformers 4.46 ({pin.path}:{pin.line})"
    return ""


def _line_of(module: SourceModule) -> int:
    """The line that parses the command line, 0 where no parser does, or one passes over what it does not know."""
    made = [c for c in module.calls_named(_PARSER) if qualified(module, c.func).startswith("transformers.")]
    calls = module.calls_named(_PARSES)
    if not made or not calls or any(last(qualified(module, b)) == _PARSER for c in module.nodes(ast.ClassDef) for b in c.bases):
        return 0
    return calls[0].lineno if all(_refuses(c) for c in calls) else 0


def _refuses(call: ast.Call) -> bool:
    given = {k.arg: k.value for k in call.keywords}
    if call.args or None in given or _FIRST_ARGUMENT in given:
        return False
    lenient = given.get(_LENIENT)
    return lenient is None or (isinstance(lenient, ast.Constant) and not lenient.value)
