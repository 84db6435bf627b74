"""Where a network is held, what takes its parameters, and what shares a network out over the ranks."""

from __future__ import annotations

import ast

from codemods.analysis.bindings import bindings_in
from codemods.analysis.names import family, last, qualified
from codemods.files.source import FunctionNode, SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import field, record

_OPTIMIZERS = lazy(
    r"(?:Adam\w*|SGD\w*|Lamb|LAMB|Lars|LARS|Lion|RMSprop\w*|Adagrad|Adadelta|Adafactor|Prodigy|Muon|Ranger|RAdam|NAdam)\Z"
)
# What wraps, shards or reduces: a function that does any of it to what it is given may do so to the network.
_SHARES = lazy(
    r"DistributedDataParallel|DataParallel|DDP\b|FSDP|fully_shard|all_?reduce|reduce_scatter|all_gather|broadcast|\.prepare\(|"
    r"deepspeed|horovod|\bhvd\b|average_grad|sync_(?:grad|param)"
)


@record
class Spot:
    """A name in a scope (owner: the function, None for the file), or a field of the objects of a class (`field`)."""

    module: SourceModule
    owner: FunctionNode | ast.ClassDef | None
    name: str
    field: bool = False
    parameters: bool = False  # it holds the parameters of the network, not the network


@record(frozen=False)
class Flow:
    """What becomes of a network. steps: the optimizers that are given its parameters. scopes: where it is held."""

    steps: list[tuple[SourceModule, ast.Call]] = field(default_factory=list)
    scopes: list[Spot] = field(default_factory=list)
    run: bool = False
    frozen: bool = False
    lost: str = ""

    @property
    def name(self) -> str:
        """How the network is written where it is kept first."""
        first = next((s for s in self.scopes if not s.parameters), None)
        return "" if first is None else f"self.{first.name}" if first.field else first.name


def shares(text: str) -> bool:
    """True for code that wraps a network, shards it, or meets the other ranks."""
    return _SHARES.search(text) is not None


def is_optimizer(module: SourceModule, call: ast.Call) -> bool:
    """True for an optimizer of torch, or of a package whose class is named as one; ZeRO hands the weights round itself."""
    name = qualified(module, call.func)
    if name.startswith("torch.optim.") and last(name)[:1].isupper():
        return "lr_scheduler" not in name and "swa_utils" not in name
    return _OPTIMIZERS.match(last(name)) is not None and family(name) not in ("deepspeed", "horovod")


def scope_of(module: SourceModule, name: ast.Name) -> FunctionNode | None:
    scope = module.function_of(name)
    while scope is not None and not bindings_in(module, scope, name.id):
        scope = module.function_of(scope)
    return scope


def is_seen_from(spot: Spot, read: ast.Name) -> bool:
    """True where the name is the one of the spot's scope."""
    return scope_of(spot.module, read) is spot.owner
