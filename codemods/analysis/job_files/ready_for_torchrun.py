"""Is a script of `torch.distributed.launch` ready for torchrun, which hands over no `--local_rank` and sets `LOCAL_RANK`?

Every rank of one that is not would take the local rank that the option has by default.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from posixpath import dirname, join, normpath

from codemods.analysis.distribution import is_test_file
from codemods.analysis.frameworks import transformers_pin
from codemods.analysis.job_files.dataclass_parsers import refusing_parser
from codemods.analysis.job_files.local_rank_option import PASSED, SPELLINGS, from_environment, local_rank_options, options_of
from codemods.analysis.job_files.named_files import named_file
from codemods.analysis.job_files.old_commands import OldCommand
from codemods.analysis.loading.same_program import whole_program
from codemods.analysis.ranks.launcher_variables import is_under_a_test, variables_set
from codemods.api.findings import Applicability, Edit, Evidence, lowest
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record, replace
from codemods.store.import_targets import folders_above
from codemods.store.project import Project

_OWN_FOLDER = lazy(r"[\"']?(?:\$\(dirname [^)]*\)|`dirname [^`]*`)[\"']?/")
_ANY_FOLDER = lazy(r"^(?:[\"']?\$\{?\w+\}?[\"']?/)+")
_ENVIRONMENT = (b"LOCAL_RANK",)
_SPAWNS = lazy(rb"\b(?:mp|multiprocessing)\.spawn\(")
_HANDLED_SINCE = (4, 2)  # transformers: TrainingArguments takes LOCAL_RANK
_OF_ALL_RANKS = lazy(rb"rank\w*(?:\(\))?[ \t]*%[ \t]*[^\n]{0,40}(?:device_count|gpu)")


# Parsers that make options of parameters and fields.
_OF_FIELDS = lazy(rb"HfArgumentParser|\bfire\.Fire|\bclick\.|typer|tyro|simple_parsing|pyrallis|DEFINE_integer")
_FIELD = lazy(
    rb"(?m)^[ \t]+(?:def \w+\([^)]*)?local_rank[ \t]*[:=][^=]|local_rank[ \t]*:[ \t]*(?:int|Optional)|DEFINE_\w+\([\"']local_rank"
)


@record
class Readiness:
    """edits: what makes the script ready, none where it is. why: the reason that it is not, and cannot be made so.
    refused: the parser, as a sentence names it, that refuses the option which the launcher of torch 2 passes; "" where none does.
    refusal: the same of a parser that is not argparse's own, as the rest of a sentence.
    """

    level: Applicability
    why: str = ""
    evidence: tuple[Evidence, ...] = ()
    edits: tuple[Edit, ...] = ()
    assumes: str = ""
    refused: str = ""
    refusal: str = ""


def is_only_named_so(command: OldCommand, script: str) -> bool:
    """True for a script that stands in a folder which the command does not speak of."""
    folder = dirname(script)
    near = folder in folders_above(command.file.path) or command.by_module or command.file.path == script
    return not near and re.search(rf"(?<![\w-]){re.escape(folder.rpartition('/')[2])}(?![\w-])", command.file.text) is None


def scripts_of(project: Project, command: OldCommand) -> tuple[str, ...]:
    """The files that the command may mean by its script: the folder it is given in is not always shown."""
    word, path = command.script, command.file.path
    if word is None:
        return ()
    if word.raw in ("__file__", "sys.argv[0]"):
        return (path,)
    written = word.text
    if command.by_module:
        resolved = project.resolve(written, "run.py") or project.resolve(written, path)
        return (resolved.path,) if resolved is not None and not resolved.rest else ()
    if own := _OWN_FOLDER.match(word.raw):
        beside = normpath(join(dirname(path), word.raw[own.end() :].strip("\"'")))
        return (beside,) if beside in project.files else ()
    plain = _ANY_FOLDER.sub("", written).removeprefix("./")
    if not plain.endswith(".py") or "$" in plain:
        return ()
    if (found := named_file(project, path, written, command.above)) is not None:
        return (found,)
    end = "/" + normpath(plain).lstrip("./")
    return tuple(p for p in project.python_files if f"/{p}".endswith(end))


def readiness(project: Project, script: str) -> Readiness:
    """What is known of one script."""
    return project.keep(("ready for torchrun", script), lambda: _find(project, script))


def _find(project: Project, script: str) -> Readiness:
    paths = [p for p in sorted(whole_program(project, script)) if not is_test_file(p)]
    modules = [m for p in paths if b"rank" in (project.read(p) or b"").lower() and (m := project.module(p)) is not None]
    if (port := next((f"{m.path}:{n.lineno}" for m in modules for n in _own_ports(m)), "")):
        # the ranks ask the agent's store, which listens where the launcher says (run with torch 2.13: none found another)
        why = f"{port} sets another MASTER_PORT than the launcher, and no rank would find the others"
        return Readiness(Applicability.DISPLAY, why)
    options = [(m, call) for m in modules for call in local_rank_options(m)]
    if (m := next((m for m in modules if _reads_it_itself(m)), None)) is not None:
        return Readiness(Applicability.DISPLAY, f"{m.path} looks for the option in another way than by argparse")
    if not options:
        return replace(_without_option(project, script, paths), refusal=refusing_parser(project, script, paths))
    takes_both = any(PASSED in options_of(call) for _, call in options)  # an option for each spelling will do
    refused = next((f"{m.path}:{call.lineno}" for m, call in options if not takes_both and _refuses(m, call)), "")
    found = [replace(_of_option(modules, m, call), refused=refused) for m, call in options]
    if (not_ready := next((f for f in found if f.why), None)) is not None:
        return not_ready
    evidence = tuple(e for f in found for e in f.evidence)
    return Readiness(
        lowest(*(f.level for f in found)), "", evidence[:1], tuple(e for f in found for e in f.edits), refused=refused
    )


def _own_ports(module: SourceModule) -> Iterator[ast.stmt]:
    """Where the program sets MASTER_PORT, whatever a launcher has set."""
    for found in variables_set(module) if module.holds(b"MASTER_PORT") else ():
        kept = "MASTER_PORT" in module.text_of(found.value)
        if found.variable == "MASTER_PORT" and not kept and not is_under_a_test(module, found.statement):
            yield found.statement


def _refuses(module: SourceModule, call: ast.Call) -> bool:
    """True where the parser ends the program at what it does not know."""
    return bool(module.calls_named("parse_args")) or not module.calls_named("parse_known_args")


def _reads_it_itself(module: SourceModule) -> bool:
    """True where a text names the option outside of argparse's call, and of what the file only says."""
    if not any(module.holds(s.encode()) for s in SPELLINGS):
        return False
    given = {id(a) for call in local_rank_options(module) for a in call.args}
    named = (n for n in module.nodes(ast.Constant) if isinstance(n.value, str) and id(n) not in given)
    return any(n.value.partition("=")[0] in SPELLINGS for n in named if isinstance(n.value, str))


