"""Attributes of argparse's options that no option of the program gives and nobody sets: reading one raises AttributeError.

Only where all options are to be seen: parsers whose options are written out, for every caller that hands its options here.
"""

from __future__ import annotations

import ast
import re

from codemods.analysis.bindings import bindings_at_top, bindings_in, bindings_of
from codemods.analysis.call_graph import FunctionSite, find_function
from codemods.analysis.distribution import is_test_file
from codemods.analysis.loading.same_program import whole_program
from codemods.analysis.model.signatures import returned
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.handed_arguments import arguments
from codemods.analysis.ranks.uses import uses_of
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_DEPTH = 4  # functions that hand the options on
_MOST_FILES = 150
OPTION_NAMES = frozenset({"args", "opt", "opts", "options", "hparams", "config", "cfg", "params", "arguments", "parsed_args"})
# What gives the options more attributes than the source names, or reads the command line in another way.
_OPEN = lazy(
    rb"parse_known_args|parse_intermixed|set_defaults|HfArgumentParser|parse_args_into|Namespace\(|namespace=|__dict__|fromfile_prefix"
    rb"|setattr\(\s*(?!self\b|cls\b|model\b|module\b|mod\b|layer\b)\w|vars\(\s*[\w.]+\s*\)\s*(?:\.(?:update|setdefault)|\[)|__getattr__"
    rb"|add_argparse_args|from_argparse_args|add_subparsers|jsonargparse|configargparse|exec\("
)
_BY_LIBRARIES = lazy(r"rank|world|gpu|dist|device|node|backend|deepspeed")
# These set such attributes on the options that they get.
_LIBRARIES = lazy(
    rb"deepspeed|\btimm\b|megatron|colossal|horovod|detectron2|mmcv|mmengine|fairseq|fairscale|ccelerat|init_distributed"
)
# A mention of an attribute that may give it a value.
_SETS = (
    rb"[\"']NAME[\"']|\.\s*NAME\b\s*(?:[-+*/|&%@]|//|\*\*|<<|>>)?=(?!=)|\.\s*NAME\b\s*:[^=\n]*=(?!=)"
    rb"|\.\s*NAME\b\s*,[^()\n]*[^=!<>]=(?!=)|\.\s*NAME\b\s+in\b|\bas\s+[\w.]+\.NAME"
)
_MAKES = frozenset({"add_argument_group", "add_mutually_exclusive_group"})
_READS = lazy(r"get_default|print_help|print_usage|format_help|error|exit|parse_args|add_argument|add_argument_group|"
              r"add_mutually_exclusive_group")  # fmt: skip


@record
class _Parsed:
    """Options as a call of `parse_args` gives them, in a function of a file. options: the attributes."""

    path: str
    options: frozenset[str]


def is_lost_option(project: Project, module: SourceModule, node: ast.Attribute) -> bool:
    """True for `args.name` where no parser that gives `args` has such an option, and no file of the program sets it."""
    if not isinstance(node.value, ast.Name) or node.value.id not in OPTION_NAMES or not isinstance(node.ctx, ast.Load):
        return False
    if node.attr.startswith("_"):
        return False
    function = module.function_of(node)
    key = ("options in", module.path, 0 if function is None else function.lineno, node.value.id)
    parsed = project.keep(key, lambda: _given(project, module, node.value, _DEPTH))
    if not parsed or any(node.attr in p.options for p in parsed):
        return False
    paths = sorted({module.path} | {p.path for p in parsed})
    return project.keep(("lost option", node.attr, *paths), lambda: _nobody_sets(project, paths, node.attr))


def _nobody_sets(project: Project, paths: list[str], name: str) -> bool:
    """True where the files of the programs only read the attribute, and give options no others than they name."""
    files = {f for path in paths for f in whole_program(project, path)}
    if len(files) > _MOST_FILES:
        return False
    sets = re.compile(_SETS.replace(b"NAME", re.escape(name.encode())))
    texts = [project.read(path) or b"" for path in sorted(files)]
    if _BY_LIBRARIES.search(name) and any(_LIBRARIES.search(text) for text in texts):
        return False
    return not any(_OPEN.search(text) or sets.search(text) for text in texts)


def _given(project: Project, module: SourceModule, name: ast.expr, depth: int) -> tuple[_Parsed, ...]:
    """The options that a name may hold; nothing where that is not seen, or where one of its values is something else."""
    if not isinstance(name, ast.Name) or depth < 0:
        return ()
    found: list[_Parsed] = []
    bindings = bindings_of(module, name)
    if not bindings:
        return _imported(project, module, name.id, depth)
    for bound in bindings:
        function = module.function_of(name)
        if bound.parameter:
            while function is not None and not bindings_in(module, function, name.id):
                function = module.function_of(function)
            here = _from_callers(project, module, function, name.id, depth) if function is not None else ()
        elif bound.value is None or bound.part:
            return ()
        else:
            here = _of_value(project, module, bound.value, depth)
        if not here:
            return ()
        found += here
    return tuple(found)


