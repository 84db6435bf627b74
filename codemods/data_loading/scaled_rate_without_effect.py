"""DDP416: a learning rate that is scaled by the number of processes, and that no optimizer gets."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import dotted, last
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding, ReplaceExpression
from codemods.files.source import FunctionNode, SourceModule, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_PROCESSES = lazy(r"^(num_processes|\w*world_size|n_?gpus|num_gpus|ngpus\w*|num_devices|n_devices|process_count)$")
_RATE = lazy(r"(^|_)(lr|learning_?rate)(_|$)")
_OPTIMIZER = lazy(r"optim|adam|sgd|lion|adafactor|rmsprop|lamb|adagrad")


_Given = ast.Assign | ast.AnnAssign | ast.AugAssign


@record
class _Scaled:
    """The statement that scales. name: what it gives the rate to, as written. optimizer: the call, rate: its `lr=`.

    above: the optimizer is made before the statement runs. bound: the name has a value on every way to the optimizer.
    """

    statement: _Given
    name: str
    optimizer: ast.Call
    rate: ast.expr
    above: bool
    bound: bool


class ScaledRateWithoutEffect(DdpCodemod):
    """A learning rate that is scaled by the number of processes, and that no optimizer gets.

    ## What it does
    Finds a learning rate that is multiplied by the number of processes and that nothing reads afterwards, where the optimizer of
    the same function is made with the rate as it was: it stands above the multiplication, or is given the setting and not the
    name that holds the product. Writes the name into the optimizer where that stands below.

    ## Why it matters
    The setting that asks for the scaling (`--scale_lr`) does nothing. On eight GPUs training runs at an eighth of the learning
    rate, or less, that its user asked for, and no line says so.

    ## Example
    ```python
    import torch
    from accelerate import Accelerator


    def train(config, model):
        accelerator = Accelerator()
        learning_rate = config.learning_rate
        if config.scale_lr:
            learning_rate = learning_rate * config.batch_size * accelerator.num_processes
        return torch.optim.AdamW(model.parameters(), lr=config.learning_rate)
    ```

    ## Use instead
    ```python
    import torch
    from accelerate import Accelerator


    def train(config, model):
        accelerator = Accelerator()
        learning_rate = config.learning_rate
        if config.scale_lr:
            learning_rate = learning_rate * config.batch_size * accelerator.num_processes
        return torch.optim.AdamW(model.parameters(), lr=learning_rate)
    ```

    ## Safety
    Unsafe: runs that ask for the scaling get the rate that they asked for, and with it other results than before. What does not
    ask for it trains as before.

    ## Refuses
    - Says nothing where anything behind the multiplication reads the product: a scheduler, a group of parameters, a function.
    - Says nothing where the optimizer's rate is not what was multiplied, or there are several optimizers.
    - Says nothing of a field (`args.lr`) whose object is handed on as a whole, and of rates in a loop.
    - Reports an optimizer that is made above the multiplication: the lines have to change places. Reports a name that has no
      value where the setting is off.
    - A repository's own tests.

    ## References
    diffusers' training scripts, `--scale_lr` ("Scale the learning rate by the number of GPUs, gradient accumulation steps, and
    batch size"), where the product is worked out above the optimizer. torch 2.13: an optimizer copies `lr` into its groups when
    it is made.
    """

    code = "DDP416"
    severity = "data"
    subject = "Give the optimizer the scaled learning rate"
    must_show = "On two processes the optimizer's rate is twice that of one where the setting asks for it."
    printed = ()
    TRIGGERS = ((b"num_processes", b"world_size", b"gpus", b"num_devices", b"n_devices"), (b"lr=", b"lr ="))
    READS_TESTS = False

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_file(module.path):
            return
        for statement in (*_assignments(module), *module.nodes(ast.AugAssign)):
            found = _scaled(module, statement)
            if found is not None:
                yield self._told(module, found)

    def _told(self, module: SourceModule, found: _Scaled) -> Finding:
        made = Evidence("static", "the optimizer is made here", module.path, found.optimizer.lineno)
        edits: list[Edit] = []
        if found.above:
            message = (
                f"`{found.name}` is scaled by the number of processes when the optimizer has its rate already (line "
                f"{found.optimizer.lineno}), and nothing reads it afterwards: the scaling does nothing"
            )
            reason = "work out the rate above the optimizer"
        else:
            rate = " ".join(module.text_of(found.rate).split())
            message = (
                f"`{found.name}` is scaled by the number of processes and read by nobody: the optimizer in line "
                f"{found.optimizer.lineno} gets `{rate}`, so the scaling does nothing"
            )
            reason = "give the optimizer the product"
            if found.bound:
                reason = "assumes that the rate is to be scaled where the setting asks for it"
                edits = [ReplaceExpression(module.path, module.span(found.rate), found.name)]
        level = Applicability.UNSAFE if edits else Applicability.DISPLAY
        return self.finding(module, found.statement, message, level=level, edits=edits, evidence=[made], reason=reason)


def _scaled(module: SourceModule, statement: _Given) -> _Scaled | None:
    if statement.value is None:
        return None
    name, product = _target(statement), list(_factors(statement.value))
    if isinstance(statement, ast.AugAssign):
        product = [*product, statement.target] if isinstance(statement.op, ast.Mult) else []
    if not _RATE.search(last(name).lower()) or name.startswith("self.") or not _by_processes(product):
        return None
    if any(isinstance(up, (ast.For, ast.AsyncFor, ast.While, ast.ClassDef)) for up in module.ancestors(statement)):
        return None
    function = module.function_of(statement)
    if _is_read_behind(module, function, statement, name):
        return None
    given = _given_above(module, function, statement, name)
    rates = (dotted(p) for p in product if _RATE.search(last(dotted(p)).lower()))
    base = {name, *(dotted(g.value) for g in given), *rates} - {""}
    made = [(call, rate) for call, rate in _optimizers(module, function) if dotted(rate) in base]
    others = [rate for _, rate in _optimizers(module, function) if dotted(rate) not in base]
    if len(made) != 1 or others:
        return None
    optimizer, rate = made[0]
    above = optimizer.lineno < statement.lineno
    if above is not (dotted(rate) == name) or (not above and "." in name):
        return None
    block = module.parent(module.statement_of(optimizer))
    bound = any(module.parent(g) is block for g in (*given, statement))
    return _Scaled(statement, name, optimizer, rate, above, bound)


def _by_processes(parts: list[ast.expr]) -> bool:
    """True for a product with the number of processes and a rate in it."""
    names = [last(dotted(p.func if isinstance(p, ast.Call) else p)) for p in parts]
    return any(_PROCESSES.search(n) or n == "get_world_size" for n in names) and any(_RATE.search(n.lower()) for n in names)


def _factors(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
        yield from _factors(node.left)
        if isinstance(node.op, ast.Mult):
            yield from _factors(node.right)
    else:
        yield node


def _assignments(module: SourceModule) -> Iterator[ast.Assign | ast.AnnAssign]:
    yield from module.nodes(ast.Assign)
    yield from module.nodes(ast.AnnAssign)


def _target(statement: _Given) -> str:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return dotted(targets[0]) if len(targets) == 1 else ""


def _given_above(
    module: SourceModule, function: FunctionNode | None, statement: _Given, name: str
) -> list[ast.Assign | ast.AnnAssign]:
    """What the name is given before it is scaled: `rate = config.rate`."""
    above = (a for a in _assignments(module) if a.lineno < statement.lineno and module.function_of(a) is function)
    return [a for a in above if _target(a) == name and a.value is not None]


def _is_read_behind(module: SourceModule, function: FunctionNode | None, statement: _Given, name: str) -> bool:
    """True where something may read the product; where a function inside may, or the object that holds it is handed on."""
    end = statement.end_lineno or statement.lineno
    first, final = (function.lineno, function.end_lineno or 0) if function is not None else (0, len(module.text))
    root = name.partition(".")[0]
    for use in module.reads_of(root):
        if not first <= use.lineno <= final:
            continue
        chain: ast.AST = use
        while isinstance(up := module.parent(chain), ast.Attribute):
            chain = up
        read = f"{dotted(chain)}."
        same = f"{name}.".startswith(read) or read.startswith(f"{name}.")
        if same and (use.lineno > end or module.function_of(use) is not function):
            return True
    own = (*(n.names for n in module.nodes(ast.Global)), *(n.names for n in module.nodes(ast.Nonlocal)))
    if any(name in names for names in own):
        return True
    words = ("locals", "globals", "vars", "eval")
    return any(isinstance(n, ast.Call) and dotted(n.func) in words and n.lineno > end for n in walk(function or module.tree))


def _optimizers(module: SourceModule, function: FunctionNode | None) -> Iterator[tuple[ast.Call, ast.expr]]:
    for call in module.nodes(ast.Call):
        if module.function_of(call) is function and _OPTIMIZER.search(last(dotted(call.func)).lower()):
            rate = next((k.value for k in call.keywords if k.arg == "lr"), None)
            if rate is not None:
                yield call, rate
