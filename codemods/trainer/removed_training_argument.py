"""DDP602: a parameter that transformers has renamed or removed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from codemods.analysis.class_index import Role, class_facts
from codemods.analysis.distribution import is_test_file
from codemods.analysis.frameworks import Pin, transformers_pin
from codemods.analysis.job_files.flag_edits import NoEdit
from codemods.analysis.job_files.job_pins import pin_of_job
from codemods.analysis.names import dotted
from codemods.analysis.python_bounds import ruled_out_by_python
from codemods.analysis.trainer.argument_calls import Given, given
from codemods.analysis.trainer.argument_files import Flagged, Keyed, flags_in, keys_in
from codemods.analysis.trainer.argument_versions import Act, Judged, judge, what_happened
from codemods.analysis.version_branches import is_of_one_version
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Doubt, Edit, Evidence, Finding, ReplaceExpression
from codemods.data.training_arguments import OLD, OLD_OF_TRAINER, row, text_of
from codemods.files.sites import Beside, Site
from codemods.files.source import SourceModule
from codemods.files.text_file import TEXT_KINDS, TextFile
from codemods.runtime.record import replace
from codemods.store.project import Project

_NAMES = frozenset(OLD)
_WORDS = tuple(sorted(name.encode() for name in _NAMES))
_WORDS_OF_TRAINER = tuple(name.encode() for name in OLD_OF_TRAINER)
_COMMON = (b"gradient_checkpointing", *_WORDS_OF_TRAINER)  # parameters of many other things: they count beside the words below
_BESIDE = (b"Arguments", b"Trainer", b"trl")


class _Given(Site):
    """One of the old names as a keyword or as a key."""

    def __init__(self, *words: bytes) -> None:
        any_of = b"|".join(words)
        super().__init__(rb"(?<!\w)(?:" + any_of + rb")(?:[\"']\s*:|[\"']\s*\]\s*=|\s*=)(?!=)", *words)


class _GivenCommonly(Beside):
    """As `_Given`, for parameters of many other things: no attribute that is set, and no plain assignment."""

    def __init__(self, *words: bytes) -> None:
        any_of = b"|".join(words)
        keyword = rb"=(?!=)|[ \t]+=(?!=)[^\n]*[,(][ \t]*(?:#[^\n]*)?\r?\n"
        in_brackets = rb"[\"']\s*:|[\"']\s*\]\s*=(?!=)"
        super().__init__(_BESIDE, rb"(?<![\w.])(?:" + any_of + rb")(?:" + in_brackets + rb"|" + keyword + rb")", *words)



class RemovedTrainingArgument(DdpCodemod):
    """A parameter of the Hugging Face Trainer that the pinned transformers calls otherwise, or no longer has.

    ## What it does
    Renames parameters of `TrainingArguments`, its heirs (`SFTConfig`, a project's own) and of `Trainer` that every version of
    transformers that the project allows knows under another name: keywords, the keys of a dictionary behind `**`, flags of a
    script that reads them with `HfArgumentParser` (shell scripts, Makefiles, `command:` texts in YAML), and the keys of YAML and
    JSON files that such a parser reads. Takes out what is gone and does nothing with the value it is given.

    ## Why it matters
    The job ends before its first step: `TypeError: TrainingArguments.__init__() got an unexpected keyword argument`, or
    `ValueError: Some specified arguments are not used by the HfArgumentParser`.

    ## Example
    ```python
    # requirements.txt: transformers>=5.0
    from transformers import Trainer, TrainingArguments


    def train(model, tokenizer, train_set, dev_set):
        args = TrainingArguments("out", evaluation_strategy="epoch", no_cuda=False, save_safetensors=True)
        trainer = Trainer(model=model, args=args, train_dataset=train_set, eval_dataset=dev_set, tokenizer=tokenizer)
        trainer.train()
    ```

    ## Use instead
    ```python
    # requirements.txt: transformers>=5.0
    from transformers import Trainer, TrainingArguments


    def train(model, tokenizer, train_set, dev_set):
        args = TrainingArguments("out", eval_strategy="epoch", use_cpu=False)
        trainer = Trainer(model=model, args=args, train_dataset=train_set, eval_dataset=dev_set, processing_class=tokenizer)
        trainer.train()
    ```

    ## Safety
    Safe: the versions that the project allows refuse what stands here. Each of them, by the nearest requirement file, or the
    environment that a job file names, has the new name, or, for what goes, never did anything else; reads of the same object go
    along (`args.evaluation_strategy`). Unsafe where other code reads the old attribute, or where it is assumed which mapping of a
    file the training arguments are made of.

    ## Refuses
    - no file pins transformers, and no install script or image installs a version of it, or the pin allows versions on both
      sides: reported once for all places under the same pin
    - every version that the pin allows takes the old name, deprecated as it may be, or that the Python of the environment's file
      (`python=3.8`) has: nothing is said
    - the new name is given as well
    - what is gone did something with this value (`logging_dir="runs"`): what takes its place is reported
    - `warmup_ratio` of 1 or more, or not a literal: `warmup_steps` takes it for a number of steps
    - the dictionary behind `**` is used for something else as well
    - a script or a class defines the parameter itself, a dataclass that of a key: nothing is said
    - a Trainer that is not one of transformers, or whose `__init__` handles the argument: nothing is said
    - code reads the key of a file by its name
    - a function or a file that is called or imported under a test of a package's version alone: nothing is said
    - the script that a command starts is not in the repository

    ## References
    The dataclass fields of transformers 3.0 to 5.23, by minor version; `HfArgumentParser` of 5.23.
    """

    code = "DDP602"
    severity = "crash"
    subject = "Call the training arguments by their names of today"
    must_show = "The job gets to its first step, and the arguments it prints hold the values that were asked for."
    printed = (
            "TrainingArguments.__init__() got an unexpected keyword argument",
            "Some specified arguments are not used by the HfArgumentParser",
            "Some keys are not used by the HfArgumentParser",
        )
    TRIGGERS = ((b"Arguments", b"Trainer", b"Config("), (*_WORDS, *_WORDS_OF_TRAINER))
    SITES = (_Given(*(w for w in _WORDS if w not in _COMMON)), _GivenCommonly(*_COMMON))
    READS_TESTS = False
    TEXT = _WORDS
    TEXT_KINDS = TEXT_KINDS

    @classmethod
    def appendix(cls) -> str:
        """The old names, from the table."""
        head = ["## The names", "", "| parameter | first | last | default | now | note |", "|" + " --- |" * 6]
        rows = (row(p) for p in (*OLD.values(), *OLD_OF_TRAINER.values()))
        return "\n".join([*head, *rows, "", "Of all parameters: [training-arguments](../training-arguments.md)."])

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_file(module.path):
            return
        if isinstance(module, TextFile):
            yield from self._in_file(module, project, pin_of_job(project, module, "transformers"))
            return
        pin = transformers_pin(project, near=module.path)
        ruled_out = ruled_out_by_python(project, "transformers", near=module.path)
        told: dict[object, list[tuple[Given, Judged]]] = {}
        for found in given(project, module, {*OLD, *OLD_OF_TRAINER}):
            parameter = (OLD_OF_TRAINER if found.own_trainer else OLD).get(found.name)
            judged = judge(parameter, pin, found.literal, ruled_out) if parameter else None
            if judged is None or is_of_one_version(project, module.path, found.node):
                continue
            if judged.act is Act.TOLD:
                told.setdefault(found.holder, []).append((found, judged))
            else:
                yield self._in_code(module, project, found, judged, pin)
        for group in told.values():
            yield self._told(module, group, pin)

    def _in_code(self, module: SourceModule, project: Project, found: Given, judged: Judged, pin: Pin | None) -> Finding:
        edits = found.dropped() if judged.act is Act.DROP else found.renamed(judged.name, judged.python)
        why = found.fixed or _given_as_well(found.beside, judged) or _in_a_literal(edits, found.name)
        uses = found.own_uses() if judged.act is not Act.DROP and not judged.python else []
        edits += [ReplaceExpression(module.path, module.span(u), f"{module.text_of(u.value)}.{judged.name}") for u in uses]
        read = _read_elsewhere(project, found, uses)
        return self.finding(
            module,
            found.node,
            f"{what_happened(judged.parameter)}; {found.shown} {_becomes(judged)}",
            level=Applicability.DISPLAY if why else Applicability.UNSAFE if read else Applicability.SAFE,
            edits=edits,
            evidence=_version(pin),
            reason=why or read,
        )

    def _told(self, module: SourceModule, group: Sequence[tuple[Given, Judged]], pin: Pin | None) -> Finding:
        first, _ = group[0]
        message = "; ".join(what_happened(j.parameter) for _, j in group)
        reason = _joined([j.why for _, j in group])
        told = self.finding(module, first.node, f"{first.shown}: {message}", evidence=_version(pin), reason=reason)
        doubts = [_doubt(j, pin) for _, j in group]
        return replace(told, doubt=_one_doubt(doubts))

    # Files

    def _in_file(self, file: TextFile, project: Project, pin: Pin | None) -> Iterator[Finding]:
        ruled_out = ruled_out_by_python(project, "transformers", near=file.path)
        told: dict[int, list[Finding]] = {}
        for flagged in flags_in(project, file, _NAMES):
            judged = judge(OLD[flagged.flag.field], pin, flagged.literal, ruled_out)
            if judged is not None:
                told.setdefault(id(flagged.command), []).append(self._flag(file, flagged, judged, pin))
        for keyed in keys_in(project, file, _NAMES):
            judged = judge(OLD[keyed.entry.key], pin, keyed.literal, ruled_out)
            if judged is not None:
                told.setdefault(id(keyed.table), []).append(self._key(file, keyed, judged, pin))
        for group in told.values():
            yield from (f for f in group if f.fix)
            yield from _as_one([f for f in group if not f.fix])

    def _flag(self, file: TextFile, found: Flagged, judged: Judged, pin: Pin | None) -> Finding:
        edit: Edit | NoEdit = NoEdit(judged.why)
        if judged.act is Act.RENAME:
            edit = found.renamed(judged.name)
        elif judged.act is Act.REPLACE:
            edit = found.replaced(judged.name, judged.flag)
        elif judged.act is Act.DROP:
            edit = found.dropped()
        given = found.why or _given_as_well(found.beside, judged)
        why = given or (edit.why if isinstance(edit, NoEdit) else "")
        made = self.finding(
            file,
            found.span,
            f"{what_happened(judged.parameter)}; {found.flag.name} of {found.command.target} {_becomes(judged)}",
            level=Applicability.DISPLAY if why else Applicability.SAFE,
            edits=[] if isinstance(edit, NoEdit) else [edit],
            evidence=_version(pin),
            reason=why,
        )
        return made if given else replace(made, doubt=_doubt(judged, pin))

    def _key(self, file: TextFile, found: Keyed, judged: Judged, pin: Pin | None) -> Finding:
        edits: list[Edit] = []
        why = judged.why
        if judged.act is Act.RENAME:
            edits = found.renamed(judged.name)
        elif judged.act is Act.DROP:
            edits = found.dropped()
        elif judged.act is Act.REPLACE:
            why = f"write {judged.name}: {judged.python} in its place"
        given = found.why or _given_as_well(found.beside, judged)
        why = given or why
        level = Applicability.UNSAFE if found.assumes else Applicability.SAFE
        made = self.finding(
            file,
            found.entry.span,
            f"{what_happened(judged.parameter)}; the key {_becomes(judged)}",
            level=Applicability.DISPLAY if why else level,
            edits=edits,
            evidence=_version(pin),
            reason=why or found.assumes,
        )
        return made if given else replace(made, doubt=_doubt(judged, pin))


def _as_one(told: Sequence[Finding]) -> Iterator[Finding]:
    """What is told of one command or one mapping, in one finding at the first place."""
    if told:
        message = "; ".join(dict.fromkeys(f.message for f in told))
        doubt = _one_doubt([f.doubt for f in told])
        yield replace(told[0], message=message, reason=_joined([f.reason for f in told]), doubt=doubt)


def _doubt(judged: Judged, pin: Pin | None) -> Doubt | None:
    """Which version runs is the only question: a pin would answer it for every place that rests on the same one."""
    if not judged.unpinned:
        return None
    return Doubt(f"{pin.text} {pin.path}:{pin.line}" if pin else "no pin", (what_happened(judged.parameter),))


def _one_doubt(doubts: Sequence[Doubt | None]) -> Doubt | None:
    shown = [d for d in doubts if d is not None]
    if not shown or len(shown) < len(doubts):
        return None
    return Doubt(shown[0].key, tuple(dict.fromkeys(part for d in shown for part in d.parts)))


def _joined(reasons: Sequence[str]) -> str:
    """The reasons behind each other. The pin that all of them begin with is said once."""
    once = list(dict.fromkeys(reasons))
    pin = once[0].partition(": ")[0] + ": "
    if not all(r.startswith(pin) for r in once):
        return "; ".join(once)
    return pin + "; ".join(r.removeprefix(pin) for r in once)


def _becomes(judged: Judged) -> str:
    if judged.act is Act.DROP:
        return "does nothing with this value"
    if judged.act is Act.TOLD and judged.parameter.gone is not None:
        return f"is an error from {text_of(judged.parameter.gone)} on"
    return f"has to say {judged.name}"


def _given_as_well(beside: frozenset[str], judged: Judged) -> str:
    return f"{judged.name} is given as well: which of the two is meant is not shown" if judged.name in beside else ""


def _in_a_literal(edits: Sequence[Edit], name: str) -> str:
    return "" if edits else f"take {name!r} out of the dictionary"


def _version(pin: Pin | None) -> list[Evidence]:
    return [Evidence("version", pin.text, pin.path, pin.line)] if pin else []


def _read_elsewhere(project: Project, found: Given, renamed: Sequence[object]) -> str:
    """Who reads the old attribute: the rename would leave it behind."""
    word = found.name
    for path in project.files_containing(b"." + word.encode()):
        module = project.module(path)
        if module is None or is_test_file(path) or not (module.holds(b"Trainer") or module.holds(b"TrainingArguments")):
            continue
        for node in module.reads_of(word):
            if any(node is one for one in renamed):
                continue
            owner = dotted(getattr(node, "value", None))
            if not owner or (found.own_trainer and not _is_trainer(project, module, owner, node)):
                continue
            if word == "local_rank" or (not found.own_trainer and owner in ("cls", "tokenizer")):
                continue
            return f"assumes that nobody needs the old name, which {path}:{node.lineno} reads as {owner}.{word}"
    return ""


def _is_trainer(project: Project, module: SourceModule, owner: str, node: object) -> bool:
    if owner.rpartition(".")[2] == "trainer":
        return True
    place = module.method_of(node) if owner == "self" else None  # type: ignore[arg-type]
    return bool(place and class_facts(project, module, place[0]).is_a(Role.HF_TRAINER))
