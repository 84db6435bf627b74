"""Which calls every rank must reach: direct ones, and the hidden ones of the frameworks.

Measured on two processes: Lightning 2.6.6 and 1.9.5, Accelerate 1.15, transformers 5, torch 2.13.
"""

from __future__ import annotations

import ast

from codemods.analysis.bindings import attribute_bindings, bindings_of
from codemods.analysis.class_index import Role, class_facts, external_role, find_class
from codemods.analysis.frameworks import lightning_pin
from codemods.analysis.metric_attributes import metric_attribute
from codemods.analysis.names import dotted, family, last, qualified
from codemods.analysis.ranks.sharded_state import NAMES as SHARDED
from codemods.analysis.ranks.sharded_state import framework_of_sharded
from codemods.data.package_collectives import PACKAGE_COLLECTIVES, RAISE_ALONE
from codemods.files.source import SourceModule, once_a_module
from codemods.runtime.record import record
from codemods.store.project import Project

# torch.distributed: all of them wait for the other ranks (`new_group` too).
TORCH = frozenset(
    {"barrier", "all_reduce", "all_gather", "all_gather_into_tensor", "all_gather_object", "gather", "gather_object",
     "broadcast", "broadcast_object_list", "reduce", "reduce_scatter", "reduce_scatter_tensor", "scatter",
     "scatter_object_list", "all_to_all", "all_to_all_single", "monitored_barrier", "new_group", "init_process_group",
     "all_reduce_coalesced", "all_gather_coalesced"}
)  # fmt: skip
# Their functions return the result and leave the argument alone (measured with torch 2.13).
OUT_OF_PLACE = ("torch.distributed.nn.", "torch.distributed._functional_collectives.")
PACKAGES = PACKAGE_COLLECTIVES | {"deepspeed": TORCH}
STRATEGY = frozenset({"barrier", "broadcast", "all_gather", "reduce", "all_reduce", "reduce_boolean_decision"})
FABRIC = frozenset({"barrier", "broadcast", "all_gather", "all_reduce", "save", "load"})
ACCELERATOR = frozenset(
    {"gather", "reduce", "gather_for_metrics", "pad_across_processes", "wait_for_everyone", "save_state", "check_trigger"}
)
# `trainer.model(x)` is the forward of the DDP wrapper: one where gradients are on (measured).
LIGHTNING_TRAINER = frozenset({"fit", "validate", "test", "predict", "save_checkpoint", "model"})
HF_TRAINER = frozenset({"train", "evaluate", "predict"})
_CHECKPOINTS = frozenset({"save", "load", "save_state_dict", "load_state_dict", "async_save"})  # of torch.distributed.checkpoint
_MODULES = frozenset({"self", "pl_module", "lightning_module"})
# Properties whose read is a collective, or runs pending ones (measured; Lightning issue #18148).
PENDING = frozenset({"callback_metrics", "logged_metrics", "progress_bar_metrics"})
_REDUCES_AT_READ = (1, 2)  # 1.1.7 keeps plain dicts, 1.2.10 computes the metrics that it holds
PROPERTIES = PENDING | {"log_dir", "estimated_stepping_batches"}
# Evaluation metrics are reduced before these run, but in the sanity check: a read on one rank finishes, barrier or not (seen).
AFTER_EVALUATION = frozenset(
    {f"on_{stage}_{edge}" for stage in ("validation", "test") for edge in ("epoch_end", "end")} | {"on_sanity_check_end"}
)
# Calls that only wait: they carry no value and can stand anywhere.
WAITS = frozenset({"barrier", "Barrier", "wait_for_everyone", "monitored_barrier", "synchronize", "rendezvous"})
_NAMES = frozenset(
    {"setup_data", "save_checkpoint", "all_gather", "log", "log_dict", "compute", "sync", "DistributedDataParallel"}
).union(TORCH, *PACKAGES.values(), STRATEGY, FABRIC, ACCELERATOR, LIGHTNING_TRAINER, HF_TRAINER, _CHECKPOINTS, SHARDED)
_GROUP_POSITION = {"barrier": 0, "all_reduce": 2, "broadcast": 2, "all_gather": 2, "monitored_barrier": 0, "reduce": 3}


