"""DDP801: arguments of Lightning's Trainer that are called otherwise now, or are gone."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from codemods.analysis.distribution import is_test_file
from codemods.analysis.names import dotted, last
from codemods.analysis.trainer.argument_calls import Given, splatted
from codemods.analysis.trainer.device_arguments import device_change
from codemods.analysis.trainer.fit_calls import only_fit
from codemods.analysis.trainer.lightning_trainers import (
    Change,
    is_trainer,
    keywords,
    literal_text,
    more_of,
    of_several,
    trainer_calls,
)
from codemods.analysis.trainer.lightning_upgrade import Standing, is_tried, standing
from codemods.analysis.trainer.none_values import none_values
from codemods.analysis.trainer.strategy_arguments import StrategyArgument, strategy_arguments
from codemods.analysis.trainer.told_together import Told, together
from codemods.analysis.trainer.trainer_entries import EntryChange, entry_changes, new_name, why_not_in_code
from codemods.analysis.trainer.trainer_keys import key_places, keys_named
from codemods.analysis.trainer.trainer_tables import is_trainer_key, tables_of, trainer_tables
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import DropKeyword, Edit, Finding, RenameKeyword, ReplaceExpression, SetKeyword, Span, lowest
from codemods.data.lightning_arguments import (
    ACCELERATOR_GONE,
    ARGPARSE_GONE,
    BACKEND_GONE,
    DEVICE_ARGUMENTS,
    DEVICES_SINCE,
    GPUS_GONE,
    KEPT_STRATEGIES,
    NONE_GONE,
    OF_STRATEGIES,
    OLD,
    UNHEARD_OF,
    Argument,
)
from codemods.data.lightning_names import ALWAYS
from codemods.files.source import SourceModule
from codemods.files.text_file import TextFile
from codemods.store.project import Project

_NAMES = tuple(name.encode() for name in (*OLD, *DEVICE_ARGUMENTS))
_STRATEGIES = tuple(name.encode() for name in sorted(OF_STRATEGIES))
_IN_FILES = (
    b"accelerator: d", b"accelerator: 'd", b'accelerator: "d', b"accelerator: null", b"accelerator: horovod",
    b"strategy: dp", b"strategy: 'dp", b'strategy: "dp', b"strategy: ddp2", b"strategy: ddp_sharded", b"strategy: ddp_fully",
    b"strategy: horovod", b"strategy: null", b"devices: null",
)  # fmt: skip
_ARGPARSE = ("from_argparse_args", "add_argparse_args")


class LightningTrainerArguments(DdpCodemod):
    """An argument of Lightning's Trainer that is renamed or gone in the versions that the project allows.

    ## What it does
    Writes the arguments of `Trainer(…)` for Lightning 2: `gpus=`, `num_processes=` and `tpu_cores=` become `accelerator=` and
    `devices=`, `accelerator="ddp"` and `distributed_backend="ddp"` become `strategy=`, others get their new name, and those that
    do nothing with their value go; in the keywords of `instantiate(config.trainer, …)` and in YAML, too, where a mapping names
    the Trainer as its `_target_`, is merged into one that does, or goes into `Trainer(**config.trainer)` or the LightningCLI.
    Code that names such a key (`config.trainer.gpus`) gets the new name with it.
    Reports an argument of a strategy (`find_unused_parameters`) that is given to the Trainer, or put into the configuration that
    one is made of.
    `strategy=None` goes, or becomes `"auto"` where only one way leads there; with `accelerator=None` and `devices=None` of the
    same call this is one change. What has no successor of the same meaning is
    reported, with what takes its place.

    ## Why it matters
    The program ends where it makes the Trainer: `TypeError: Trainer.__init__() got an unexpected keyword argument 'gpus'`.

    ## Example
    ```python
    # requirements.txt: pytorch-lightning>=2.0
    import pytorch_lightning as pl


    def train(model, data):
        trainer = pl.Trainer(gpus=2, accelerator="ddp", replace_sampler_ddp=False, auto_lr_find=False)
        trainer.fit(model, data)
    ```

    ## Use instead
    ```python
    # requirements.txt: pytorch-lightning>=2.0
    import pytorch_lightning as pl


    def train(model, data):
        trainer = pl.Trainer(devices=2, accelerator="gpu", use_distributed_sampler=False, strategy="ddp")
        trainer.fit(model, data)
    ```

    ## Safety
    Safe: the value is a literal that means the same under its new name. Every version that the nearest pin allows has that name,
    or the setting `target-lightning` asks for it. Unsafe: nothing pins Lightning, or the pin allows versions on both sides;
    the value is no literal (`gpus=args.gpus`); a key of a file, which a command line may give by its old name; several devices
    without a strategy, which start otherwise in Lightning 2; a path that moves to the one `fit(…)`.

    ## Refuses
    - an upper bound or an exact pin below the change: nothing is said, unless `target-lightning` is set
    - a call in a `try` that catches TypeError, or under a test of a version: nothing is said
    - requirement files that disagree, where one of them allows a version without the new name
    - `dp`, `ddp2` and other strategies that are gone: what takes their place is reported
    - a name for `strategy=` that is None at times, and is read elsewhere as well
    - an argument that decides over the same thing stands beside it (`devices=`, `strategy=`, `**`)
    - the arguments for devices in a dictionary behind `**`, but for `distributed_backend="ddp"` with no other strategy beside it
    - a key of a file that code names as well, unless each place can get the new name, and a value that other keys take as well
    - `Trainer.from_argparse_args` and `Trainer.add_argparse_args`, which are gone
    - heirs of the Trainer: nothing is said
    - a call or mapping with an argument that no Lightning from 1.2 on has (`early_stop_callback`, `tpus`): nothing is said
    - an argument beside one that only a person can replace, and that is an error as early: that one names it
    - a program that takes a name which is gone earlier, by an import: it does not come to the call (DDP803 reports the import)

    ## References
    The parameters of the Trainer in ten wheels of pytorch-lightning, 1.2.10 to 2.6.6, and how their device parsers read them.
    """

    code = "DDP801"
    severity = "crash"
    subject = "Give the Trainer arguments that Lightning takes now"
    must_show = "The program makes its Trainer with the version of Lightning that is installed."
    printed = ("Trainer.__init__() got an unexpected keyword argument", "You selected an invalid strategy name")
    TRIGGERS = (
        (b"lightning", *_STRATEGIES),
        (b"Trainer", b".trainer", b"[\"trainer\"]", b"['trainer']"),
        (*_NAMES, *_STRATEGIES, b"accelerator", b"strategy", b"devices", *(n.encode() for n in _ARGPARSE)),
    )
    READS_TESTS = False
    TEXT = (*_NAMES, *_IN_FILES)

    @classmethod
    def appendix(cls) -> str:
        """The table."""
        head = ["## The arguments", "", "| argument | gone from | now | since | else |", "|" + " --- |" * 5]
        rows = [
            f"| `{a.name}` | {_v(a.gone)} | {f'`{a.new}`' if a.new else ''} | {_v(a.since) if a.new else ''} | {a.instead} |"
            for a in OLD.values()
        ]
        devices = f"`gpus`, `num_processes` and `tpu_cores` are gone from {_v(GPUS_GONE)} on; `accelerator`, `devices` and"
        return "\n".join([*head, *rows, "", f"{devices} `strategy` are there since {_v(DEVICES_SINCE)}."])

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_file(module.path):
            return
        if isinstance(module, TextFile):
            yield from self._in_file(module, project)
            return
        for call in trainer_calls(project, module):
            if not UNHEARD_OF & keywords(call).keys():
                told: list[Told] = []
                if last(dotted(call.func)) != _ARGPARSE[0]:  # that it is gone is told below
                    told += self._devices(module, project, call)
                for name, keyword in keywords(call).items():
                    if name in OLD:
                        told += self._argument(module, project, call, keyword)
                told += self._none(module, project, call)
                for keyword in call.keywords:
                    if keyword.arg is None:
                        told += self._spread(module, project, call, keyword.value)
                yield from together(told)
        yield from self._in_code(module, project)
        for found in strategy_arguments(project, module):
            yield self._of_strategy(module, found)
        for call in module.calls_named("from_argparse_args") or module.calls_named("add_argparse_args"):
            yield from self._argparse(module, project, call)

    def _devices(self, module: SourceModule, project: Project, call: ast.Call) -> Iterator[Told]:
        found = device_change(project, module, call)
        if found is None:
            return
        told = self.finding(
            module,
            found.node,
            f"{module.text_of(call.func)}({found.old}) is an error from Lightning {_v(found.gone)} on",
            level=found.change.level,
            edits=found.change.edits,
            evidence=found.evidence,
            reason=found.change.reason,
        )
        yield Told(found.old.partition("=")[0], found.gone, told)

    def _argument(self, module: SourceModule, project: Project, call: ast.Call, keyword: ast.keyword) -> Iterator[Told]:
        assert keyword.arg is not None
        row = OLD[keyword.arg]
        change, needs_new = _changed(module, call, keyword, row)
        known = standing(project, module.path, keyword, since=row.since if needs_new else ALWAYS, gone=row.gone)
        if known is None:
            return
        change = of_several(call, row.name, change)
        if row.name == "resume_from_checkpoint" and not change.edits:
            known = standing(project, module.path, keyword, since=DEVICES_SINCE, gone=row.gone) or known
            change = _to_fit(project, module, call, keyword, row)
        found = self._judged(module, keyword, _message(module.text_of(call.func), row, change), change, known)
        yield Told(row.name, row.gone, found)

    def _none(self, module: SourceModule, project: Project, call: ast.Call) -> Iterator[Told]:
        found = none_values(module, call)
        known = standing(project, module.path, found.node, since=found.since, gone=NONE_GONE) if found is not None else None
        if found is not None and known is not None:
            given = ", ".join(f"{name}=None" for name in found.arguments)
            shown = f"{module.text_of(call.func)}({given})"
            message = f'{shown} is an error from Lightning {_v(NONE_GONE)} on, whose default is "auto"'
            yield Told(" and ".join(found.arguments), NONE_GONE, self._judged(module, found.node, message, found.change, known))

    def _of_strategy(self, module: SourceModule, found: StrategyArgument) -> Finding:
        message = (
            f"{found.shown} is an error with every Lightning: it is an argument of the strategy, and the Trainer ends with "
            f"`got an unexpected keyword argument '{found.name}'`"
        )
        return self.finding(module, found.at, message, reason=f"give it to the strategy: strategy=DDPStrategy({found.name}=…)")

    def _in_file(self, file: TextFile, project: Project) -> Iterator[Finding]:
        for table, key in trainer_tables(project, file):
            if not UNHEARD_OF & table.keys:
                yield from together([*self._of_table(file, entry_changes(project, table, key), key)])

    def _of_table(self, file: TextFile, changes: Iterator[EntryChange], key: str) -> Iterator[Told]:
        for found in changes:
            entry = found.entry
            shown = f"{key}.{entry.key}: {entry.value}" if entry.value else f"{key}.{entry.key}"
            now = f": it is {found.became}" if found.became else ""
            message = f"{shown} is an error from Lightning {_v(found.gone)} on{now}"
            told = self._judged(file, entry.key_span, message, found.change, found.standing, found.group)
            yield Told(entry.key, found.gone, told)

    def _in_code(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        """What code names of the mapping: `config.trainer.gpus`, `config.trainer.accelerator = "ddp"`."""
        for key, name in dict.fromkeys(keys_named(module)):
            new, gone = new_name(name), OLD[name].gone if name in OLD else GPUS_GONE
            if not is_trainer_key(project, key):
                continue
            places = key_places(module, key, name)
            if name == "accelerator":
                places = [p for p in places if isinstance(p.stored, ast.Constant) and p.stored.value in KEPT_STRATEGIES]
                new, gone, group = "strategy", ACCELERATOR_GONE, ""
            elif new and any(True for _ in tables_of(project, key, name)) and not why_not_in_code(project, key, name):
                group = f"{key}.{name}"
            else:
                yield from self._set_in_code(module, project, key, name)
                continue
            since = OLD[name].since if name in OLD else DEVICES_SINCE
            for place in places:
                known = standing(project, module.path, place.node, since=since, gone=gone)
                if known is None:
                    continue
                message = f"{key}.{name} is no argument of the Trainer from Lightning {_v(gone)} on: it is {new}"
                doubt = f"assumes that the files that give {key}.{name} get the new name as well"
                change = Change(tuple(place.renamed(new)), (doubt,) if group else (f"assumes that nothing else gives {new}",))
                yield self._judged(module, place.node, message, change, known, group)

    def _set_in_code(self, module: SourceModule, project: Project, key: str, name: str) -> Iterator[Finding]:
        """`config.trainer.terminate_on_nan = False`, where nothing takes the argument's place."""
        row = OLD.get(name)
        for place in key_places(module, key, name) if row is not None and not row.new else ():
            assert row is not None
            known = standing(project, module.path, place.node, since=ALWAYS, gone=row.gone)
            if place.stored is not None and known is not None:
                message = f"{key}.{name} is no argument of the Trainer from Lightning {_v(row.gone)} on"
                yield self._judged(module, place.node, message, Change((), refusals=(row.instead,)), known)

    def _judged(
        self, module: SourceModule, at: ast.AST | Span, message: str, change: Change, known: Standing, group: str = ""
    ) -> Finding:
        level = lowest(change.level, known.level)
        reason = change.reason if change.refusals else "; ".join(r for r in (known.assumes, change.reason) if r)
        return self.finding(
            module, at, message, level=level, edits=change.edits, evidence=known.evidence, reason=reason, group=group
        )

    def _spread(self, module: SourceModule, project: Project, call: ast.Call, value: ast.expr) -> Iterator[Told]:
        """The keys of a dictionary that is made in this file."""
        shown = module.text_of(call.func)
        beside = frozenset(keywords(call))
        for given in splatted(module, value, shown, beside):
            row = OLD.get(given.name)
            backend = given.name == "distributed_backend"
            devices = BACKEND_GONE if backend else GPUS_GONE if given.name in DEVICE_ARGUMENTS else None
            gone = row.gone if row is not None else devices
            if gone is None:
                continue
            fits = row is not None and bool(row.new) and not row.instead and row.new not in given.beside and not given.fixed
            known = standing(project, module.path, given.node, since=row.since if row is not None else DEVICES_SINCE, gone=gone)
            if known is None:
                continue
            if row is None:
                message = f"{shown}({given.name}=…) is an error from Lightning {_v(gone)} on"
                by_hand = "write accelerator=, devices= and strategy= by hand: they decide over each other"
                edits = tuple(given.renamed("strategy")) if backend and _is_kept(given) else ()
                change = Change(edits, refusals=() if edits else (by_hand,))
            else:
                edits = tuple(given.renamed(row.new)) if fits else ()
                why = given.fixed or row.instead or f"{row.new} is given as well"
                change = Change(edits, refusals=() if fits else (why,))
                message = _message(shown, row, change)
            yield Told(given.name, gone, self._judged(module, given.node, message, change, known))

    def _argparse(self, module: SourceModule, project: Project, call: ast.Call) -> Iterator[Finding]:
        func = call.func
        if not isinstance(func, ast.Attribute) or not is_trainer(module, func.value) or is_tried(module, call, "AttributeError"):
            return
        if known := standing(project, module.path, call, since=ARGPARSE_GONE, gone=ARGPARSE_GONE):
            message = f"{module.text_of(func)} is an AttributeError from Lightning {_v(ARGPARSE_GONE)} on"
            beside = [c.lineno for c in module.calls_named(*_ARGPARSE) if c is not call]
            both = f"; line {beside[0]} goes with it" if beside else ""
            why = f"hand the arguments that the program has to Trainer(…), or use LightningCLI{both}"
            yield self.finding(module, call, message, evidence=known.evidence, reason=why)


