"""DDP710: a command of a launcher that ends before the training begins."""

from __future__ import annotations

from collections.abc import Iterator
from posixpath import basename

from codemods.analysis.distribution import is_test_file
from codemods.analysis.job_files.command_lines import CommandLine, command_lines, is_python
from codemods.analysis.job_files.ended_commands import Ended, ended_commands
from codemods.analysis.job_files.launches import Launch, launches
from codemods.analysis.job_files.misnamed_files import Misnamed, misnamed_files
from codemods.analysis.job_files.missing_files import is_missing, only_configuration
from codemods.analysis.job_files.misspelled_launchers import Misspelled, misspelled_launchers
from codemods.analysis.job_files.unexported_variables import Unexported, unexported_variables
from codemods.analysis.job_files.unknown_options import UnknownOption, unknown_options
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Edit, Evidence, Finding, ReplaceText
from codemods.data.launcher_options import SWITCHES, VALUES_OF_TORCHRUN
from codemods.files.shell_words import Word
from codemods.files.source import SourceModule
from codemods.files.text_entries import tables
from codemods.files.text_file import DOCUMENT_KINDS, SHELL_KINDS, YAML_KINDS, TextFile
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project

_PROGRAMS = frozenset({"uv", "poetry", "pdm", "conda", "bash", "sh", "srun", "torchrun", "accelerate", "deepspeed"})
_CONFIGURATION = "config_file"
_ANY_PROGRAM = ("no_python", "m", "module", "run_path")
_EMPTY = lazy(r"--?[A-Za-z][\w-]*=$")
_SCRIPTS = (".py", ".pyz")