@record
class Collective:
    """A call, or the read of a property, that every rank must make.

    text: as it is written. name: its last name. framework: torch, lightning, fabric, accelerate, transformers, torchmetrics
    and so on. since: the first version of Lightning in which it is one. grouped: it is one of a part of the ranks only.
    """

    node: ast.Call | ast.Attribute
    text: str
    name: str
    framework: str
    since: tuple[int, ...] | None = None
    grouped: bool = False

    @property
    def waits_only(self) -> bool:
        return self.name in WAITS

    @property
    def is_read(self) -> bool:
        return isinstance(self.node, ast.Attribute)

    @property
    def writes_its_part(self) -> bool:
        """`accelerator.save_state` under a guard does not hang under plain DDP: the other ranks' random states are lost."""
        return self.framework == "accelerate" and self.name == "save_state"


def collective_at(module: SourceModule, node: ast.AST, project: Project | None = None) -> Collective | None:
    """The collective that a call or a read is, None if it is none that can be told from its own text."""
    if isinstance(node, ast.Call):
        return _call(module, node, project)
    return _read(module, node, project) if isinstance(node, ast.Attribute) else None


def collective_call(module: SourceModule, call: ast.Call, *, project: Project | None = None) -> str:
    """The name of the collective that `call` is, "" if it is none that can be told from its own text."""
    found = _call(module, call, project)
    return found.text if found else ""


def collective_read(module: SourceModule, node: ast.Attribute, *, project: Project | None = None) -> str:
    """The name of a Trainer property whose read is a collective: `trainer.log_dir`, `trainer.callback_metrics` & co."""
    found = _read(module, node, project)
    return found.text if found else ""


def _call(module: SourceModule, call: ast.Call, project: Project | None) -> Collective | None:
    func = call.func
    written = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
    if written not in _NAMES and written not in module.imports and not module.holds(b"dist_sync_on_step"):
        return None  # nearly every call, by its last name alone
    name = qualified(module, func)
    end, root = last(name), family(name)
    framework = ""
    if name.startswith("torch."):
        framework = "torch" if _is_torch(name, end) else ""
    elif root in PACKAGES and "." in name and end in PACKAGES[root]:
        framework = root if root not in RAISE_ALONE else f"helpers of {root}"
    if end in SHARDED and not framework:
        framework = framework_of_sharded(module, call, name, end, project)
    if framework:
        text = name if framework == "torch" else module.text_of(call.func)
        return Collective(call, text, end, framework, grouped=_grouped(call, end))
    if isinstance(call.func, ast.Attribute) and end:
        return _method(module, call, end, project)
    if isinstance(call.func, ast.Attribute) and call.func.attr == "wait_for_everyone":  # PartialState().wait_for_everyone()
        return Collective(call, module.text_of(call.func), "wait_for_everyone", "accelerate")
    return None


def _is_torch(name: str, end: str) -> bool:
    if name.startswith("torch.distributed.checkpoint."):
        return end in _CHECKPOINTS
    return (name.startswith("torch.distributed.") and end in TORCH) or end == "DistributedDataParallel"


def _grouped(call: ast.Call, end: str) -> bool:
    """True if the call names a group of ranks other than all."""
    group = next((k.value for k in call.keywords if k.arg in ("group", "process_group")), None)
    position = _GROUP_POSITION.get(end)
    if group is None and position is not None and len(call.args) > position:
        group = call.args[position]
    if group is None or (isinstance(group, ast.Constant) and group.value is None):
        return False
    return last(dotted(group)) != "WORLD"


