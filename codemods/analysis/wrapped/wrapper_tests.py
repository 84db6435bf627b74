"""Whether a use of a wrapper stands under a test that asks what it is, or how many processes there are."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from codemods.analysis.handlers import handler_over
from codemods.analysis.ranks.kept_world_sizes import asks_for_kept_size
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy

# Words of a test that tells the wrapper from the model, or one process from several. A test of the rank (`rank == 0`) is none.
_ASKS = lazy(
    r"hasattr|isinstance|type\(|getattr|distribut|ddp|dp\b|parallel|world_?size|num_?process|n_?gpus?\b|num_?gpus?|gpus\b|nproc"
    r"|device_count|multi|deepspeed|fsdp|zero_?stage|rank\w*\s*(?:==|!=|<|>|>=)\s*-\s*1|is_initialized|n_?nodes?\b|use_?cuda|dist\b",
    2,
)  # fmt: skip  # 2: re.IGNORECASE
_RANK = lazy(r"(?:\w+\.)*dist(?:ributed)?\.\w*rank\w*\(\)")
# Words of a test that is true with several processes alone.
_MANY = lazy(
    r"world_?size\w*(?:\(\))?\s*(?:>\s*1|!=\s*1|>=\s*2)|(?:^|\.)(?:distributed|ddp)$|is_dist\w*\(\)|num_process\w*\s*>\s*1"
)
_DEVICES = lazy(r"torch\.cuda\.device_count\(\)\s*(?:>\s*1|!=\s*1|>=\s*2)")
_CAUGHT = frozenset({"AttributeError", "Exception", "BaseException"})
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


@lru_cache(maxsize=4096)  # the same tests are asked for each name below them
def asks_for_wrapper(text: str) -> bool:
    """True for the text of a test that may tell the wrapper from the bare model."""
    return _ASKS.search(_RANK.sub("rank", text)) is not None


def several_processes(text: str) -> bool:
    """True for the text of a test that is true with several processes alone."""
    return _MANY.search(text) is not None


def counts_devices(text: str) -> bool:
    """True for a test of the GPUs of the machine, and of nothing else: `torch.cuda.device_count() > 1`."""
    return _DEVICES.fullmatch(text.strip()) is not None


def is_tested(module: SourceModule, node: ast.AST, wrap: ast.AST | None = None) -> bool:
    """True where a test round the place, or an exit above it, asks; not where the wrap stands under the same test."""
    shared = {id(up) for up in module.ancestors(wrap)} if wrap is not None else set()
    tests = [test for holder, test in _tests(module, node) if id(holder) not in shared]
    if any(asks_for_wrapper(module.text_of(test)) or asks_for_kept_size(module, test) for test in tests):
        return True
    return is_caught(module, node)


def tests_over(module: SourceModule, node: ast.AST) -> Iterator[ast.expr]:
    """The tests round a place, and those of the exits above it."""
    return (test for _, test in _tests(module, node))


def conditions_of(module: SourceModule, node: ast.AST, stop: ast.AST | None) -> list[ast.AST]:
    """The tests, loops and handlers that decide whether a place is reached, up to `stop`."""
    found: list[ast.AST] = []
    for up in module.ancestors(node):
        if up is stop or isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
        if isinstance(up, (ast.If, ast.IfExp, ast.While, ast.ExceptHandler, ast.BoolOp, ast.match_case)):
            found.append(up)
    return found


def arms_exclude(module: SourceModule, one: ast.AST, other: ast.AST) -> bool:
    """True where one test lets only one of the two places be reached."""
    arms = {id(up): arm for up, arm in _arms(module, one)}
    return any(id(up) in arms and arms[id(up)] != arm for up, arm in _arms(module, other))


def _arms(module: SourceModule, node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    below: ast.AST = node
    for up in module.ancestors(node):
        if isinstance(up, (ast.If, ast.IfExp)) and below is not up.test:
            in_body = any(s is below for s in up.body) if isinstance(up, ast.If) else up.body is below
            yield up, "body" if in_body else "orelse"
        below = up


def _tests(module: SourceModule, node: ast.AST) -> Iterator[tuple[ast.AST, ast.expr]]:
    """(what holds the test, the test) for every test that decides over the place."""
    below: ast.AST = node
    for up in module.ancestors(node):
        if isinstance(up, (ast.If, ast.IfExp, ast.While)) and below is not up.test:
            yield up, up.test
        elif isinstance(up, ast.BoolOp):
            yield from ((up, value) for value in up.values[: _index(up.values, below)])
        elif isinstance(up, ast.comprehension):
            yield from ((up, test) for test in up.ifs if test is not below)
        elif isinstance(up, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            yield from ((up, test) for part in up.generators for test in part.ifs)
        if isinstance(below, ast.stmt):
            yield from _exits_above(module, below)
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return
        below = up


def _exits_above(module: SourceModule, statement: ast.stmt) -> Iterator[tuple[ast.AST, ast.expr]]:
    """`if not isinstance(model, DDP): return` above the statement, in the same block."""
    block = module.block_of(statement) if not isinstance(module.parent(statement), ast.Module) else module.tree.body
    for above in block:
        if above is statement:
            return
        if isinstance(above, ast.If) and above.body and isinstance(above.body[-1], _LEAVES):
            yield above, above.test


def _index(values: list[ast.expr], below: ast.AST) -> int:
    return next((i for i, v in enumerate(values) if v is below), 0)


def is_caught(module: SourceModule, node: ast.AST) -> bool:
    """True in a `try` whose handler takes an AttributeError."""
    return handler_over(module, node, _CAUGHT) is not None