def _is_kept(given: Given) -> bool:
    """True where `strategy=` takes the value of `distributed_backend=` as it is, and nothing beside it speaks of a strategy."""
    named = given.value.value if isinstance(given.value, ast.Constant) else None
    return named in KEPT_STRATEGIES and not given.fixed and not given.beside & {"strategy", "accelerator", "plugins"}


def _message(shown: str, row: Argument, change: Change) -> str:
    new = f": it is {row.new}" if row.new and any(isinstance(e, RenameKeyword) for e in change.edits) else ""
    return f"{shown}({row.name}=…) is an error from Lightning {_v(row.gone)} on{new}"


def _changed(module: SourceModule, call: ast.Call, keyword: ast.keyword, row: Argument) -> tuple[Change, bool]:
    """What becomes of one argument, and whether it needs the new name."""
    span = module.span(call)
    value = literal_text(keyword.value)
    if value in row.idle:
        return Change((DropKeyword(module.path, span, row.name),)), False
    if not row.new or (row.instead and value not in row.values):
        return Change((), refusals=(row.instead,)), False
    if row.new in keywords(call):
        return Change((), refusals=(f"{row.new} is given as well",)), True
    edits: list[Edit] = [RenameKeyword(module.path, span, row.name, row.new)]
    if value is not None and row.values.get(value, value) != value:
        edits.append(ReplaceExpression(module.path, module.span(keyword.value), row.values[value]))
    more = more_of(module, call)
    doubts = (f"assumes that {more} does not give {row.new}",) if more else ()
    return Change(tuple(edits), doubts), True


