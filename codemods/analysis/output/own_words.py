"""Values that each rank has for itself, whatever its data: drawn at random, of its device, its environment, its pipeline stage.

A line that shows one, or stands under a test of one, is that rank's own word.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from codemods.analysis.call_graph import called_function
from codemods.analysis.distribution import is_test_file
from codemods.analysis.loading.same_program import whole_program
from codemods.analysis.model.signatures import returned
from codemods.analysis.names import dotted, last, qualified
from codemods.analysis.output.effect_kinds import names_rank
from codemods.analysis.output.natures import values_of
from codemods.data import host_only
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_DEPTH = 6
# What is worked out of a draw is as random, but for these.
_CARRY = frozenset({"int", "float", "round", "str", "list", "tuple", "sorted"})
_CARRYING = ("torch.", "numpy.", "math.")
_SAME = frozenset(
    {"shape", "size", "dtype", "ndim", "dim", "numel", "device", "requires_grad", "zeros_like", "ones_like", "empty_like"}
)
_NO_DRAWS = frozenset(
    {"seed", "manual_seed", "manual_seed_all", "set_rng_state", "get_state", "set_state", "getstate", "setstate", "RandomState",
     "default_rng", "Random", "Generator", "random_split", "dropout", "shuffle"}
)  # fmt: skip
_SEEDS = frozenset(
    {"manual_seed", "manual_seed_all", "seed_everything", "set_seed", "seed_all", "fix_seed", "set_random_seed", "setup_seed",
     "same_seeds", "seed_torch", "init_seeds", "set_seeds", "set_all_seeds", "random_seed"}
)  # fmt: skip
_OF_THE_DEVICE = frozenset(
    {"is_bf16_supported", "get_device_name", "get_device_properties", "get_device_capability", "mem_get_info", "memory_allocated",
     "max_memory_allocated", "memory_reserved", "max_memory_reserved", "memory_summary", "is_current_stream_capturing"}
)  # fmt: skip
_ITS_PARTS = frozenset({"parameters", "named_parameters", "modules", "named_modules", "state_dict"})
_PIPELINES = (b"PipelineModule", b"PipelineStage(", b"pipelining")
_EVALUATING = frozenset({"evaluation_loop", "prediction_loop"})
_TOGETHER = lazy(r"gather|reduce|nested_concat|distributed_concat|synchronize_between")


def is_own_word(project: Project, module: SourceModule, part: ast.expr) -> bool:
    """True for a printed value that this rank has for itself, or that is worked out of one."""
    return is_drawn(project, module, part) or _is_of_its_stage(project, module, part) or _is_of_its_evaluation(module, part)


def asks_the_process(module: SourceModule, test: ast.expr) -> bool:
    """True for a test of what the rank's own device can do, or of what its own environment holds."""
    for node in (n for given in (test, *_given(module, test)) for n in walk(given)):
        if isinstance(node, ast.Call) and last(dotted(node.func)) in _OF_THE_DEVICE:
            return True
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            held = node.comparators[0]
            held = held.func.value if isinstance(held, ast.Call) and isinstance(held.func, ast.Attribute) else held
            if dotted(held) in ("os.environ", "environ"):
                return True
    return False


def speaks_for_each(module: SourceModule, function: FunctionNode | ast.Module, statements: Sequence[ast.AST]) -> bool:
    """True where another line of the function, not among `statements`, names the rank: it prints for each of them on purpose."""
    inside = {id(n) for s in statements for n in walk(s)}
    calls = (c for c in module.calls_named("print") if id(c) not in inside and module.function_of(c) is function)
    return any(names_rank(module.text_of(c)) for c in calls)


def _given(module: SourceModule, test: ast.expr) -> list[ast.expr]:
    return [v for n in walk(test) if isinstance(n, ast.Name) for v in values_of(module, n)]


def is_drawn(project: Project, module: SourceModule, part: ast.expr) -> bool:
    """True for a value that is drawn at random, in a program that gives its processes no common seed for certain."""
    return _draws(project, module, part, _DEPTH) and not _has_common_seed(project, module)


