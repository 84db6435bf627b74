"""Which program a job file starts, and with which flags: shell scripts, Makefiles, texts and lists in YAML, texts in JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from posixpath import basename, dirname, join

from codemods.analysis.job_files.named_files import named_file
from codemods.api.findings import Span
from codemods.files.passages import Passage, WordList, passages, word_lists
from codemods.files.shell_words import Word, commands
from codemods.files.text_file import TextFile
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record
from codemods.store.project import Project

_PYTHON = lazy(r"@?-?(?:.*/)?(?:python[\d.]*|\$\{?PYTHON\}?|\$\(PYTHON\))$")
LAUNCHERS = frozenset({"torchrun", "accelerate", "deepspeed"})
LAUNCHER_MODULES = frozenset(
    {"torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch", "deepspeed.launcher.runner"}
)
# Commands that show a text or look for one: what follows is started by nobody.
TALKERS = frozenset(
    {"echo", "printf", "cat", "grep", "pip", "pip3", "conda", "alias", "which", "test", "[", "pkill", "pgrep", "#"}
)
_WITH_VALUE = frozenset({"-W", "-X"})  # of Python's own options
_FLAG = lazy(r"(--?[A-Za-z][\w.-]*)(=?)")
_STARTS = lazy(r"python|PYTHON|torchrun|accelerate|deepspeed")


@record
class Flag:
    """One flag of a program. name: as written, with its dashes; values: the words it is given; joined: by `=` in its own word.

    value: the one value as a text, None where it has none, several, or one that the shell decides.
    """

    name: str
    word: Word
    values: tuple[Word, ...]
    joined: bool
    value: str | None

    @property
    def field(self) -> str:
        """The name as Python has it: `--eval-steps` is `eval_steps`."""
        return self.name.lstrip("-").replace("-", "_")

    @property
    def settled(self) -> str | None:
        """The value, also where a variable holds it that the script sets above."""
        if self.value is not None or (not self.joined and len(self.values) != 1):
            return self.value
        settled = self.word.settled if self.joined else self.values[0].settled
        return settled[len(self.name) + 1 :] if settled is not None and self.joined else settled

    @property
    def end(self) -> int:
        return self.values[-1].end if self.values else self.word.end


@record
class CommandLine:
    """A program that is started. launcher: torchrun, accelerate, deepspeed, or "" for Python alone; target: the script as it is
    written, or the module's dotted name; module: it is started by `-m`. words: all of the command's; flags: those of the program.
    """

    file: TextFile
    source: Passage | WordList
    launcher: str
    target: str
    module: bool
    words: tuple[Word, ...]
    launcher_flags: tuple[Flag, ...]
    flags: tuple[Flag, ...]

    @property
    def above(self) -> str:
        """The text before it, which may change the folder."""
        return self.source.text[: self.words[0].start] if isinstance(self.source, Passage) else ""

    def span(self, start: int, end: int) -> Span:
        """Where a stretch of it stands in the file, by the places of its words."""
        return self.source.span(start, end) if isinstance(self.source, Passage) else self.file.span_between(start, end)

    def span_of(self, flag: Flag) -> Span:
        return self.span(flag.word.start, flag.end)

    def flag(self, name: str) -> Flag | None:
        """The flag that counts: of several the last, as argparse takes them. name: as Python has it."""
        return next((f for f in reversed(self.flags) if f.field == name), None)


def command_lines(file: TextFile) -> tuple[CommandLine, ...]:
    """Every program that the file starts with Python or a launcher, in order of its place."""
    if not _STARTS.search(file.text):
        return ()
    found: list[CommandLine] = []
    for passage in passages(file):
        if _STARTS.search(passage.text):
            found += (c for words in commands(passage.text) if (c := _started(file, passage, words)))
    listed = (_started(file, words, words.words) for words in word_lists(file))
    found += (c for c in listed if c)
    return tuple(found)


def script_of(project: Project, command: CommandLine) -> str | None:
    """The project's file that the command starts, None where that is not one file."""
    target = command.target
    if command.module:
        resolved = project.resolve(target, "run.py") or project.resolve(target, join(dirname(command.file.path), "run.py"))
        if resolved is None or resolved.rest:
            return None
        return (
            resolved.path.removesuffix("__init__.py") + "__main__.py" if resolved.path.endswith("__init__.py") else resolved.path
        )
    return named_file(project, command.file.path, target, command.above)


def is_python(name: str) -> bool:
    """True for a word that calls Python: `python3`, `/opt/bin/python`, `$PYTHON`."""
    return _PYTHON.match(name) is not None


def launcher_of_module(module: str) -> str:
    """The launcher that `python -m MODULE` calls."""
    return "accelerate" if module.startswith("accelerate") else "deepspeed" if "deepspeed" in module else "torchrun"


def _started(file: TextFile, source: Passage | WordList, words: Sequence[Word]) -> CommandLine | None:
    for i, word in enumerate(words):
        name = word.text
        if basename(name) in TALKERS:
            return None
        if is_python(name):
            return _by_python(file, source, words, i)
        if basename(name).lstrip("@-") in LAUNCHERS and len(words) > i + 1:
            launcher = basename(name).lstrip("@-")
            if launcher == "accelerate" and words[i + 1].text != "launch":
                return None
            return _by_launcher(file, source, words, i + (2 if launcher == "accelerate" else 1), launcher)
    return None


def _by_python(file: TextFile, source: Passage | WordList, words: Sequence[Word], at: int) -> CommandLine | None:
    for i in range(at + 1, len(words)):
        text = words[i].text
        if text == "-m" and i + 1 < len(words):
            module = words[i + 1].text
            if module in LAUNCHER_MODULES:
                return _by_launcher(file, source, words, i + 2, launcher_of_module(module))
            return _line(file, source, words, "", i + 1, i + 2, module=True)
        if text == "-c":
            return None
        if not text.startswith("-") and words[i - 1].text not in _WITH_VALUE:
            return _line(file, source, words, "", i, i + 1) if text.endswith(".py") else None
    return None


def _by_launcher(file: TextFile, source: Passage | WordList, words: Sequence[Word], at: int, launcher: str) -> CommandLine | None:
    module = False
    for i in range(at, len(words)):
        text = words[i].text
        if text in ("-m", "--module"):
            module = True
        elif text.endswith(".py") or (module and words[i - 1].text in ("-m", "--module")):
            return _line(file, source, words, launcher, i, i + 1, module=module, first=at)
    return None


def _line(
    file: TextFile,
    source: Passage | WordList,
    words: Sequence[Word],
    launcher: str,
    target: int,
    rest: int,
    *,
    module: bool = False,
    first: int = 0,
) -> CommandLine:
    launched = tuple(_flags(words[first:target])) if launcher else ()
    return CommandLine(file, source, launcher, words[target].text, module, tuple(words), launched, tuple(_flags(words[rest:])))


def _flags(words: Sequence[Word]) -> Iterator[Flag]:
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        match = _FLAG.match(word.raw)
        if match is None:
            continue
        name, equals = match.groups()
        if not equals and match.end() != len(word.raw):
            continue  # quoted in the middle, or made by the shell
        if equals:
            value = word.value[len(name) + 1 :] if word.value is not None else None
            yield Flag(name, word, (), True, value)
            continue
        values = []
        while at < len(words) and not _FLAG.match(words[at].raw):
            values.append(words[at])
            at += 1
        yield Flag(name, word, tuple(values), False, values[0].value if len(values) == 1 else None)
