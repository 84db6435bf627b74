"""How the texts and job files of a repository start its scripts: alone by Python or on several processes, with which flags."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import takewhile
from posixpath import basename, dirname, join

from codemods.analysis.job_files.named_files import leaves_its_folder, moved_to, named_file, nearest_file
from codemods.analysis.job_files.named_scripts import with_named_scripts
from codemods.analysis.job_files.one_process import (
    has_one_gpu,
    is_job_of_one,
    starts_one,
    starts_one_a_machine,
    with_own_ones,
)
from codemods.analysis.job_files.script_patterns import files_like
from codemods.analysis.job_files.script_texts import script_text
from codemods.files.text_file import SHELL_KINDS
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record, replace
from codemods.store.project import Project

_TEXTS = (*SHELL_KINDS, ".md", ".rst", ".txt")
_OTHERS = (".py", ".yaml", ".yml", ".json", ".ipynb", ".toml", ".cfg")  # what stands in them is not read as a command line
_LONGEST = 400_000
_WORDS = (b"torchrun", b"torch.distributed", b"accelerate", b"deepspeed", b"srun", b"mpirun", b"mpiexec", b"horovodrun")
_SEVERAL = lazy(
    r"(?<![\w-])(?:torchrun|torch\.distributed\.(?:run|launch)|accelerate\s+launch|srun|mpirun|mpiexec|horovodrun|dist_\w+\.sh|"
    r"slurm_\w+\.sh)(?![\w-])|(?<![A-Za-z0-9_/.-])deepspeed\s"
    r"|(?<!\S)-m\s+(?!torch\.)[\w.]+\.distributed\.(?:run|launch)"  # torch's, by another package
    r"(?=\s(?:(?!\.py\b)[^;&|])*?--nproc[-_]per[-_]node)"
)
_OF_THE_JOB = lazy(r"(?m)^[ \t]*#SBATCH\s+(?:-n|--ntasks)\S*")  # each line of such a file may be run as many times
_JOINED = lazy(r"\\[ \t]*\n[ \t]*#?")
_GOES_ON = lazy(r"\\[ \t]*$")
_ALONE = lazy(r"(?:^|[\s`$>;&(])(?:python[\d.]*|\$\{?PYTHON\}?)\s+(?:-[uOB]\s+)?(-m\s+)?([\w./${}\"'-]+)")
_SCRIPT = lazy(r"(?<![\w-])[\w./${}()\"'-]*\.py\b|\s-m\s+(?!torch\.|accelerate)[\w.]+")
_CHOICE = lazy(r"[ \t]+[\w./-]+\.py(?!\S)")  # a line that begins with a script
_BINARY = lazy(  # a program of another language, or of the system
    r"(?<!\S)[\w./$}{]+\.exe\b|(?<!\S)(?:/usr/bin/|/bin/)?(?:rsync|scp|cp|mv|rm|ls|mkdir|tar|unzip|hostname|nvidia-smi|echo|sleep)\s"
)
_NEXT = lazy(r"&&|[;|`#]")  # the next command, or a comment on this one
_MOVES = lazy(rb"\b(?:cd|chdir|pushd)\b|\bcwd=")  # the command may run in another folder
_FLAG = lazy(r"(?<!\S)--?([A-Za-z][\w.-]*)")
_MORE_FLAGS = lazy(r"\$\{?(?:@|\*|\d|\w*(?i:args?|opts?|options|flags|params)\b)|\.\.\.|…|<[^>]*>")

# `srun` alone runs one task where the job asks for no more.
_LAUNCHING = (
    rb"torchrun|torch\.distributed\.(?:launch|run)|accelerate launch|deepspeed |srun [^\n]{0,80}?(?:-n|-N|--ntasks|--nodes)|"
    rb"mpirun|nproc"
)
# A job that a program writes, `f"#SBATCH --ntasks-per-node={args.gpus}"`: `srun` in it runs as many tasks.
_SEVERAL_TASKS = lazy(rb"#SBATCH[^\n]{0,120}?\s--n?tasks(?:-per-node)?[ =]+(?!1(?!\d))[\d{$%]")
# What the same line leaves the launcher of GPUs stands before it; asked of programs that do not train.
_DEVICES_BEFORE = rb"(?:\bCUDA_VISIBLE_DEVICES=\S+[ ]+(?:\w+=\S+[ ]+)*(?:python[\d.]*[ ]+-m[ ]+)?)?"


@record
class Start:
    """One command. script: the last part of the name, "" where it is a variable; several: a launcher starts several processes.

    flags: as Python has them; more: the command may hold others. launched: by a launcher, be it as one process. path: the file of
    the project that is surely meant, "" where the name alone is known. pinned: the command leaves it one process, or one GPU.
    written: the script with the folders that the command names, "" of a module. job: the text that the command stands in.
    given: what the command gives the script. line: where it stands in that text. apart: each process has a machine, or the GPU
    that it sees, for itself. pattern: the script as it is written, where its name has a variable in it.
    """

    script: str
    several: bool
    flags: frozenset[str]
    more: bool
    launched: bool = False
    path: str = ""
    pinned: bool = False
    written: str = ""
    job: str = ""
    given: str = ""
    line: int = 0
    apart: bool = False
    pattern: str = ""


def starts(project: Project) -> tuple[Start, ...]:
    """Every command of the repository's texts and job files that starts a script."""
    return project.keep("documented starts", lambda: tuple(_starts(project)))