def _draws(project: Project, module: SourceModule, node: ast.expr, depth: int) -> bool:
    if depth < 0:
        return False
    if isinstance(node, ast.Name):
        return any(_draws(project, module, v, depth - 1) for v in values_of(module, node))
    if isinstance(node, ast.Call):
        return _call_draws(project, module, node, depth)
    if isinstance(node, ast.Attribute):
        return node.attr not in _SAME and _draws(project, module, node.value, depth)
    inner: list[ast.expr] = []
    if isinstance(node, ast.BinOp):
        inner = [node.left, node.right]
    elif isinstance(node, (ast.Subscript, ast.FormattedValue, ast.Starred)):
        inner = [node.value]
    elif isinstance(node, ast.UnaryOp):
        inner = [node.operand]
    elif isinstance(node, (ast.Tuple, ast.List)):
        inner = node.elts
    elif isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        inner = [node.elt]
    return any(_draws(project, module, i, depth) for i in inner)


def _call_draws(project: Project, module: SourceModule, call: ast.Call, depth: int) -> bool:
    name = qualified(module, call.func)
    if (name in host_only.RANDOM or name.startswith(host_only.RANDOM_PREFIXES)) and last(name) not in _NO_DRAWS:
        return not any(k.arg == "generator" for k in call.keywords)
    if last(name) in _SAME:
        return False
    if name in _CARRY or name.startswith(_CARRYING):
        return any(_draws(project, module, a, depth) for a in call.args)
    site = called_function(project, module, call)
    if site is not None:
        return any(_draws(project, site.module, v, depth - 1) for v in returned(site.node, site.module))
    if isinstance(call.func, ast.Attribute) and call.func.attr not in _SAME:
        return _draws(project, module, call.func.value, depth)  # `torch.rand(4).to(device)`
    return False


def _has_common_seed(project: Project, module: SourceModule) -> bool:
    """True where a file of the program seeds its processes under no test: alike, for all that is known."""

    def ask() -> bool:
        paths = whole_program(project, module.path)
        stem = module.path.removesuffix(".py").rpartition("/")[2]
        users = {u for u in project.files_importing(stem) if not is_test_file(u)}
        for path in sorted(paths | users):
            other = project.module(path) if any(s.encode() in (project.read(path) or b"") for s in _SEEDS) else None
            if other is not None and any(_is_sure(other, call) for call in other.calls_named(*_SEEDS)):
                return True
        return False

    return project.keep(("common seed", module.path), ask)


def _is_sure(module: SourceModule, call: ast.Call) -> bool:
    if names_rank(module.text_of(call)) or not (call.args or call.keywords):
        return False
    if isinstance(call.func, ast.Attribute) and call.func.attr.startswith("manual_seed"):
        if isinstance(call.func.value, ast.Call) or not qualified(module, call.func).startswith("torch."):
            return False  # of a generator
    for up in module.ancestors(call):
        if isinstance(up, ast.IfExp):
            return False
        if isinstance(up, ast.If) and "cuda" not in module.text_of(up.test) and "__main__" not in module.text_of(up.test):
            return False
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return True
    return True


def _is_of_its_stage(project: Project, module: SourceModule, part: ast.expr) -> bool:
    """True for what is counted over the parameters of a model in a project whose ranks have a stage of a pipeline each."""
    if not any(isinstance(n, ast.Call) and last(dotted(n.func)) in _ITS_PARTS for n in walk(part)):
        return False
    return any(not is_test_file(p) for word in _PIPELINES for p in project.files_containing(word))


def _is_of_its_evaluation(module: SourceModule, part: ast.expr) -> bool:
    """True for a number in an evaluation loop that a Trainer of transformers calls with its loader, and that gathers nothing."""
    function = module.function_of(part)
    if function is None or function.name not in _EVALUATING or isinstance(part, (ast.Constant, ast.JoinedStr)):
        return False
    return any(a.arg == "dataloader" for a in function.args.args) and _TOGETHER.search(module.text_of(function)) is None