def _imported(project: Project, module: SourceModule, name: str, depth: int) -> tuple[_Parsed, ...]:
    """The options that another file holds at its top: `from options import args`."""
    imported = module.imports.get(name, ())
    found = project.resolve(imported[0].dotted, module.path) if len(imported) == 1 else None
    home = project.module(found.path) if found is not None and len(found.rest) == 1 else None
    if home is None or found is None or len(bound := bindings_at_top(home, found.rest[0])) != 1:
        return ()
    value = bound[0].value
    return () if value is None or bound[0].part else _of_value(project, home, value, depth - 1)


def _from_callers(project: Project, module: SourceModule, function: FunctionNode, name: str, depth: int) -> tuple[_Parsed, ...]:
    used = uses_of(project, module, function).outside_tests()
    handed = list(arguments(project, module, function, name))
    if used.more or used.handed_on or function.decorator_list or len(handed) != len(used.calls):
        return ()
    found: list[_Parsed] = []
    for home, value in handed:
        if is_test_file(home.path) or not (here := _of_value(project, home, value, depth - 1)):
            return ()
        found += here
    return tuple(found)


def _of_value(project: Project, module: SourceModule, value: ast.expr, depth: int) -> tuple[_Parsed, ...]:
    if isinstance(value, ast.Name):
        return _given(project, module, value, depth)
    if not isinstance(value, ast.Call) or depth < 0:
        return ()
    func = value.func
    if isinstance(func, ast.Attribute) and func.attr == "parse_args" and isinstance(func.value, ast.Name):
        options = _of_parser(project, module, func.value, depth)
        return (_Parsed(module.path, options),) if options else ()
    site = find_function(project, module, dotted(func))
    return _of_function(project, site, depth) if site is not None else ()


def _of_function(project: Project, site: FunctionSite, depth: int) -> tuple[_Parsed, ...]:
    """The options that a function of the project returns, whichever way it takes."""
    found: list[_Parsed] = []
    values = returned(site.node, site.module)
    if site.node.decorator_list:
        return ()
    for value in values:
        if not (here := _of_value(project, site.module, value, depth - 1)):
            return ()
        found += here
    return tuple(found)


def _of_parser(project: Project, module: SourceModule, parser: ast.Name, depth: int) -> frozenset[str] | None:
    """The attributes that a parser gives; None where its options are not all written out beside it."""
    bound = bindings_of(module, parser)
    if len(bound) != 1 or not isinstance(bound[0].value, ast.Call) or bound[0].part or depth < 0:
        return None
    made = bound[0].value
    scope = module.function_of(made)
    inherited: frozenset[str] = frozenset()
    if last(dotted(made.func)) != "ArgumentParser":
        site = find_function(project, module, dotted(made.func))
        values = returned(site.node, site.module) if site is not None else []
        if site is None or len(values) != 1 or not isinstance(values[0], ast.Name):
            return None
        above = _of_parser(project, site.module, values[0], depth - 1)
        if above is None:
            return None
        inherited = above
    elif any(k.arg in (None, "parents", "argument_default", "fromfile_prefix_chars") for k in made.keywords):
        return None
    own = _options(module, scope, parser.id)
    return inherited | own if own is not None else None


def _options(module: SourceModule, scope: FunctionNode | None, name: str) -> frozenset[str] | None:
    held = {name}
    for assign in module.nodes(ast.Assign):
        made = isinstance(assign.value, ast.Call) and last(dotted(assign.value.func)) in _MAKES
        if made and module.function_of(assign) is scope:
            held |= {t.id for t in assign.targets if isinstance(t, ast.Name)}
    found: set[str] = set()
    for read in (r for held_name in held for r in module.reads_of(held_name)):
        if not isinstance(read, ast.Name):
            continue
        up = module.parent(read)
        if isinstance(up, ast.Return):
            continue
        if not isinstance(up, ast.Attribute) or not _READS.fullmatch(up.attr):
            return None  # it is handed to somebody who may add options
        call = module.parent(up)
        if up.attr == "add_argument":
            option = _attribute_of(call) if isinstance(call, ast.Call) else None
            if option is None:
                return None
            found.add(option)
    return frozenset(found)


def _attribute_of(call: ast.Call) -> str | None:
    """Under which name the options hold what `add_argument` asks for."""
    named = next((k.value for k in call.keywords if k.arg == "dest"), None)
    if any(k.arg is None for k in call.keywords):
        return None
    if named is not None:
        return named.value if isinstance(named, ast.Constant) and isinstance(named.value, str) else None
    texts = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    if not texts or len(texts) != len(call.args):
        return None
    long = next((t for t in texts if t.startswith("--")), texts[0])
    return long.lstrip("-").replace("-", "_")
