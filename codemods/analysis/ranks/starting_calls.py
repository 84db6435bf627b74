"""What starts ranks, or joins them: a call, a class of a framework, a part that a setting names."""

from __future__ import annotations

import ast

from codemods.analysis.accelerators import made_as_fabric
from codemods.analysis.bindings import bindings_of
from codemods.analysis.bound_values import assigned
from codemods.analysis.call_graph import find_function
from codemods.analysis.class_index import class_facts, find_class
from codemods.analysis.job_files.documented_starts import starts
from codemods.analysis.names import dotted, family, last, qualified
from codemods.analysis.ranks.given_devices import call_gives_several
from codemods.analysis.ranks.one_device import has_one_device, says_more_devices, settings_leave_one
from codemods.analysis.ranks.set_devices import is_left_to_one_by_commands, is_left_to_one_gpu, is_set_to_one
from codemods.analysis.ranks.settings_of_dp import is_left_to_dp
from codemods.analysis.ranks.start_kinds import Start
from codemods.files.source import SourceModule
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

# Names of calls that start ranks or join them, whoever defines them: those of torch, Fabric and Ray, and what projects and their
# libraries call a start of their own.
_CALLED = (
    r"init_process_group|spawn|start_processes|notebook_launcher|debug_launcher|Fabric|LightningLite|LightningCLI|TorchTrainer|"
    r"TorchDistributor|elastic_launch|\w*launch\w*|\w*init\w*_dist\w*|\w*dist\w*_init\w*|\w*setup\w*_(?:dist|ddp)\w*|"
    r"\w*(?:ddp|dist\w*)_setup\w*|init\w*_(?:ddp|distributed|process|torch_ddp|parallel\w*)|initialize_\w*parallel\w*|"
    r"DistributedDataParallel|DDP|FullyShardedDataParallel|FSDP|fully_shard"
)
_NAME = lazy(rf"(?:{_CALLED})$")
# The same in the bytes of a file, with those that are known by their module.
_START = lazy(rf"\b(?:{_CALLED}|Accelerator|PartialState|hvd\.init|idist\.\w+|deepspeed\.initialize|MPI\.COMM_WORLD)\b".encode())
_SPAWNS = lazy(rb"\b(?:spawn|start_processes|\w+_launcher|elastic_launch|LightningLite|Fabric|Torch(?:Trainer|Distributor))\(")
_STARTS = lazy(r"spawn|start_processes|launch|LightningCLI|LightningLite|Fabric|TorchTrainer|TorchDistributor")  # by itself
_LITE = ("LightningLite", "Fabric")
_AS_TOLD = frozenset({"LightningCLI", "LightningLite", "Fabric"})  # as many as settings and commands say
_DOTTED = lazy(r"(?:hvd\.init|horovod\.\w+\.init|idist\.\w+|ignite\.distributed\.\w+|deepspeed\.\w+|.*MPI\.COMM_WORLD.*)$")
# Programs of these have loops and starts of their own, which no file of the project shows.
_OTHERS = frozenset(
    {"mmengine", "mmcv", "detectron2", "composer", "colossalai", "ray", "fairseq", "catalyst", "megatron", "nemo", "torchtune",
     "fastai", "allennlp", "espnet2", "speechbrain", "axolotl", "xtuner", "ultralytics", "torch_xla", "jax", "tensorflow",
     "submitit", "paddle", "mindspore", "flair", "oslo", "fvcore", "vissl", "classy_vision", "sentence_transformers"}
)  # fmt: skip
# They join the processes that a launcher starts, and are as much at home in one.
_LAUNCHED = frozenset({"Accelerator", "PartialState"})
_BY_TEXT = frozenset({"instantiate", "import_module", "__import__", "get_class", "locate", "get_object"})


def start_by(project: Project, module: SourceModule, call: ast.Call) -> Start:
    """As how many processes the call starts its program, or joins those of a launcher."""
    name = dotted(call.func)
    bare = last(name)
    if bare == "Trainer" or bare.endswith("Trainer") or name.endswith("Trainer.from_argparse_args"):
        return _start_of_trainer(project, module, call)
    full = qualified(module, call.func)
    if bare == "LightningCLI" and family(full) == "lightning" and settings_leave_one(project):
        return Start.OPEN
    if bare == "Fabric" and family(full) == "lightning" and is_on_one(project, module, call):
        return Start.ONE
    if bare in _AS_TOLD and family(full) == "lightning":
        return Start.SEVERAL if call_gives_several(project, module, call) else Start.LIKELY
    if bare == "launch" and isinstance(call.func, ast.Attribute) and made_as_fabric(project, module, call.func.value):
        return Start.ONE  # the call that makes it says how many it starts
    if bare == "launch" and isinstance(call.func, ast.Attribute) and "gradio" in module.imported_modules:
        return Start.ONE  # a page for one person
    if bare == "notebook_launcher" and any(k.arg == "num_processes" and module.text_of(k.value) == "1" for k in call.keywords):
        return Start.ONE
    if bare in _LAUNCHED:  # which of several programs is launched, a person may leave open
        return Start.JOINS if any(s.several for s in starts(project)) else Start.OPEN
    if _NAME.match(bare) or _DOTTED.match(name) or _DOTTED.match(full):
        if (find_function(project, module, name) is not None or _is_written_here(module, call)) and not _wraps(bare):
            return Start.ONE  # a function of the project is looked into, whatever its name
        return Start.SEVERAL if _STARTS.search(bare) else Start.JOINS
    if bare == "Process" and "multiprocessing" in full and _joins_nearby(module):
        return Start.SEVERAL
    if bare == "fit" and "trainer" in name.lower() and any(family(m) == "lightning" for m in module.imported_modules):
        return Start.ONE if _is_made_here(module, call) else Start.LIKELY  # a Trainer that is made elsewhere
    if (made := _start_of_lite(project, module, call)) is not None:
        return made
    if bare in _BY_TEXT:
        return Start.SEVERAL if call_gives_several(project, module, call) else _start_by_text(project)
    return Start.OPEN if family(full) in _OTHERS or full.partition(".")[0] in _OTHERS else Start.ONE