def _to_fit(project: Project, module: SourceModule, call: ast.Call, keyword: ast.keyword, row: Argument) -> Change:
    """`resume_from_checkpoint=path`, moved to the one `fit` of this Trainer."""
    fit = only_fit(module, call)
    value = keyword.value
    if fit is None or not _is_plain(value) or "ckpt_path" in keywords(fit) or more_of(module, fit) or len(fit.args) > 4:
        return Change((), refusals=(row.instead,))
    edits = (
        DropKeyword(module.path, module.span(call), row.name),
        SetKeyword(module.path, module.span(fit), "ckpt_path", module.text_of(value)),
    )
    doubt = "" if isinstance(value, ast.Constant) else f"assumes that {module.text_of(value)} is still the same at the fit"
    return Change(edits, (doubt or "assumes that this fit is the one that is to resume",))


def _is_plain(node: ast.expr) -> bool:
    """True for what may be read a little later as well: names, attributes, entries of a mapping."""
    while True:
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
            if node.keywords or not all(isinstance(a, ast.Constant) for a in node.args):
                return False
            node = node.func.value
        elif isinstance(node, ast.Attribute):
            node = node.value
        else:
            return isinstance(node, (ast.Constant, ast.Name))


def _v(version: Sequence[int]) -> str:
    return ".".join(map(str, version))