def _without_option(project: Project, script: str, paths: list[str]) -> Readiness:
    """A program that no option tells its local rank."""
    texts = [project.read(path) or b"" for path in paths]
    if any(_OF_FIELDS.search(t) for t in texts) and any(_FIELD.search(t) for t in texts):
        return Readiness(Applicability.DISPLAY, f"{script} may take its local rank from an option that a field makes")
    if any(b"sys.argv[1" in t and _by_place(project, p) for p, t in zip(paths, texts, strict=True)):
        return Readiness(Applicability.DISPLAY, f"{script} reads its arguments by their place, and torchrun gives one less")
    if any(_SPAWNS.search(t) for t in texts):
        return Readiness(Applicability.DISPLAY, f"{script} starts its ranks itself, and needs no launcher")
    for path in paths:
        data = project.read(path) or b""
        if any(word in data for word in _ENVIRONMENT):
            return Readiness(Applicability.SAFE, "", (_shown(project, path, b"LOCAL_RANK", "takes LOCAL_RANK"),))
        if _OF_ALL_RANKS.search(data):
            return Readiness(Applicability.SAFE, "", (Evidence("safe", "works its GPU out of the rank", path, _line(data)),))
    for path in paths:
        data = project.read(path) or b""
        if b"TrainingArguments" in data and b"transformers" in data:
            pin = transformers_pin(project, near=script)
            sure = pin is None or pin.surely_at_least(_HANDLED_SINCE)
            shown = _shown(project, path, b"TrainingArguments", "transformers takes LOCAL_RANK for its arguments")
            assumes = "" if sure else "assumes a transformers of 4.2 or later, which takes LOCAL_RANK"
            return Readiness(Applicability.SAFE if sure else Applicability.UNSAFE, "", (shown,), (), assumes)
    return Readiness(Applicability.DISPLAY, f"{script} is not seen to take LOCAL_RANK, which torchrun sets")


def _by_place(project: Project, path: str) -> bool:
    """True where an argument is read by its place, unless it is the only one, as programs ask for a file of arguments."""
    module = project.module(path)
    for node in module.nodes(ast.Subscript) if module is not None else ():
        assert module is not None
        if module.text_of(node.value) == "sys.argv" and not any(_counts(module, up) for up in module.ancestors(node)):
            return True
    return False


def _counts(module: SourceModule, node: ast.AST) -> bool:
    test = node.test if isinstance(node, (ast.If, ast.IfExp)) else node if isinstance(node, ast.BoolOp) else None
    return test is not None and "len(sys.argv)" in module.text_of(test)


def _line(data: bytes) -> int:
    found = _OF_ALL_RANKS.search(data)
    return data[: found.start()].count(b"\n") + 1 if found else 1


