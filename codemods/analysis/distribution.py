"""Does this code run on several processes at all? By what its file imports and reads, or by the file that calls it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from codemods.analysis.importing import imports_of
from codemods.analysis.names import dotted, family, last, qualified
from codemods.analysis.positions import above
from codemods.analysis.precision_alone import is_for_precision_alone
from codemods.analysis.switched_off import is_switched_off
from codemods.api.findings import Evidence
from codemods.files.import_statements import stem_of
from codemods.files.left_alone import left
from codemods.files.source import SourceModule, once_a_module
from codemods.files.without_docstrings import without_words
from codemods.runtime.lazy_pattern import lazy
from codemods.store.file_facts import file_fact
from codemods.store.project import Project

# Names of packages of which other parts serve one process too.
_NAMES = {
    "accelerate": frozenset({"Accelerator", "PartialState", "AcceleratorState", "DistributedDataParallelKwargs", "get_logger"}),
    "transformers": frozenset({"Trainer", "Seq2SeqTrainer", "TrainingArguments", "Seq2SeqTrainingArguments", "TrainerCallback"}),
}
_PACKAGES = frozenset({"lightning", "deepspeed", "horovod", "mpi4py", "trl"})
_HANDED_ON = frozenset({"lightning", *_NAMES})  # what a function is handed is one of theirs: `def save(fabric, model)`
_FOR_ONE_TOO = frozenset({"seed_everything"})  # what a script of one process imports of such a package as well
_OF_A_RUN = (b"rainer", b"abric", b"pl_module", b"rank", b"RANK", b"LightningModule", b"DataModule")
_VARIABLES = frozenset({"RANK", "LOCAL_RANK", "WORLD_SIZE", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"})
_WORDS = lazy(
    rb"rank|RANK|WORLD_SIZE|lightning|distributed|Distributed|ccelerat|Train(?:er|ingArg)|deepspeed|horovod|mpi4py|\btrl\b|dist_util"
    rb"|(?:init|setup)_dist|is_ma(?:in|ster)|is_primary|main_process"
)
_USES = lazy(rb"torch\s*\.\s*distributed|DistributedDataParallel|accelerate\.Accelerator\(")
_TESTS = lazy(r"(^|/)(tests?|testing)/|(^|/)(test_[^/]*|[^/]*_test|conftest|testing(_\w+)?)\.py$")

# `test/` beside `train/` holds the programs that evaluate a model: those do not bear a test's name.
_TEST_FOLDERS = lazy(r"(^|/)(tests|testing)/|(^|/)conftest\.py$|(^|/)test/(?:[^/]+/)*(?:test_[^/]*|[^/]*_test)\.py$")
_UNIT_TESTS = lazy(rb"\bdef test_|\bunittest\b|\bpytest\b|\bclass Test")
_JOINS = lazy(
    rb"init_process_group\(|\bAccelerator\(|DistributedDataParallel\(|\bTrainer(?:\.from_argparse_args)?\(|init_distributed"
)
_OWN_QUESTION = lazy(
    r"(?:get_|is_)?(?:global_|dist_)?(?:rank|rank_?zero|rank_?0|main_process|main|master|master_process|primary)|"
    r"(?:get_)?world_size|barrier|synchronize|all_(?:reduce|gather)(?:_\w+)?|reduce_(?:dict|tensor|mean)"
)
_QUESTIONS = lazy(
    rb"world_size|barrier|synchronize|all_(?:reduce|gather)|reduce_(?:dict|tensor|mean)|\b(?:main|master|primary)\b"
)
_ALONE = lazy(rb"^[ \t]*assert [^\n]*(?:num_processes|world_size)[^\n]*== 1\b", re.MULTILINE)
_OPTIONS = lazy(
    rb"argparse|parse_args|HfArgumentParser|hydra|OmegaConf|\bfire\b|\bclick\b|\btyper\b|\btyro\b"
    rb"|\b(?:args?|opts?|options|cfg|flags|hparams) *= *(?:\w+\.)*\w*(?:[aA]rg|[oO]pt|[pP]arse)\w*\("  # of the project
)
_LOADS = lazy(rb"load_state_dict|from_pretrained|load_pretrained|load_checkpoint|load_from_checkpoint|\.(?:test|validate|fit)\(")


@lru_cache(maxsize=4096)  # asked for each file that a search comes upon
def is_test_file(path: str) -> bool:
    """True for a repository's own tests, which run on one process."""
    return _TESTS.search(path) is not None


def is_test_module(module: SourceModule) -> bool:
    """As `is_test_file`, but for programs of that name: `test_net.py` evaluates a model, on several processes as well."""
    return is_test_file(module.path) and not _is_program(module) and left(module, None, "it is one of the repository's own tests")


@once_a_module
def _is_program(module: SourceModule) -> bool:
    return is_program(module.path, module.data)


