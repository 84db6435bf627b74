"""Which options `args` holds at a place, by the calls of `add_argument` of each parser that may have given it."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from codemods.analysis.bindings import bindings_at_top, bindings_in, bindings_of
from codemods.analysis.call_graph import FunctionSite, find_function
from codemods.analysis.distribution import is_test_file
from codemods.analysis.model.signatures import returned
from codemods.analysis.names import dotted, last
from codemods.analysis.ranks.handed_arguments import arguments
from codemods.analysis.ranks.option_domains import Domain, domain_of
from codemods.analysis.ranks.uses import uses_of
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_DEPTH = 4  # functions that hand the options on
_MAKES = frozenset({"add_argument_group", "add_mutually_exclusive_group"})
_READS = lazy(r"get_default|print_help|print_usage|format_help|error|exit|parse_args|add_argument|add_argument_group|"
              r"add_mutually_exclusive_group")  # fmt: skip


@record
class Parsed:
    """Options as a call of `parse_args` gives them, in a function of a file. options: the attributes, with what they can be."""

    path: str
    options: Mapping[str, Domain]


def parsed_options(project: Project, module: SourceModule, name: ast.Name) -> tuple[Parsed, ...]:
    """The options that a name may hold; nothing where that is not seen, or where one of its values is something else."""
    function = module.function_of(name)
    key = ("options in", module.path, 0 if function is None else function.lineno, name.id)
    return project.keep(key, lambda: _given(project, module, name, _DEPTH))


def _given(project: Project, module: SourceModule, name: ast.expr, depth: int) -> tuple[Parsed, ...]:
    """The options that a name may hold; nothing where that is not seen, or where one of its values is something else."""
    if not isinstance(name, ast.Name) or depth < 0:
        return ()
    found: list[Parsed] = []
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


def _imported(project: Project, module: SourceModule, name: str, depth: int) -> tuple[Parsed, ...]:
    """The options that another file holds at its top: `from options import args`."""
    imported = module.imports.get(name, ())
    found = project.resolve(imported[0].dotted, module.path) if len(imported) == 1 else None
    home = project.module(found.path) if found is not None and len(found.rest) == 1 else None
    if home is None or found is None or len(bound := bindings_at_top(home, found.rest[0])) != 1:
        return ()
    value = bound[0].value
    return () if value is None or bound[0].part else _of_value(project, home, value, depth - 1)


def _from_callers(project: Project, module: SourceModule, function: FunctionNode, name: str, depth: int) -> tuple[Parsed, ...]:
    used = uses_of(project, module, function).outside_tests()
    handed = list(arguments(project, module, function, name))
    if used.more or function.decorator_list or len(handed) != len(used.calls) + len(used.handed_on):
        return ()  # it is handed on to what does not just start processes with it
    found: list[Parsed] = []
    for home, value in handed:
        if is_test_file(home.path) or not (here := _of_value(project, home, value, depth - 1)):
            return ()
        found += here
    return tuple(found)


def _of_value(project: Project, module: SourceModule, value: ast.expr, depth: int) -> tuple[Parsed, ...]:
    if isinstance(value, ast.Name):
        return _given(project, module, value, depth)
    if not isinstance(value, ast.Call) or depth < 0:
        return ()
    func = value.func
    if isinstance(func, ast.Attribute) and func.attr == "parse_args" and isinstance(func.value, ast.Name):
        options = _of_parser(project, module, func.value, depth)
        return (Parsed(module.path, options),) if options else ()
    site = find_function(project, module, dotted(func))
    return _of_function(project, site, depth) if site is not None else ()


def _of_function(project: Project, site: FunctionSite, depth: int) -> tuple[Parsed, ...]:
    """The options that a function of the project returns, whichever way it takes."""
    found: list[Parsed] = []
    values = returned(site.node, site.module)
    if site.node.decorator_list:
        return ()
    for value in values:
        if not (here := _of_value(project, site.module, value, depth - 1)):
            return ()
        found += here
    return tuple(found)


def _of_parser(project: Project, module: SourceModule, parser: ast.Name, depth: int) -> dict[str, Domain] | None:
    """The attributes that a parser gives; None where its options are not all written out beside it."""
    bound = bindings_of(module, parser)
    if len(bound) != 1 or not isinstance(bound[0].value, ast.Call) or bound[0].part or depth < 0:
        return None
    made = bound[0].value
    scope = module.function_of(made)
    inherited: dict[str, Domain] = {}
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


def _options(module: SourceModule, scope: FunctionNode | None, name: str) -> dict[str, Domain] | None:
    held = {name}
    for assign in module.nodes(ast.Assign):
        made = isinstance(assign.value, ast.Call) and last(dotted(assign.value.func)) in _MAKES
        if made and module.function_of(assign) is scope:
            held |= {t.id for t in assign.targets if isinstance(t, ast.Name)}
    found: dict[str, Domain] = {}
    for read in (r for held_name in held for r in module.reads_of(held_name)):
        if not isinstance(read, ast.Name) or not _is_of(module, scope, read):
            continue
        up = module.parent(read)
        if isinstance(up, ast.Return):
            continue
        if not isinstance(up, ast.Attribute) or not _READS.fullmatch(up.attr):
            return None  # it is handed to somebody who may add options
        call = module.parent(up)
        if up.attr == "add_argument":
            option = _attribute_of(call) if isinstance(call, ast.Call) else None
            if option is None or not isinstance(call, ast.Call):
                return None
            domain = domain_of(call)
            found[option] = found[option].joined(domain) if option in found else domain
    return found


def _is_of(module: SourceModule, scope: FunctionNode | None, read: ast.Name) -> bool:
    """False for a name that another function, or a lambda, binds for itself: `lambda p: p.requires_grad`."""
    up = module.parent(read)
    while up is not None and not isinstance(up, ast.stmt):
        if isinstance(up, ast.Lambda) and read.id in {a.arg for a in (*up.args.posonlyargs, *up.args.args, *up.args.kwonlyargs)}:
            return False
        up = module.parent(up)
    return any(module.function_of(b.node) is scope and not b.parameter for b in bindings_of(module, read))


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