def _is_made_here(module: SourceModule, fit: ast.Call) -> bool:
    """True for `trainer.fit(…)` of a Trainer that the same scope makes: that call says how many devices it has."""
    holder = fit.func.value if isinstance(fit.func, ast.Attribute) else None
    if isinstance(holder, ast.Call):
        return last(dotted(holder.func)) == "Trainer"
    made = assigned(module, holder, holder.id) if isinstance(holder, ast.Name) else []
    names = [dotted(v.func) if isinstance(v, ast.Call) else "" for v in made]
    return bool(names) and all(last(n) == "Trainer" or n.endswith("Trainer.from_argparse_args") for n in names)


def _joins_nearby(module: SourceModule) -> bool:
    """True where the file that starts processes by hand speaks of a group for them."""
    return module.holds(b"init_process_group") or module.holds(b"world_size")


def _wraps(bare: str) -> bool:
    return bare in ("DistributedDataParallel", "DDP", "FullyShardedDataParallel", "FSDP", "fully_shard", "init_process_group")


def _start_of_trainer(project: Project, module: SourceModule, call: ast.Call) -> Start:
    kind = family(qualified(module, call.func))
    if kind == "lightning":
        if is_on_one(project, module, call):
            return Start.ONE
        left = is_left_to_one_gpu(project, call) or is_left_to_one_by_commands(project, module, call)
        if left or is_set_to_one(project, module, call):
            return Start.OPEN
        if call_gives_several(project, module, call):
            return Start.SEVERAL
        return Start.OPEN if is_left_to_dp(project, module, call) else Start.LIKELY
    if find_function(project, module, dotted(call.func)) is not None:
        return Start.ONE  # of the project: its class is looked into
    return Start.OPEN


def _start_of_lite(project: Project, module: SourceModule, call: ast.Call) -> Start | None:
    """As how many processes an object of the project's own LightningLite or Fabric runs; None for what makes another object."""
    if not any(project.files_containing(name.encode()) for name in _LITE):
        return None
    site = find_class(project, module, dotted(call.func))
    facts = class_facts(project, site.module, site.node) if site is not None else None
    if facts is None or facts.method("__init__") is not None:  # its own says how many
        return None
    if not any(last(name) in _LITE and family(name) == "lightning" for name in facts.external):
        return None
    if not call.keywords or is_on_one(project, module, call):
        return Start.ONE
    return Start.SEVERAL if call_gives_several(project, module, call) else Start.LIKELY


def _start_by_text(project: Project) -> Start:
    """What is made of a name that a setting holds may be anything that the project's settings and packages have."""

    def build() -> Start:
        named = project.files_containing(b"Trainer", kinds=(".yaml", ".yml"))
        if any(b"lightning" in (project.read(p) or b"") for p in named):
            return Start.LIKELY
        inner = [project.read(p) or b"" for p in project.python_files if b"__main__" not in (project.read(p) or b"")]
        if any(_SPAWNS.search(data) for data in inner):
            return Start.LIKELY
        return Start.JOINS if any(_START.search(data) for data in inner) else Start.OPEN

    return project.keep("start by text", build)


def start_of_heir(project: Project, module: SourceModule, owner: ast.ClassDef) -> Start:
    """What an heir of a framework's trainer starts: the loop is the framework's, and so are the processes."""
    named = class_facts(project, module, owner).external
    loops = [name for name in named if last(name).endswith(("Trainer", "Runner", "Engine", "CLI"))]
    if any(family(name) == "lightning" for name in loops):
        by_settings = all(last(name).endswith("CLI") for name in loops) and settings_leave_one(project)
        return Start.OPEN if by_settings else Start.LIKELY
    return Start.OPEN if loops else Start.ONE


def is_on_one(project: Project, module: SourceModule, call: ast.Call) -> bool:
    """True for a call of Lightning that is given one device, which no text tells people to raise."""
    return has_one_device(project, module, call) and not says_more_devices(project, call)


def _is_written_here(module: SourceModule, call: ast.Call) -> bool:
    """True for a name that is given lambdas alone: `launch_kernel = lambda q: kernel(q)`."""
    bound = bindings_of(module, call.func) if isinstance(call.func, ast.Name) else []
    return bool(bound) and all(isinstance(b.value, ast.Lambda) and not b.part for b in bound)