def _starts(project: Project) -> Iterator[Start]:
    named = {p for word in (b"python", *_WORDS) for p in project.files_containing(word, kinds=_TEXTS)}
    for path in sorted(named):
        data = project.read(path) or b""
        if len(data) > _LONGEST:
            continue  # a list of something, or a log
        text = with_own_ones(script_text(project, path))
        text = with_named_scripts(text) if path.endswith(SHELL_KINDS) else text
        alone, narrow = is_job_of_one(text), has_one_gpu(text)
        shared = _OF_THE_JOB.search(text) is not None and not alone
        numbers, lines = _whole_lines(text)
        for i, line in enumerate(lines):
            below = lines[i + 1 : i + 3] if not _is_comment(line) else [n for n in lines[i + 1 : i + 3] if _is_comment(n)]
            for start in _in_line(line, below, shared=shared, choices=_choices(line, lines[i + 1 :])):
                pinned = (start.launched or not start.several) and starts_one(project, line, alone=alone)
                pinned = pinned or (narrow and not start.launched and not start.several)
                several = start.several and not pinned
                apart = pinned or (start.launched and starts_one_a_machine(line))
                found = replace(start, several=several, pinned=pinned, apart=apart, job=path, line=numbers[i])
                alike = files_like(project, start.pattern)
                if alike:
                    yield from (replace(found, script=basename(p), written=p, path=p) for p in alike)
                else:
                    yield replace(found, path=_file(project, path, start, lines[:i]))


def _whole_lines(text: str) -> tuple[list[int], list[str]]:
    """The lines, those that go on with a backslash as one, and the number of the first; a comment goes on in comments alone."""
    numbers: list[int] = []
    out: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        if out and _GOES_ON.search(out[-1]) and (not _is_comment(out[-1]) or _is_comment(line)):
            out[-1] = f"{_GOES_ON.sub('', out[-1])} {line.lstrip().removeprefix('#')}"
        else:
            numbers.append(number)
            out.append(line)
    return numbers, out


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def _file(project: Project, job: str, start: Start, above: list[str]) -> str:
    """The script that a command of a job file or a text means, "" where that is not to be told."""
    shell = job.endswith(SHELL_KINDS)
    if start.written:
        text = "\n".join(above)
        found = named_file(project, job, start.written, text) if shell else None
        away = moved_to(text) is None if shell else leaves_its_folder(text)
        return found or (nearest_file(project, job, start.written) if not away else None) or ""
    if not shell:
        return ""
    beside = join(dirname(job), start.script)
    return beside if start.script and beside in project.files else ""


def starts_of(project: Project, path: str) -> list[Start] | None:
    """The commands for a script; None where some of them may mean another one of the same name."""
    names = script_names(path)
    every = [s for s in starts(project) if s.script in names and s.path in ("", path)]
    return every if all(s.path for s in every) or is_named_once(project, path) else None


def is_program(project: Project, path: str) -> bool:
    """True for a file with the block of a program, and for one without that a command of the texts starts."""
    started = project.keep("started files", lambda: frozenset(s.path for s in starts(project) if s.path))
    return path in started or b"__main__" in (project.read(path) or b"")


def launched_as_several(project: Project, path: str) -> tuple[str, int] | None:
    """(text, line) of a command that starts this script on several processes, or each script that fits its pattern."""
    return next(((s.job, s.line) for s in starts_of(project, path) or () if s.several and s.launched), None)


def is_pinned_to_one(project: Project, path: str) -> bool:
    """True for a script that the texts start, and each time by a command that leaves it one process or one GPU."""
    if any(s.several and not s.script for s in starts(project)) or other_starts(project, path):
        return False
    own = starts_of(project, path)
    return bool(own) and all(s.pinned for s in own or ())


def _choices(line: str, below: list[str]) -> list[str]:
    """The lines of a text that offer one script each for the launcher above them: indented, with comments in between."""
    if _SEVERAL.search(line) is None or _SCRIPT.search(line) is not None or _is_comment(line):
        return []
    depth = len(line) - len(line.lstrip())
    inner = takewhile(lambda one: not one.strip() or len(one) - len(one.lstrip()) > depth, below)
    return [one for one in inner if _CHOICE.match(one)]


