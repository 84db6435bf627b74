"""DDP603: a configuration file of Accelerate that the launcher refuses, or takes for one process."""

from __future__ import annotations

from collections.abc import Iterator
from posixpath import basename

from codemods.analysis.distribution import is_test_file
from codemods.analysis.frameworks import accelerate_pin
from codemods.analysis.job_files.command_lines import command_lines
from codemods.analysis.version_pins import Pin
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import AddEntry, Applicability, DropEntry, Edit, Evidence, Finding, ReplaceExpression, ReplaceWithText
from codemods.data.accelerate_config import DDP_KEYS, DEEPSPEED_KEYS, KEYS, MEANT_TYPES, ONE_PROCESS, TYPES, WORDS
from codemods.files.source import SourceModule
from codemods.files.text_entries import Entry, Table, tables
from codemods.files.text_file import JSON_KINDS, SHELL_KINDS, YAML_KINDS, TextFile
from codemods.store.project import Project

_BESIDE = frozenset({"num_processes", "mixed_precision", "machine_rank", "num_machines", "fsdp_config", "deepspeed_config"})
_SHARED = "the value is an anchor that other keys take as well"
_ERROR = "the launch ends with ValueError: The config file … had unknown keys"


class AccelerateConfig(DdpCodemod):
    """A configuration file of Accelerate that the launcher refuses, or takes for one process.

    ## What it does
    Reads the YAML and JSON files that `accelerate launch --config_file` takes. Quotes `mixed_precision: no`, which YAML reads as
    false; takes out keys that Accelerate no longer knows and arguments of DDP, which it never knew; moves DeepSpeed's and FSDP's
    keys into their part of the file; writes a `distributed_type` in capitals. Reports a file that asks for several processes and
    gets one, or does not say how many, and keys that are misspelt.

    ## Why it matters
    The launch ends before a process is started: `AttributeError: 'bool' object has no attribute 'lower'`, or `had unknown keys`.
    With `distributed_type: "NO"` it does not end: one process trains, whatever `num_processes` says.

    ## Example
    ```yaml
    compute_environment: LOCAL_MACHINE
    distributed_type: MULTI_GPU
    find_unused_parameters: false
    mixed_precision: no
    num_processes: 2
    ```

    ## Use instead
    ```yaml
    compute_environment: LOCAL_MACHINE
    distributed_type: MULTI_GPU
    mixed_precision: "no"
    num_processes: 2
    ```

    ## Safety
    Safe: as it stands the file starts nothing in any version that the project allows, and what goes has the value that holds
    without it. Unsafe where a key that goes asks for something, which then has to be given where it is read.

    ## Refuses
    - `distributed_type: "NO"` or `MULTI_CPU` with several processes: which of the two is meant is not shown
    - a key that is in no version and resembles no other, or is misspelt
    - a removed key where no file pins Accelerate, or the pin allows versions on both sides
    - a key that belongs into a part of the file which is not there, or which has that key
    - several processes without `num_processes`, where no job of the repository gives it with the launch
    - `distributed_type: DDP` is unsafe: it may mean one of several
    - a value that an anchor takes to other keys as well
    - a file for SageMaker, and a file that is no configuration of Accelerate: nothing is said

    ## References
    `config_args.py` of Accelerate 0.2 to 1.15; each error seen in a run of `accelerate launch` 1.15.
    """

    code = "DDP603"
    severity = "crash"
    subject = "Write the Accelerate configuration as the launcher takes it"
    must_show = "`accelerate launch` with the file starts as many processes as it says."
    printed = (
            "'bool' object has no attribute 'lower'",
            "had unknown keys",
            "is not a valid DistributedType",
        )
    TRIGGERS = ((b"distributed_type", b"compute_environment"),)  # no Python is read, but the words are those
    READS_TESTS = False
    TEXT = (b"distributed_type", b"compute_environment")
    TEXT_KINDS = (*YAML_KINDS, *JSON_KINDS)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if not isinstance(module, TextFile) or is_test_file(module.path):
            return
        every = tables(module)
        pin = accelerate_pin(project, near=module.path)
        for table in every:
            if _is_configuration(table):
                for entry in table.entries:
                    yield from self._word(module, table, entry)
                    yield from self._key(module, table, entry, every, pin)
                yield from self._type(module, table)
                yield from self._count(module, project, table)

    def _word(self, file: TextFile, table: Table, entry: Entry) -> Iterator[Finding]:
        """A word that YAML takes for false."""
        word = WORDS.get(entry.key)
        kind = table.entry("distributed_type")
        if word is None or entry.kind != "bool":
            return
        if entry.key == "dynamo_backend" and kind is not None and kind.value == "DEEPSPEED":
            return  # the start of DeepSpeed does not read it (accelerate 0.30 and 1.15)
        off = entry.value.lower() in ("no", "false", "off") and not entry.shared
        yield self.finding(
            file,
            entry.value_span,
            f"{entry.key}: {entry.value} is a truth value, not a word: the launch ends with AttributeError: 'bool' object has no "
            f"attribute '{'lower' if word == 'no' else 'upper'}'",
            level=Applicability.SAFE if off else Applicability.DISPLAY,
            edits=[ReplaceWithText(file.path, entry.value_span, word)],
            reason="" if off else _SHARED if entry.shared else f"which {entry.key} is meant is not shown",
        )

    def _key(self, file: TextFile, table: Table, entry: Entry, every: tuple[Table, ...], pin: Pin | None) -> Iterator[Finding]:
        key = entry.key
        if key in KEYS:
            yield from self._by_version(file, entry, pin)
        elif key in DEEPSPEED_KEYS or (key.startswith("fsdp_") and key != "fsdp_config"):
            yield self._misplaced(file, table, entry, every)
        elif key in DDP_KEYS:
            idle = entry.kind in ("bool", "number", "null", "text") and entry.value.lower() in DDP_KEYS[key]
            yield self.finding(
                file,
                entry.span,
                f"{key} is no key of Accelerate in any version: {_ERROR}",
                level=Applicability.SAFE if idle else Applicability.UNSAFE,
                edits=[DropEntry(file.path, entry.span)],
                reason=""
                if idle
                else "assumes that it is given where it is read: DistributedDataParallelKwargs, or the "
                "training arguments of the Hugging Face Trainer",
            )
        else:
            import difflib

            close = difflib.get_close_matches(key, KEYS, 1, 0.75)
            yield self.finding(
                file,
                entry.key_span,
                f"{key} is no key of Accelerate in any version: {_ERROR}",
                reason=f"{close[0]} may be meant" if close else "what it is meant for is not shown",
            )

    def _by_version(self, file: TextFile, entry: Entry, pin: Pin | None) -> Iterator[Finding]:
        since, gone = KEYS[entry.key]
        evidence = [Evidence("version", pin.text, pin.path, pin.line)] if pin else []
        if since is not None and pin is not None and pin.surely_below(since):
            text = f"Accelerate knows {entry.key} from {since[0]}.{since[1]} on: {_ERROR}"
            yield self.finding(file, entry.key_span, text, evidence=evidence, reason=f"{pin.text} allows no version that has it")
        elif gone is not None and not (pin is not None and pin.surely_below(gone)):
            sure = pin is not None and pin.surely_at_least(gone)
            allowed = (
                f"{pin.text} ({pin.path}:{pin.line}) allows versions with it and without" if pin else "no file pins accelerate"
            )
            yield self.finding(
                file,
                entry.span,
                f"Accelerate has no {entry.key} from {gone[0]}.{gone[1]} on, and nothing in its place: {_ERROR}",
                level=Applicability.SAFE if sure else Applicability.DISPLAY,
                edits=[DropEntry(file.path, entry.span)],
                evidence=evidence,
                reason="" if sure else allowed,
            )

    def _misplaced(self, file: TextFile, table: Table, entry: Entry, every: tuple[Table, ...]) -> Finding:
        home = "deepspeed_config" if entry.key in DEEPSPEED_KEYS else "fsdp_config"
        part = next((t for t in every if t.path == (*table.path, home) and len(t.uses) == 1 and t.entries), None)
        scalar = entry.kind in ("bool", "number", "null", "text") and entry.span.line == entry.span.end_line
        edits: list[Edit] = [DropEntry(file.path, entry.span)]
        level, reason = Applicability.SAFE, ""
        kind = table.entry("distributed_type")
        if entry.key == "gradient_accumulation_steps" and kind is not None and kind.value != "DEEPSPEED":
            if entry.value != "1":
                level = Applicability.UNSAFE
                reason = "assumes that it is given where it is read: to the Accelerator, or in the training arguments"
        elif part is None or not scalar:
            level, reason = Applicability.DISPLAY, f"it belongs into {home}, which is not there"
        elif part.entry(entry.key) is not None:
            level, reason = Applicability.DISPLAY, f"{home} says {entry.key} as well: which of the two is meant is not shown"
        else:
            edits.append(AddEntry(file.path, part.entries[-1].span, entry.key, file.text_at(entry.value_span)))
        message = f"{entry.key} is a key of {home}, not of the file itself: {_ERROR}"
        return self.finding(file, entry.span, message, level=level, edits=edits, reason=reason)

    def _type(self, file: TextFile, table: Table) -> Iterator[Finding]:
        entry = table.entry("distributed_type")
        if entry is None:
            text = "the launch ends with ValueError: A `distributed_type` must be specified in the config file"
            yield self.finding(file, table.entries[0].key_span, text, reason="which one is meant is not shown")
            return
        name = "NO" if entry.kind == "bool" and entry.value.lower() in ("no", "false") else entry.value
        if name in ONE_PROCESS:
            yield from self._one_process(file, table, entry, name)
        elif entry.kind == "text" and name not in TYPES:
            right = name.upper() if name.upper() in TYPES else MEANT_TYPES.get(name.upper(), "")
            level = Applicability.SAFE if right == name.upper() and right != "NO" else Applicability.UNSAFE
            yield self.finding(
                file,
                entry.value_span,
                f"the launch ends with ValueError: '{name}' is not a valid DistributedType",
                level=level if right else Applicability.DISPLAY,
                edits=[ReplaceExpression(file.path, entry.value_span, right)] if right else [],
                reason=f"assumes that {right} is meant"
                if right and level is Applicability.UNSAFE
                else ""
                if right
                else f"known are {', '.join(sorted(TYPES))}",
            )

    def _count(self, file: TextFile, project: Project, table: Table) -> Iterator[Finding]:
        """Several processes, and not how many: Accelerate fills in -1, and asks for the flag (`launch.py` of 1.15)."""
        entry = table.entry("distributed_type")
        if entry is None or entry.value not in TYPES or entry.value == "NO" or table.entry("num_processes") is not None:
            return
        if not _count_is_given(project, file):
            yield self.finding(
                file,
                entry.span,
                f"{entry.key}: {entry.value} without num_processes: the launch ends with ValueError: You need to manually pass "
                "in `--num_processes` using this config yaml.",
                reason="how many are wanted is not shown: write num_processes, or give --num_processes with each launch",
            )

    def _one_process(self, file: TextFile, table: Table, entry: Entry, name: str) -> Iterator[Finding]:
        count = table.entry("num_processes")
        if count is None or count.kind != "number" or not count.value.isdigit() or int(count.value) < 2:
            return
        if name == "MULTI_CPU" and table.entry("mpirun_config") is not None:
            return
        yield self.finding(
            file,
            entry.span,
            f"{entry.key}: {name} starts one process, although num_processes is {count.value}: the others never come, "
            "and nothing says so",
            reason="write MULTI_GPU for several processes, or num_processes: 1",
        )


def _count_is_given(project: Project, file: TextFile) -> bool:
    """True where a job of the project launches with the file and says how many processes."""
    name = basename(file.path)
    for path in project.files_containing(name.encode(), kinds=(*YAML_KINDS, *SHELL_KINDS, *JSON_KINDS)):
        job = project.module(path)
        for command in command_lines(job) if isinstance(job, TextFile) else ():
            given = {flag.field: flag.value for flag in command.launcher_flags}
            if "num_processes" in given and basename(given.get("config_file") or "") == name:
                return True
    return False


def _is_configuration(table: Table) -> bool:
    environment = table.entry("compute_environment")
    if table.path or (environment is not None and environment.value not in ("LOCAL_MACHINE", "0")):
        return False
    return environment is not None or (table.entry("distributed_type") is not None and bool(table.keys & _BESIDE))
