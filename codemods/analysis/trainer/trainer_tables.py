"""Mappings of YAML files that become the arguments of Lightning's Trainer.

By Hydra (`_target_: pytorch_lightning.Trainer`, and what is merged into such a mapping: the other files of its group, the same
key in other files), by `Trainer(**config.trainer)`, or by the LightningCLI.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from posixpath import basename, dirname

from codemods.analysis.distribution import is_test_file
from codemods.analysis.model.config_targets import targets_under
from codemods.analysis.trainer.lightning_trainers import is_trainer, is_trainer_name, key_of
from codemods.data.lightning_arguments import DEVICE_ARGUMENTS, GONE_STRATEGIES, KEPT_STRATEGIES, NONE_WAS_DEFAULT, OLD
from codemods.files.text_entries import Table, tables
from codemods.files.text_file import YAML_KINDS, TextFile
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

HOLDERS = ("self", "pl_module", "model", "module")  # whose `.trainer` is the Trainer itself
_CLI = b"LightningCLI("
_OLD = "|".join(map(re.escape, (*OLD, *DEVICE_ARGUMENTS)))
_NAMED = "|".join(map(re.escape, (*KEPT_STRATEGIES, *GONE_STRATEGIES)))
_SITE = lazy(
    rf"(?<![\w-])(?:(?:{_OLD})[\"']?\s*:|(?:accelerator|strategy)[\"']?\s*:\s*[\"']?(?:{_NAMED})\b"
    rf"|(?:{'|'.join(NONE_WAS_DEFAULT)})[\"']?\s*:\s*(?:null\b|~))".encode()
)
_READ_IN = (".py", ".yaml", ".yml", ".sh", ".md", ".ipynb")


def trainer_tables(project: Project, file: TextFile) -> Iterator[tuple[Table, str]]:
    """(mapping, the key under which code and command lines know it)."""
    if not _SITE.search(file.data):
        return
    group = basename(dirname(file.path))
    for table in tables(file):
        key = table.path[-1] if table.path else group
        target = table.entry("_target_")
        if target is not None:
            if is_trainer_name(target.value):
                yield table, key
        elif len(table.path) < 2 and key and _is_merged(project, file, table, key):
            yield table, key


def _is_merged(project: Project, file: TextFile, table: Table, key: str) -> bool:
    if not table.path:
        targets = [t for t in targets_under(project, key) if dirname(t.path) == dirname(file.path)]
        return table.entry("defaults") is not None and bool(targets) and all(is_trainer_name(t.name) for t in targets)
    targets = list(targets_under(project, key))
    if targets:
        return all(is_trainer_name(t.name) for t in targets)
    return key in _spread_keys(project) or (key == "trainer" and _has_cli(project))


def is_trainer_key(project: Project, key: str) -> bool:
    """True where the mapping under the key becomes the arguments of a Trainer."""
    targets = targets_under(project, key)
    return all(is_trainer_name(t.name) for t in targets) if targets else key in _spread_keys(project)


def tables_of(project: Project, key: str, name: str) -> Iterator[Table]:
    """The mappings of all files that have the entry."""
    for path in project.files_containing(name.encode(), kinds=YAML_KINDS):
        file = project.module(path) if not is_test_file(path) else None
        for table, known in trainer_tables(project, file) if isinstance(file, TextFile) else ():
            if known == key and table.entry(name) is not None:
                yield table


def _spread_keys(project: Project) -> frozenset[str]:
    """The keys of `Trainer(**config.trainer)`."""

    def search() -> frozenset[str]:
        found = set()
        for path in project.files_calling("Trainer"):
            module = project.module(path) if not is_test_file(path) else None
            for call in module.calls_named("Trainer") if module is not None and module.holds(b"ightning") else ():
                if module is not None and is_trainer(module, call.func):
                    found |= {key_of(k.value) for k in call.keywords if k.arg is None}
        return frozenset(found - {""})

    return project.keep("keys that Lightning's Trainer is made of", search)


def _has_cli(project: Project) -> bool:
    return any(not is_test_file(p) for p in project.files_containing(_CLI))


def named_from_outside(key: str, name: str) -> re.Pattern[bytes]:
    """`config.trainer.gpus`, `trainer["gpus"]`, `trainer.gpus=4`; not `self.trainer.gpus`, which asks the Trainer itself."""
    before, word = re.escape(key.encode()), re.escape(name.encode())
    apart = b"".join(rb"(?<!\b" + holder.encode() + rb"\.)" for holder in HOLDERS)
    return re.compile(apart + rb"\b" + before + rb"(?:\.|\[[\"']|\.(?:get|pop)\(\s*[\"'])" + word + rb"\b")


def readers(project: Project, key: str, name: str) -> tuple[list[str], list[str]]:
    """(code, command lines and texts) that name the entry from outside."""
    word, named = name.encode(), named_from_outside(key, name)
    code: list[str] = []
    texts: list[str] = []
    for path in project.files_containing(word, kinds=_READ_IN):
        data = project.read_text(path) or b""
        if found := named.search(data):
            line = data.count(b"\n", 0, found.start()) + 1
            (code if path.endswith(".py") and not is_test_file(path) else texts).append(f"{path}:{line}")
    return code, texts