def is_own_test(project: Project, path: str) -> bool:
    """As `is_test_module`, told from the bytes of a file."""
    return is_test_file(path) and not project.fact(is_program, path)


@file_fact
def is_program(path: str, data: bytes) -> bool:
    """True for a script with options that joins the processes of a run and loads a model; no framework of tests knows it."""
    if _TEST_FOLDERS.search(path) or b"__main__" not in data or _UNIT_TESTS.search(data) or _ALONE.search(data):
        return False
    return all(words.search(data) is not None for words in (_JOINS, _OPTIONS, _LOADS))


def runs_trials(module: SourceModule) -> bool:
    """True where Ray Tune starts the training: a trial is a process of its own, and has ranks only under Ray Train."""
    if not module.holds(b"ray") or not any(family(name) == "ray" for name in module.imported_modules):
        return False
    if any(name.startswith("ray.train") for name in module.imported_modules) or module.holds(b"TorchTrainer"):
        return False
    started = (c for c in module.calls_named("run", "run_experiments", "Tuner"))
    return any(qualified(module, c.func).startswith("ray.tune.") for c in started)


def ranks_in_file(project: Project, module: SourceModule) -> Evidence | None:
    """What in the file itself shows that several processes run it."""
    return project.keep(("ranks in file", module.path), lambda: _ranks_in_file(project, module))


def ranks_at(project: Project, path: str) -> Evidence | None:
    """As `ranks_in_file`, of a file that need not be parsed again for an answer that was given before."""

    def build() -> Evidence | None:
        module = project.module(path) if project.fact(speaks, path) else None
        return _ranks_in_file(project, module) if module is not None else None

    return project.keep(("ranks in file", path), build)


def _ranks_in_file(project: Project, module: SourceModule) -> Evidence | None:
    if not speaks(module.path, module.data) or is_for_precision_alone(project, module):
        return None
    if is_switched_off(project, module):
        return None
    for bound, found in module.imports.items():
        for item in found:
            if _shows_ranks(item.dotted) and not _is_left_behind(module, bound, item.dotted):
                return _shown(module, f"imports {item.dotted}", item.node)
    packages = [bound for bound, found in module.imports.items() if any(i.dotted in _NAMES for i in found)]
    for part in module.nodes(ast.Attribute) if packages else ():  # `accelerate.Accelerator()`
        shows = dotted(part).partition(".")[0] in packages and _shows_ranks(qualified(module, part))
        if shows and not _is_never_come_to(module, part):
            return _shown(module, f"uses {dotted(part)}", part)
    for node in [*module.nodes(ast.Attribute), *module.nodes(ast.Name)] if _is_used(module) else ():
        name = dotted(node)
        wraps = last(name) == "DistributedDataParallel" or name == "accelerate.Accelerator"
        if (wraps or name.startswith("torch.distributed")) and not _is_never_come_to(module, node):
            return _shown(module, f"uses {name}", node)
    for constant in module.nodes(ast.Constant) if any(v.encode() in module.data for v in _VARIABLES) else ():
        if isinstance(constant.value, str) and constant.value in _VARIABLES and not _is_set_to_a_literal(module, constant):
            return _shown(module, f"reads {constant.value}", constant)
    return _asks_by_own_function(project, module)


def _is_set_to_a_literal(module: SourceModule, variable: ast.Constant) -> bool:
    """True for `os.environ["LOCAL_RANK"] = "2"`: who writes the number down asks no launcher for it."""
    place = module.parent(variable)
    if not isinstance(place, ast.Subscript) or place.slice is not variable or not isinstance(place.ctx, ast.Store):
        return False
    assigned = module.parent(place)
    return isinstance(assigned, ast.Assign) and isinstance(assigned.value, ast.Constant)


def _asks_by_own_function(project: Project, module: SourceModule) -> Evidence | None:
    """A function of the project that asks the process group, in a project that starts one: `if is_main_process():`, `barrier()`.

    A program that starts none is run by one process, whatever it asks.
    """
    if module.holds(b"__main__"):
        return None
    for name, target, node in _own_questions(module):
        resolved = project.resolve(target, module.path)
        if resolved is None or len(resolved.rest) != 1:
            continue
        data = project.read(resolved.path) or b""
        if b"torch.distributed" in data and b"def " + resolved.rest[0].encode() in data and _starts_a_group(project):
            return _shown(module, f"asks {name}, which asks the process group", node)
    return None


def _own_questions(module: SourceModule) -> Iterator[tuple[str, str, ast.AST]]:
    """(name, what it may lead to, place) of names like `is_main_process` and `comm.get_rank` that the file reads."""
    for bound, found in module.imports.items():
        if _OWN_QUESTION.fullmatch(bound) and module.reads_of(bound):
            yield from ((item.dotted, item.dotted, item.node) for item in found)
    for part in module.nodes(ast.Attribute):
        if _OWN_QUESTION.fullmatch(part.attr) and isinstance(part.value, ast.Name):
            for item in module.imports.get(part.value.id, ()):
                yield dotted(part), f"{item.dotted}.{part.attr}", part


