"""What programs show of Lightning: whether any of them runs a Trainer, and whether each rank evaluates on the whole set."""

from __future__ import annotations

import ast

from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import dotted, last
from codemods.data.rank_variance import SHARING_SAMPLERS
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_TRAINER = lazy(rb"(?:\b(?:pl|L|pytorch_lightning|lightning)\.Trainer\b|import[^\n]*\bTrainer\b|LightningCLI|\.fit\(|\bTrainer,)")
# What shows one in a file that does not name Lightning: one that is handed on, or made elsewhere; not `scaler.fit(rows)`.
_HANDED = lazy(
    rb"(?i:trainer|runner)\w*(?:\(\))?\.fit\(|\.fit\([^)\n]*(?:data_?module|\bdm\b|loader)|"
    rb"(?m:^(?![^\n]*transformers)[^\n]*import[^\n]*\bTrainer\b)"
)
_OFF = lazy(rb"(?:replace_sampler_ddp|use_distributed_sampler)[\"']?\s*[=:]\s*(?:False|false)\b")
_WORDS = (b"replace_sampler_ddp", b"use_distributed_sampler")
_CONFIGS = (".yaml", ".yml", ".json")
_SPEAKING = (".ipynb", ".md", ".rst", ".sh")
_OWN_SHARES = (b"IterableDataset", b"webdataset", b"split_by_node")  # streams that give each rank its part without any sampler


def nobody_fits(project: Project) -> bool:
    """True for a project that takes modules of Lightning over but trains by a loop of its own: their steps never run."""
    return project.keep("nobody fits", lambda: _nobody_fits(project))


def _nobody_fits(project: Project) -> bool:
    own = {*project.files_containing(b"DistributedDataParallel"), *project.files_containing(b"Accelerator(")}
    if not own or not project.files_containing(b"backward("):
        return False
    if any(project.files_containing(word, kinds=_CONFIGS) for word in (b"lightning.Trainer", b"trainer:")):
        return False
    words = (b"Trainer", b"LightningCLI", b".fit(")
    paths = {p for word in words for p in project.files_containing(word) if not is_test_file(p)}
    return not any(_shows_a_trainer(project.read(p) or b"") for p in paths)


def _shows_a_trainer(data: bytes) -> bool:
    return (_TRAINER if b"ightning" in data else _HANDED).search(data) is not None


def only_loads_modules(project: Project) -> bool:
    """True for a project that loads modules of Lightning from checkpoints and has no Trainer anywhere: it only asks them."""
    return project.keep("only loads modules", lambda: _only_loads(project))


def _only_loads(project: Project) -> bool:
    if not project.files_containing(b".load_from_checkpoint("):
        return False
    made = (b"LightningCLI", b"lightning.Trainer", b"trainer:")
    if any(project.files_containing(word, kinds=(*_CONFIGS, ".py")) for word in made):
        return False
    paths = (p for kinds in ((".py",), (*_CONFIGS, *_SPEAKING)) for p in project.files_containing(b"Trainer", kinds=kinds))
    return not any(b"ightning" in (project.read_text(p) or b"") for p in paths if not is_test_file(p))


def evaluates_on_the_whole_set(project: Project) -> bool:
    """True where Lightning is kept from sharing the data out, and the project itself shares out nothing but what it trains on."""
    return project.keep("each rank evaluates the whole set", lambda: _is_whole(project))


def _speaks_of_loaders_alone(project: Project, path: str) -> bool:
    """True where the option is one of Fabric's, for the loader that it is handed: no Trainer goes by it."""
    module = project.module(path) if path.endswith(".py") else None
    if module is None or not module.holds(b"setup_dataloaders("):
        return False
    given = [k for c in module.calls_named("setup_dataloaders") for k in c.keywords if k.arg == _WORDS[1].decode()]
    return len(given) == sum(module.data.count(word) for word in _WORDS)


def _is_whole(project: Project) -> bool:
    paths = {p for word in _WORDS for p in project.files_containing(word, kinds=(".py", *_CONFIGS)) if not is_test_file(p)}
    paths = {p for p in paths if not _speaks_of_loaders_alone(project, p)}
    said = [_OFF.search(project.read(p) or b"") is not None for p in paths]
    if not said or not all(said):
        return False  # some configurations leave it to Lightning
    if any(not is_test_file(p) for word in _OWN_SHARES for p in project.files_containing(word)):
        return False
    for path in project.files_containing(b"ampler"):
        module = None if is_test_file(path) else project.module(path)
        for call in module.nodes(ast.Call) if module is not None else ():
            shares = {k.arg for k in call.keywords} & {"rank", "num_replicas"}
            if module is None or not (shares or SHARING_SAMPLERS.search(last(dotted(call.func)))):
                continue
            function = module.function_of(call)
            if function is None or "train" not in function.name:
                return False
    return True