def _shown(project: Project, path: str, word: bytes, what: str) -> Evidence:
    data = project.read(path) or b""
    return Evidence("static", what, path, data[: data.index(word)].count(b"\n") + 1)


def _of_option(modules: list[SourceModule], module: SourceModule, call: ast.Call) -> Readiness:
    """A script whose parser has the option."""
    given = {k.arg: k.value for k in call.keywords}
    required = given.get("required")
    strict = required is not None and not (isinstance(required, ast.Constant) and not required.value)
    default = given.get("default")
    if not strict and default is not None and "LOCAL_RANK" in module.text_of(default):
        return Readiness(Applicability.SAFE, "", (Evidence("safe", "the option's default is LOCAL_RANK", *_at(module, call)),))
    if not strict and (place := _taken(modules, default)) is not None:
        return Readiness(Applicability.SAFE, "", (Evidence("safe", "LOCAL_RANK counts for the option", *_at(*place)),))
    if not strict and not _is_read(modules):
        return Readiness(Applicability.SAFE, "", (Evidence("safe", "the option is not read", *_at(module, call)),))
    edits, why = from_environment(module, call, (other for m in modules for other in local_rank_options(m)))
    if not edits:
        place_of = f"{module.path}:{call.lineno}"
        return Readiness(Applicability.DISPLAY, f"the option {PASSED} of {place_of} is read, which torchrun does not give: {why}")
    shown = Evidence("safe", "the option takes LOCAL_RANK for its default by this fix", *_at(module, call))
    return Readiness(Applicability.SAFE, "", (shown,), tuple(edits))


def _at(module: SourceModule, node: ast.expr | ast.stmt) -> tuple[str, int]:
    return module.path, node.lineno


def _taken(modules: list[SourceModule], default: ast.expr | None) -> tuple[SourceModule, ast.stmt] | None:
    """The statement that puts LOCAL_RANK in the place of the option, on every process that a launcher starts."""
    for module in modules:
        for assign in module.nodes(ast.Assign) if module.holds(b"LOCAL_RANK") else ():
            targets = [t for t in assign.targets if isinstance(t, ast.Attribute) and t.attr == "local_rank"]
            value = module.text_of(assign.value)
            if targets and "LOCAL_RANK" in value and _under_the_launcher(module, assign, default):
                return module, assign
    return None


def _under_the_launcher(module: SourceModule, statement: ast.stmt, default: ast.expr | None) -> bool:
    """True where only tests of what the launcher sets stand above, or of the default that holds where nothing is handed over."""
    inner: ast.AST = statement
    for up in module.ancestors(statement):
        if isinstance(up, (ast.For, ast.While, ast.Try, ast.ExceptHandler)):
            return False
        if isinstance(up, ast.If) and not (inner in up.body and _is_the_default(module, up.test, default)):
            words = re.findall(r"[\"'](\w+)[\"']", module.text_of(up.test))
            if words == ["__main__"]:
                break  # the top of the program
            if inner not in up.body or not words or not set(words) <= {"LOCAL_RANK", "RANK", "WORLD_SIZE"}:
                return False
        inner = up
    return True


def _is_the_default(module: SourceModule, test: ast.expr, default: ast.expr | None) -> bool:
    """`args.local_rank is None`, `args.local_rank == -1` where that is the option's default."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], (ast.Is, ast.Eq)):
        return False
    asked = isinstance(test.left, ast.Attribute) and test.left.attr == "local_rank"
    return asked and module.text_of(test.comparators[0]) == (module.text_of(default) if default is not None else "None")


def _is_read(modules: list[SourceModule]) -> bool:
    """False where the field goes into the environment alone, and there only where the launcher has put nothing."""
    whole = any(m.holds(b"vars(") or m.holds(b".__dict__") for m in modules)
    for module in modules:
        if any(n.value == "local_rank" for n in module.nodes(ast.Constant)):
            return True
        if whole and any(a.arg == "local_rank" for a in module.nodes(ast.arg)):
            return True  # all options may be handed on by their names
        for read in module.reads_of("local_rank"):
            if isinstance(read, ast.Attribute) and isinstance(read.ctx, ast.Load) and not _fills_a_gap(module, read):
                return True
    return False


def _fills_a_gap(module: SourceModule, read: ast.Attribute) -> bool:
    """`if "LOCAL_RANK" not in os.environ: os.environ["LOCAL_RANK"] = str(args.local_rank)`."""
    statement = module.statement_of(read)
    up = module.parent(statement)
    if not isinstance(up, ast.If) or statement not in up.body or not isinstance(statement, ast.Assign):
        return False
    test = up.test
    missing = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.NotIn) and "LOCAL_RANK" in module.text_of(test.left)
    return missing and "environ" in module.text_of(statement.targets[0])