def _method(module: SourceModule, call: ast.Call, end: str, project: Project | None) -> Collective | None:
    assert isinstance(call.func, ast.Attribute)
    text = module.text_of(call.func)
    receiver = dotted(call.func.value)
    holder = last(receiver).lstrip("_")
    if end in ACCELERATOR and (holder == "accelerator" or end in ("wait_for_everyone", "gather_for_metrics")):
        return Collective(call, text, end, "accelerate")
    if end in STRATEGY and holder in ("strategy", "training_type_plugin"):
        if "trainer" in receiver or holder == "training_type_plugin" or in_lightning(module, call, project):
            return Collective(call, text, end, "lightning")
        return None
    if end == "barrier" and holder == "accelerator" and "trainer" in receiver:  # Lightning 1.2 to 1.6
        return Collective(call, text, end, "lightning")
    if end in FABRIC and holder == "fabric":
        known = end not in ("save", "load") or in_lightning(module, call, project)
        return Collective(call, text, end, "fabric") if known else None
    if holder == "trainer":
        return _of_trainer(module, call, end, project)
    if end == "setup_data" and holder == "fit_loop":  # it counts the batches over all ranks (measured)
        return Collective(call, text, end, "lightning")
    if end == "save_checkpoint" and holder in ("model_engine", "engine", "ds_engine", "deepspeed_engine"):
        return Collective(call, text, end, "deepspeed") if module.holds(b"deepspeed") else None
    if end in PACKAGES["mpi4py"] and module.holds(b"mpi4py") and _is_communicator(module, call.func.value):
        return Collective(call, text, end, "mpi4py")
    if synced_on_step(module, call, project):
        return Collective(call, text, "forward", "torchmetrics")
    if receiver in _MODULES and in_lightning(module, call, project):
        return _of_module(module, call, end, project)
    if end in ("log", "log_dict") and keyword_is(call, "sync_dist", True) and "logger" not in holder:
        return Collective(call, f"{text}(sync_dist=True)", end, "lightning")  # a module's, whoever holds it: no other knows that
    if end in ("compute", "sync") and _is_metric(module, call.func.value, project):
        return Collective(call, text, end, "torchmetrics")
    return None


def _is_communicator(module: SourceModule, receiver: ast.expr) -> bool:
    """True for `comm` of `comm = MPI.COMM_WORLD`: all processes."""
    if isinstance(receiver, ast.Name):
        given = bindings_of(module, receiver)
    else:
        given = attribute_bindings(module, receiver) if isinstance(receiver, ast.Attribute) else []
    return bool(given) and all(b.value is not None and qualified(module, b.value) == "mpi4py.MPI.COMM_WORLD" for b in given)


def _of_trainer(module: SourceModule, call: ast.Call, end: str, project: Project | None) -> Collective | None:
    assert isinstance(call.func, ast.Attribute)
    text = module.text_of(call.func)
    made = trainer_of(module, call.func.value, project)
    function = module.function_of(call)
    if end == "model" and (function is None or not function.name.startswith(("on_train", "training_"))):
        return None
    if end in LIGHTNING_TRAINER and (made == "lightning" or (not made and in_lightning(module, call, project))):
        return Collective(call, text, end, "lightning", (2, 1, 0) if end == "save_checkpoint" else None)
    if end in HF_TRAINER and (made == "transformers" or (not made and _imports_trainer(module))):
        return Collective(call, text, end, "transformers")
    return None


def _of_module(module: SourceModule, call: ast.Call, end: str, project: Project | None) -> Collective | None:
    """Collectives of a LightningModule: `self.all_gather`, and `self.log` of what is reduced."""
    assert isinstance(call.func, ast.Attribute)
    text = module.text_of(call.func)
    if end not in ("all_gather", "log", "log_dict") or defines(module, call, end, project):
        return None
    if end == "all_gather":
        return Collective(call, text, end, "lightning")
    if keyword_is(call, "rank_zero_only", True):
        return None
    if any(k.arg == "sync_dist" and not keyword_is(call, "sync_dist", False) for k in call.keywords):
        return Collective(call, f"{text}(sync_dist=True)", end, "lightning")
    value = call.args[1] if len(call.args) > 1 else next((k.value for k in call.keywords if k.arg == "value"), None)
    if end == "log" and value is not None and _is_metric(module, value, project):
        return Collective(call, f"{text}({module.text_of(value)})", end, "lightning")
    return None