class CommandThatCannotStart(DdpCodemod):
    """A command of a launcher that ends with an error before the training begins.

    ## What it does
    Reads the commands of `torchrun`, `python -m torch.distributed.launch`, `accelerate launch` and `deepspeed` in shell scripts,
    Slurm files, Makefiles and YAML. Finds `torchrun python train.py`, which looks for a script of the name `python`; a blank
    behind the `=` of an option, by which the option is empty and its value stands alone; a command that gives the launcher the
    options of a script and names none; a script, or a configuration of one, of a name that no folder of the repository has, while
    one file has nearly the same name; an option of the script that its program has nowhere; a configuration file of `accelerate
    launch`, or of DeepSpeed in one, that the repository does not have. In these and in the shell blocks of Markdown, of `srun`,
    `mpirun` and `horovodrun` as well: a backslash with a blank or a comment behind it, which ends the command, a line without one
    above a line of options, and options of
    torchrun that a program of a wrong name is given (`torch --nproc_per_node=2 train.py`). In a shell script, too:
    `CUDA_VISIBLE_DEVICES=0,1` (or a variable of NCCL or Gloo) on a line of its own above the command, which nothing exports.

    ## Why it matters
    The job waits in the queue, gets its GPUs, and ends in the first second: "can't open file 'python'", "unrecognized
    arguments", "the following arguments are required: training_script".

    ## Example
    ```bash
    torchrun --nproc_per_node=2 python train.py --data "$DATA" --epochs 5
    ```

    ## Use instead
    ```bash
    torchrun --nproc_per_node=2 train.py --data "$DATA" --epochs 5
    ```

    ## Safety
    Safe: the command starts nothing as it stands. So is `python` taken out in front of a script or `-m`, and `torchrun` for a
    wrong name. Unsafe: the blank behind `=`
    taken out; it assumes that the program takes no words without an option. Unsafe: an option of the script with `-` for `_`,
    or the other way round.

    ## Refuses
    - Says nothing of a script's options unless its parsers are argparse's, and all their options are written out.
    - Says nothing of `--no_python`, by which the launcher starts any program.
    - Says nothing of a command whose script the shell puts in (`$SCRIPT`, `"$@"`), and of a text that only shows a command.
    - Says nothing of a file under a variable or an absolute path, of one that stands in any folder of the repository, and where
      a text of the repository says to make it (`accelerate config`).
    - Says nothing of a backslash with a blank behind it, unless the next line begins with an option.
    - Says nothing of a variable that another line of the script speaks of, that a text gives the script, or that the program
      reads or sets, and in scripts that read others in, export all, or run under a batch system, which may have exported it.
    - Reports a variable that is not exported: whoever starts the script may have exported it.
    - Reports a line that ends its command: it changes no commands into one.
    - Reports another program in the script's place, a missing script and a missing file: which one is meant is not shown.

    ## References
    `torch.distributed.run`: the first word that is no option is `training_script`; Accelerate 1.15, `launch_command_parser`;
    argparse: the value of `--name=` ends with its word. Runs of each command.
    """

    code = "DDP710"
    severity = "crash"
    subject = "Give the launcher the script instead of python"
    must_show = "The job starts: the command of the file, with two processes."
    printed = (
        "can't open file 'python'", "unrecognized arguments", "ambiguous option", "arguments are required: training_script",
    )  # fmt: skip
    TRIGGERS = ((b"nproc_per_node",), (b"deepspeed_config_file",))  # no Python is read
    READS_TESTS = False
    TEXT = (b"torchrun", b"torch.distributed", b"accelerate", b"deepspeed", b"srun", b"mpirun", b"horovodrun", b"nproc")
    TEXT_KINDS = (*SHELL_KINDS, *YAML_KINDS, *DOCUMENT_KINDS)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if not isinstance(module, TextFile) or is_test_file(module.path):
            return
        yield from (self._ended(module, found) for found in ended_commands(module))
        yield from (self._misspelled(module, found) for found in misspelled_launchers(module))
        yield from (self._unexported(module, found) for found in unexported_variables(project, module))
        for launch in launches(module) if not module.path.endswith(DOCUMENT_KINDS) else ():
            yield from self._script(launch)
            yield from self._blanks(launch)
            yield from self._configuration(project, launch)
            yield from (self._misnamed(launch, found) for found in misnamed_files(project, launch))
        for command in command_lines(module) if not module.path.endswith(DOCUMENT_KINDS) else ():
            if command.launcher:
                yield from (self._option(command, found) for found in unknown_options(project, command))
        yield from self._of_deepspeed(module, project)

    def _ended(self, file: TextFile, found: Ended) -> Finding:
        """A backslash that was to continue the command, or its lack."""
        if found.bare:
            return self.finding(
                file,
                found.span,
                f"the line ends the command: nothing joins `{found.after}` and what follows to it, so that `{found.starter}` "
                f"{'starts the script without these options' if found.script else 'is given nothing of it'}, and the shell runs "
                f"`{found.after}` as a command of its own",
                reason="end each line of the command but the last with a backslash",
            )
        behind = "the blank in front of a comment" if found.comment else "a blank at the end of its line"
        return self.finding(
            file,
            found.span,
            f"the backslash escapes {behind}, and continues nothing: `{found.starter}` is given "
            f"{f'`{found.glued}` with a blank behind it' if found.glued else 'a blank for a word'}, and the shell runs "
            f"`{found.after}` as a command of its own",
            reason="put the comment on a line of its own above the command" if found.comment else "take the blank out",
        )

    def _unexported(self, file: TextFile, found: Unexported) -> Finding:
        """A variable that was to be one of the command's environment."""
        below = found.launch.span(found.launch.words[0], found.launch.words[0])
        comes = "see every GPU of the machine" if found.name.endswith("VISIBLE_DEVICES") else "are not given it"
        return self.finding(
            file,
            found.launch.span(found.word, found.word),
            f"this line sets a variable of the shell alone, which nothing exports: the processes of line {below.line} {comes}",
            evidence=[Evidence("static", "the launcher below it", file.path, below.line)],
            reason=f"write `export {found.name}=…`, or set it on the line of the command",
            severity="risk",
        )

    def _misspelled(self, file: TextFile, found: Misspelled) -> Finding:
        message = f"there is no program `{found.name}`: the shell ends with \"command not found\""
        evidence = [Evidence("static", "its options are those of torchrun", file.path, found.span.line)]
        edits: list[Edit] = [ReplaceText(file.path, found.span, "torchrun")]
        return self.finding(file, found.span, message, level=Applicability.SAFE, edits=edits, evidence=evidence)

    def _option(self, command: CommandLine, found: UnknownOption) -> Finding:
        name, span = found.flag.name, command.span_of(found.flag)
        if found.several:
            which = ", ".join(f"`{o}`" for o in found.several[:-1]) + f" and `{found.several[-1]}`"
            return self.finding(
                command.file,
                span,
                f"{found.script} has {which}, and no option `{name}`: argparse ends each rank with \"ambiguous option\"",
                evidence=[Evidence("static", "its options are written out, and several begin with this one", found.script, 1)],
                reason="write out which of them is meant",
            )
        there = f"assumes that {found.meant} is meant"
        word = found.flag.word
        edit = ReplaceText(command.file.path, command.span(word.start, word.start + len(name)), found.meant)
        return self.finding(
            command.file,
            span,
            f"{found.script} has no option `{name}`: argparse ends each rank with \"unrecognized arguments\"",
            level=Applicability.UNSAFE if found.meant else Applicability.DISPLAY,
            edits=[edit] if found.meant else [],
            evidence=[Evidence("static", "its options are written out, and none of them is this one", found.script, 1)],
            reason=there if found.meant else "take it out of the command, or add it to the parser",
        )

    def _script(self, launch: Launch) -> Iterator[Finding]:
        if launch.has(*_ANY_PROGRAM):
            return
        if _names_no_script(launch):
            yield self.finding(
                launch.file,
                launch.span(launch.words[0], launch.words[-1]),
                f"the command names no script: the launcher knows no `{_stranger(launch)}`, and ends",
                reason="write the script in front of its own options",
            )
        if not launch.started:
            return
        first, *rest = launch.started
        name = first.value or ""
        if is_python(name) and rest:
            yield self._program(launch, first, rest)
        elif basename(name) in _PROGRAMS:
            yield self.finding(
                launch.file,
                launch.span(first, first),
                f"`{launch.launcher}` takes `{name}` for the training script, and ends because there is no such file",
                reason=f"let `{name}` call the launcher, or give the launcher the script (`-m` for a module)",
            )

    def _misnamed(self, launch: Launch, found: Misnamed) -> Finding:
        word = found.word
        written = word.raw.strip("\"'")
        what = "can't open file" if written.endswith(".py") else "FileNotFoundError"
        return self.finding(
            launch.file,
            launch.span(word, word),
            f"no folder of the repository has `{written}`: each rank ends at once ({what})",
            evidence=[Evidence("static", "this file is there, and has nearly the same name", found.near, 1)],
            reason=f"is {found.near} meant?",
        )

    def _program(self, launch: Launch, first: Word, rest: list[Word]) -> Finding:
        script = rest[0].value or rest[0].raw
        fits = script.endswith(_SCRIPTS) or script == "-m"
        edits: list[Edit] = [ReplaceText(launch.file.path, launch.passage.span(first.start, rest[0].start), "")]
        return self.finding(
            launch.file,
            launch.span(first, first),
            f"`{launch.launcher}` starts Python itself: it takes `{first.raw}` for the script, and each rank ends with "
            f"\"can't open file '{first.raw}'\"",
            level=Applicability.SAFE if fits else Applicability.DISPLAY,
            edits=edits if fits else [],
            evidence=[_at(launch, first, f"`{first.raw}` stands where the script is looked for")],
            reason="" if fits else "give the launcher the script itself",
        )

    def _blanks(self, launch: Launch) -> Iterator[Finding]:
        for word, after in zip(launch.words, launch.words[1:], strict=False):
            between = launch.passage.text[word.end : after.start]
            if not _EMPTY.match(word.raw) or after.raw.startswith("-") or between.strip(" \t"):
                continue
            yield self.finding(
                launch.file,
                launch.span(word, after),
                f"`{word.raw}` is empty: the blank parts it from `{after.raw.split()[0]}`, and the program ends with "
                '"unrecognized arguments"',
                level=Applicability.UNSAFE,
                edits=[ReplaceText(launch.file.path, launch.span(word, after), word.raw + after.raw)],
                evidence=[_at(launch, after, "this word stands alone")],
                reason="assumes that the program takes no words without an option",
            )

    def _configuration(self, project: Project, launch: Launch) -> Iterator[Finding]:
        given = launch.option(_CONFIGURATION) if launch.launcher == "accelerate" else None
        path = (given.value or "").rpartition("=")[2] if given is not None else ""
        if given is None or not is_missing(project, launch.file.path, path):
            return
        there = only_configuration(project)
        yield self.finding(
            launch.file,
            launch.span(given, given),
            f"the repository has no {path}: `accelerate launch` ends with FileNotFoundError",
            reason=f"is {there} meant?" if there else "add the file to the repository, or say how it is made",
        )

    def _of_deepspeed(self, file: TextFile, project: Project) -> Iterator[Finding]:
        for table in tables(file) if file.path.endswith(YAML_KINDS) and file.holds(b"deepspeed_config_file") else ():
            for entry in table.entries:
                if entry.key == "deepspeed_config_file" and entry.kind == "text" and is_missing(project, file.path, entry.value):
                    yield self.finding(
                        file,
                        entry.value_span,
                        f"the repository has no {entry.value}: every process ends when the Accelerator is made",
                        reason="add the file to the repository, or write its settings here",
                    )


def _names_no_script(launch: Launch) -> bool:
    """True where an option that the launcher does not know stands before any script, and no word could be one."""
    if any(w.value is None or w.value.endswith(_SCRIPTS) or w.raw in ("-m", "--module") for w in launch.given):
        return False
    return bool(_stranger(launch))


def _stranger(launch: Launch) -> str:
    known = SWITCHES["torchrun"] | VALUES_OF_TORCHRUN
    return next((word.raw for name, word, _ in launch.options if launch.launcher == "torchrun" and name not in known), "")


def _at(launch: Launch, word: Word, text: str) -> Evidence:
    return Evidence("static", text, launch.file.path, launch.span(word, word).line)