def _starts_a_group(project: Project) -> bool:
    return bool(project.files_containing(b"init_process_group("))


def _is_left_behind(module: SourceModule, bound: str, name: str) -> bool:
    """True for a name that nothing reads: what used it is gone, as in the twin of a script that one GPU runs, or cut off."""
    if family(name) == "lightning" and bound != "*" and not any(module.holds(word) for word in _OF_A_RUN):
        if all(getattr(module.parent(read), "attr", "") in _FOR_ONE_TOO for read in module.reads_of(bound)):
            return True  # `L.seed_everything(42)` alone
    if bound == "*" or family(name) in _HANDED_ON:
        return False
    return all(_is_never_come_to(module, read) for read in module.reads_of(bound))


def _is_never_come_to(module: SourceModule, node: ast.AST) -> bool:
    """True behind a `raise` or `return` of the same block: `raise NotImplementedError`, and the wrap that it was put above."""
    below = node
    for up in module.ancestors(node):
        if any(isinstance(s, (ast.Raise, ast.Return)) for s in above(module, below)):
            return True
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        below = up
    return False


def _is_used(module: SourceModule) -> bool:
    """True where the words are code: most files that hold them import or describe what they name."""
    if not _USES.search(module.data):
        return False
    named = ("DistributedDataParallel", "Accelerator")
    if any(n.attr.startswith("distributed") or n.attr in named for n in module.nodes(ast.Attribute)):
        return True
    return any(n.id == "DistributedDataParallel" for n in module.nodes(ast.Name))


def _shown(module: SourceModule, text: str, node: ast.AST) -> Evidence:
    return Evidence("several", f"the file {text}", module.path, getattr(node, "lineno", 0))


def _shows_ranks(name: str) -> bool:
    root = family(name)
    if root in _NAMES:
        return last(name) in _NAMES[root]
    if last(name) in _FOR_ONE_TOO:
        return False
    return root in _PACKAGES or name.startswith("torch.distributed") or last(name) == "DistributedDataParallel"


@file_fact
def speaks(path: str, data: bytes) -> bool:
    """True for a file with a word of several processes in its code; the head of a licence ("is distributed on an") is none."""
    del path
    if not _WORDS.search(data):
        return False
    code = without_words(data)
    return _WORDS.search(code) is not None or _QUESTIONS.search(code) is not None


def ranks_in_importers(project: Project, module: SourceModule) -> Evidence | None:
    """What in a file that imports from this one, directly, shows that several processes run it."""
    return ranks_above(project, module.path)


def ranks_above(project: Project, path: str) -> Evidence | None:
    """As `ranks_in_importers`, of a file that need not be parsed for it."""
    return project.keep(("ranks in importers", path), lambda: _ranks_above(project, path))


def _ranks_above(project: Project, path: str) -> Evidence | None:
    if (shown := _shown_by_importers(project, path, path)) is not None:
        return shown
    for package in project.files_importing(stem_of(path)):
        if package.endswith("/__init__.py") and (shown := _shown_by_importers(project, path, package)) is not None:
            if _brings(project, package, path):  # the package is parsed for it
                return shown
    return None


def _brings(project: Project, package: str, path: str) -> bool:
    """True for a package that imports names of the file: `from .helpers import *`."""

    def build() -> frozenset[str]:
        held = project.module(package)
        sources = held.nodes(ast.ImportFrom) if held is not None else ()
        found = (project.resolve("." * s.level + (s.module or "") + f".{s.names[0].name}", package) for s in sources)
        return frozenset(f.path for f in found if f is not None)

    return path in project.keep(("brought by", package), build)


def _shown_by_importers(project: Project, path: str, imported: str) -> Evidence | None:
    """What a file shows that imports from `imported`: the file at `path`, or a package that hands its names on."""
    named = "" if imported.endswith("__init__.py") else stem_of(imported)  # a package is what `from . import x` names, too
    data = project.read(path) or b""

    def is_meant(name: str, importer: str) -> bool:
        found = project.resolve(name, importer)
        if found is None or found.path != imported:
            return False
        if imported == path:
            return True
        return bool(found.rest) and re.search(rb"\b(?:def|class) %b\b" % found.rest[0].encode(), data) is not None

    for user in project.files_importing(stem_of(imported)):
        if user in (path, imported) or is_own_test(project, user) or not project.fact(speaks, user):
            continue
        if not any(is_meant(name, user) for name in imports_of(project, user) if named in name):
            continue  # it imports a file of the same name from elsewhere
        if (shown := ranks_at(project, user)) is None or (other := project.module(user)) is None:
            continue
        for item in (i for found in other.imports.values() for i in found):
            if is_meant(item.dotted, user):
                return Evidence("several", f"{user} uses it, and {shown.text}", user, item.node.lineno)
    return None
