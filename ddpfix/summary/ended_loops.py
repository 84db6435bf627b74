"""Is an option shown to end the training of its program? It counts the rounds of a loop, or a trainer is handed it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.job_files.shown_run import UNKNOWN
from codemods.analysis.names import dotted, last
from codemods.files.source import SourceModule
from ddpfix.summary.needed_options import NOWHERE
from ddpfix.summary.program_stages import calls_of_stages
from ddpfix.summary.ways import Way

_COUNTS = (b"range(", b"trange(", b"while ")
_TRAINERS = ("Trainer", "TrainingArguments", "Seq2SeqTrainingArguments")
_OF_TRAINERS = frozenset({"max_epochs", "max_steps", "num_train_epochs"})
_PARSED = (b"from_argparse_args(", b"LightningCLI(", b"HfArgumentParser")
_DEEPEST = 3


def ends_the_loop(way: Way, option: str) -> bool:
    """option: a flag, or a key of Hydra."""
    program = way.program
    *above, name = option.lstrip("-+").replace("-", "_").split(".")
    known = next((n for n, o in program.options.items() if option in o.flags), None)
    if known is not None and program.options[known].default == UNKNOWN and program.options[known].given_alone == UNKNOWN:
        return False  # the program, or a file of settings, gives it itself
    if known is None and option.startswith("-") and not program.options and _has_a_parser(way):
        return False
    texts = [program.project.read(path) or b"" for path in program.files]
    parsed = any(any(word in text for word in _PARSED) for text in texts)
    if name in _OF_TRAINERS and (above[-1:] == ["trainer"] or parsed):
        return bool(way.stage) or _comes_to_training(way)
    modules = [m for path in sorted(program.files) if isinstance(m := program.project.module(path), SourceModule)]
    return any(_counts(modules, known or name, 0))


def _has_a_parser(way: Way) -> bool:
    """True for options that are written out, and that something else may fill."""
    return b"add_argument(" in (way.program.project.read(way.script) or b"")


def _comes_to_training(way: Way) -> bool:
    """True where `trainer.train()` is come to, or `fit`; the program of a package's own trainer may not show it."""
    calls = calls_of_stages(way.program.project, way.program.files, ("fit", "train"))
    ways = [way.lacks(m, call) for m, call in calls if not isinstance(m.parent(call), ast.Attribute)]  # not `fit().report()`
    return any(NOWHERE not in needs and not any(need.shown for need in needs) for needs in ways)


def _counts(modules: list[SourceModule], name: str, depth: int) -> Iterator[bool]:
    """For each loop that may be meant; a name that is given the value counts as the value."""
    word = name.encode()
    for module in modules:
        if not module.holds(word):
            continue
        yield from (_speaks(_rounds(loop), name) for loop in module.nodes(ast.For))
        yield from (_speaks(loop.test, name) for loop in module.nodes(ast.While))
        yield from (_speaks(leaving.test, name) for leaving in module.nodes(ast.If) if _ends_a_loop(module, leaving))
        yield from (_is_handed(call, name) for call in module.calls_named(*_TRAINERS))
        for assign in module.nodes(ast.Assign) if depth < _DEEPEST else ():
            for target in assign.targets:
                other = last(dotted(target))
                if other and other != name and _is_value(assign.value, name):
                    yield from _counts([module], other, depth + 1)


def _rounds(loop: ast.For) -> ast.expr | None:
    return next((c for c in ast.walk(loop.iter) if isinstance(c, ast.Call) and last(dotted(c.func)) in ("range", "trange")), None)


def _ends_a_loop(module: SourceModule, leaving: ast.If) -> bool:
    """`if step >= args.max_steps: break`, and `return` inside a loop."""
    inside = any(isinstance(up, (ast.For, ast.While)) for up in module.ancestors(leaving))
    compares = any(isinstance(part, ast.Compare) for part in ast.walk(leaving.test))
    return inside and compares and isinstance(leaving.body[-1], (ast.Break, ast.Return))


def _is_handed(call: ast.Call, name: str) -> bool:
    return any(k.arg in _OF_TRAINERS and _speaks(k.value, name) for k in call.keywords)


def _is_value(node: ast.expr, name: str) -> bool:
    """`args.epochs`, `int(args.epochs)`, `args.start + args.epochs`."""
    if isinstance(node, ast.Call):
        return last(dotted(node.func)) in ("int", "max", "min") and any(_is_value(a, name) for a in node.args)
    if isinstance(node, ast.BinOp):
        return _is_value(node.left, name) or _is_value(node.right, name)
    return last(dotted(node)) == name if isinstance(node, (ast.Name, ast.Attribute)) else False


def _speaks(node: ast.expr | None, name: str) -> bool:
    return node is not None and any(
        (isinstance(n, ast.Attribute) and n.attr == name) or (isinstance(n, ast.Name) and n.id == name) for n in ast.walk(node)
    )