def _in_line(line: str, following: list[str], *, shared: bool, choices: list[str]) -> Iterator[Start]:
    if (launcher := _SEVERAL.search(line)) and len(choices) > 1:
        for one in choices:
            script = _SCRIPT.search(one)
            assert script is not None  # as its first word
            yield _start(script[0], one[script.end() :], several=True)
        return
    if launcher:
        rest = line[launcher.end() :]
        if not _SCRIPT.search(rest):  # texts break commands off without a word
            rest = " ".join([rest, *following])
        script = _SCRIPT.search(rest)
        spoken = not line[: launcher.start()].strip(" \t$>#`") or "-" in rest[:3]
        if script is not None or (spoken and "$" in rest and not _BINARY.search(rest)):
            yield _start(script[0] if script else "", rest[script.end() if script else 0 :], several=True)
        return
    for found in _ALONE.finditer(line):
        name = found[2].rstrip("\"'")
        if found[1] or name.endswith(".py"):
            rest = _NEXT.split(line[found.end() :], maxsplit=1)[0]
            yield _start(f"-m {name}" if found[1] else name, rest, several=shared, launched=False)


def _start(script: str, rest: str, *, several: bool, launched: bool = True) -> Start:
    name = written = script.strip(" \"'()")
    if name.startswith("-m"):
        name, written = f"{name.split()[-1].rpartition('.')[2]}.py", ""
    name = basename(name)
    flags = frozenset(flag.replace("-", "_") for flag in _FLAG.findall(rest))
    known = "" if "$" in name or name == ".py" else name
    more = _MORE_FLAGS.search(rest) is not None
    pattern = written if "$" in name else ""
    return Start(known, several, flags, more, launched, written=written if known else "", given=rest.strip(), pattern=pattern)


def is_apart(project: Project, path: str, *, joins: bool = False) -> bool:
    """True for a script that the texts start, and by commands alone whose processes have a machine, or a GPU, to themselves.

    joins: it starts no processes by itself, and Python without a launcher is one.
    """
    if any(s.several and not s.script for s in starts(project)) or other_starts(project, path):
        return False
    own = starts_of(project, path)
    apart = [s for s in own or () if s.apart]
    return bool(apart) and all(s.apart or (joins and not s.launched and not s.several) for s in own or ())


def other_starts(project: Project, path: str) -> bool:
    """True where another file, a program or a setting, names the script behind a launcher, but for one of one process."""
    every = (s for name in script_names(path) for s in _elsewhere(project, name))
    return any(not pinned and meant in ("", path) for _, pinned, meant in every)


def is_told_alone(project: Project, path: str) -> bool:
    """True for a script that a comment or a text in Python starts by a launcher, each time as one process.

    One of another file counts where it can mean no other script.
    """
    once = is_named_once(project, path)
    every = [s for name in script_names(path) for s in _elsewhere(project, name)]
    named = [pinned for place, pinned, meant in every if once or path in (place, meant)]
    return bool(named) and all(named)


def _elsewhere(project: Project, script: str) -> tuple[tuple[str, bool, str], ...]:
    """(file, whether it leaves one process, the script) of each command of a launcher in Python, settings and notebooks.

    script: the file that is meant, "" where that may be each of this name.
    """
    word = re.escape(os.fsencode(script))
    before = b"" if _trains(project, script) else _DEVICES_BEFORE
    pattern = rb"%b(?:%b)[^\n]{0,200}?(?:\n[^\n]{0,200}?){0,4}\b%b[^\n]*"
    launched = re.compile(pattern % (before, _LAUNCHING, word))
    in_job = re.compile(pattern % (before, rb"%b|srun " % _LAUNCHING, word))
    path_of_it = re.compile(rf"[^\s\"'`,=]*(?<![\w-]){re.escape(script)}")

    def build() -> Iterator[tuple[str, bool, str]]:
        for path in project.files_containing(os.fsencode(script), kinds=_OTHERS):
            data = project.read(path) or b""
            for found in (in_job if _SEVERAL_TASKS.search(data) else launched).finditer(data):
                line = _JOINED.sub(" ", found[0].decode("utf-8", "replace"))
                written = path_of_it.search(line)
                meant = nearest_file(project, path, written[0]) if written and not _MOVES.search(data) else None
                yield path, starts_one(project, line, alone=False), meant or ""

    return project.keep(("starts elsewhere", script), lambda: tuple(build()))


def _trains(project: Project, script: str) -> bool:
    """True for a script with a training loop of its own: one GPU in an example is where it was tried, and more are welcome."""
    return any(basename(path) == script for path in project.files_containing(b".backward("))


def script_names(path: str) -> tuple[str, ...]:
    """How commands may name a script: a package is run by the name of its folder."""
    name = basename(path)
    return (name, f"{basename(path[: -len(name) - 1])}.py") if name == "__main__.py" else (name,)


def is_named_once(project: Project, path: str) -> bool:
    """False for one of several scripts of one name: commands cannot be told apart."""
    end = re.compile(rf"(?:^|/){re.escape(basename(path))}$")
    return sum(1 for p in project.python_files if end.search(p)) == 1