def synced_on_step(module: SourceModule, call: ast.Call, project: Project | None) -> bool:
    """True for `self.metric(x)` of a metric made with `dist_sync_on_step=True`: it is reduced in every call (measured)."""
    if not module.holds(b"dist_sync_on_step") or not isinstance(call.func, ast.Attribute):
        return False
    if not _is_metric(module, call.func, project):
        return False
    made = [b.value for b in attribute_bindings(module, call.func)]
    return any(isinstance(v, ast.Call) and keyword_is(v, "dist_sync_on_step", True) for v in made)


def keyword_is(call: ast.Call, name: str, value: object) -> bool:
    return any(k.arg == name and isinstance(k.value, ast.Constant) and k.value.value is value for k in call.keywords)


def defines(module: SourceModule, node: ast.AST, name: str, project: Project | None) -> bool:
    """True if the class round `node` (or a project base of it) has a method of its own of that name."""
    owner = module.class_of(node)
    if owner is None:
        return False
    if project is not None:
        return class_facts(project, module, owner).method(name) is not None
    return name in _methods(module)[owner]


@once_a_module
def _methods(module: SourceModule) -> dict[ast.ClassDef, frozenset[str]]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {c: frozenset(f.name for f in c.body if isinstance(f, kinds)) for c in module.nodes(ast.ClassDef)}


def _is_metric(module: SourceModule, receiver: ast.expr, project: Project | None) -> bool:
    owner = module.class_of(receiver)
    if project is None or owner is None or not isinstance(receiver, (ast.Attribute, ast.Subscript)):
        return False
    return metric_attribute(project, class_facts(project, module, owner), receiver) is not None


def _read(module: SourceModule, node: ast.Attribute, project: Project | None) -> Collective | None:
    if node.attr not in PROPERTIES or not isinstance(node.ctx, ast.Load):
        return None
    if last(dotted(node.value)).lstrip("_") != "trainer" or not in_lightning(module, node, project):
        return None
    if trainer_of(module, node.value, project) not in ("", "lightning"):
        return None
    if node.attr in PENDING and project is not None and _keeps_plain_metrics(project, module):
        return None
    return Collective(node, module.text_of(node), node.attr, "lightning")


def _keeps_plain_metrics(project: Project, module: SourceModule) -> bool:
    """True below Lightning 1.2: the metrics of the Trainer are a dict that it fills by itself, and no read reduces anything."""
    pin = lightning_pin(project, near=module.path)
    return pin is not None and pin.surely_below(_REDUCES_AT_READ)


# Whose trainer, whose module


_LIGHTNING_ROLES = (Role.LIGHTNING_MODULE, Role.LIGHTNING_CALLBACK, Role.LIGHTNING_DATA_MODULE)


def in_lightning(module: SourceModule, node: ast.AST, project: Project | None) -> bool:
    """True where the file imports Lightning, or the class round `node` derives from one of its classes elsewhere."""
    if any(family(name) == "lightning" for name in module.imported_modules):
        return True
    owner = module.class_of(node)
    if project is None or owner is None:
        return False
    facts = class_facts(project, module, owner)
    return any(facts.is_a(role) for role in _LIGHTNING_ROLES)


def trainer_of(module: SourceModule, receiver: ast.expr, project: Project | None) -> str:
    """Whose trainer a name is bound to: lightning, transformers, own; "" where the source does not show it."""
    if not isinstance(receiver, ast.Name):
        return ""
    for binding in bindings_of(module, receiver):
        if not isinstance(binding.value, ast.Call):
            continue
        name = qualified(module, binding.value.func)
        role = external_role(name)
        if family(name) == "lightning":
            return "lightning"
        if role is Role.HF_TRAINER:
            return "transformers"
        written = dotted(binding.value.func)
        if project is not None and written and (site := find_class(project, module, written)):
            facts = class_facts(project, site.module, site.node)
            if facts.is_a(Role.HF_TRAINER):
                return "transformers"
            return "lightning" if any(family(n) == "lightning" for n in facts.external) else "own"
    return ""


def _imports_trainer(module: SourceModule) -> bool:
    return any(external_role(i.dotted) is Role.HF_TRAINER for found in module.imports.values() for i in found)
