"""Commands that call `torch.distributed.launch`, word by word: its options, its script, what torchrun refuses."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from posixpath import basename

from codemods.analysis.job_files.command_lines import TALKERS, is_python
from codemods.api.findings import ChangeItems, Edit, ReplaceExpression, ReplaceText, Span
from codemods.data.launcher_options import SWITCHES, VALUES_OF_TORCHRUN
from codemods.files.passages import Passage, WordList, passages, word_lists
from codemods.files.shell_words import Word, commands
from codemods.files.source import SourceModule
from codemods.files.text_file import DOCUMENT_KINDS, TextFile
from codemods.runtime.lazy_pattern import lazy
from codemods.runtime.record import record

LAUNCHER = "torch.distributed.launch"
_MODULE = "torch.distributed.run"
_USE_ENV = ("--use_env", "--use-env")
_BY_PATH = lazy(r"@?-?python3?$")  # what the search path finds, as it finds torchrun
_VARIABLE = lazy(r"[\"']?\$\{?(\w+|[@*])(?:\[@\])?\}?[\"']?$")
_ONE = lazy(r"(?<!\S)--nproc[_-]per[_-]node[= ]1(?!\S)")
_NODES = lazy(r"(?<!\S)--nnodes[= ](?!1(?!\S))")
_HEADING = lazy(r" {0,3}#{1,6}\s+(?P<text>.*)")
_TAKEN_ELSEWHERE = lazy(r"use[_-]env")


@record
class OldCommand:
    """python, module: the words of the interpreter and of the launcher's module, by number. script: the word that names the
    script, None where it is not to be seen; by_module: it is a module. use_env: the words of that option. strange: why torchrun
    cannot be given the same options, "" where it can.
    """

    file: SourceModule
    source: Passage | WordList | ast.List
    words: tuple[Word, ...]
    python: int
    module: int
    script: Word | None
    by_module: bool
    use_env: tuple[int, ...]
    strange: str

    @property
    def above(self) -> str:
        """The text before it, which may change the folder."""
        return self.source.text[: self.words[0].start] if isinstance(self.source, Passage) else ""

    @property
    def span(self) -> Span:
        """From the interpreter to the launcher."""
        return self._between(self.words[self.python].start, self.words[self.module].end)

    def _between(self, start: int, end: int) -> Span:
        if isinstance(self.source, Passage):
            return self.source.span(start, end)
        if isinstance(self.file, TextFile):
            return self.file.span_between(start, end)
        assert isinstance(self.source, ast.List)
        return self.file.span(self.source)

    @property
    def becomes(self) -> str:
        """What calls the new launcher: `torchrun`, or the module where the interpreter is a chosen one or has options."""
        python, launcher = self.words[self.python], self.words[self.module]
        plain = self.module == self.python + 2 and _BY_PATH.match(python.raw.strip("\"'")) is not None
        if isinstance(self.source, ast.List) or not plain:
            return _MODULE
        between = self.source.text[python.end : launcher.start] if isinstance(self.source, Passage) else ""
        return "torchrun" if "\n" not in between and "\r" not in between else _MODULE

    @property
    def starts_one(self) -> bool:
        """True where the command itself asks for one process, on one machine."""
        given = " ".join(w.text for w in self.words[self.module + 1 :])
        return _ONE.search(given) is not None and _NODES.search(given) is None

    def edits(self) -> list[Edit]:
        """The command under the new launcher, without `--use_env`."""
        if isinstance(self.source, ast.List):
            return _in_code(self)
        return _in_a_list(self) if isinstance(self.source, WordList) else _in_a_text(self, self.source)


def old_commands(file: SourceModule) -> Iterator[OldCommand]:
    """Every command of the file that calls the launcher, in order: of a text, of a list of words, of a list in a program."""
    if not isinstance(file, TextFile):
        for node in file.nodes(ast.List):
            if any(isinstance(item, ast.Constant) and item.value == LAUNCHER for item in node.elts):
                yield from _read(file, node, _items(file, node))
        return
    for passage in passages(file):
        for words in commands(passage.text) if LAUNCHER in passage.text else ():
            yield from _read(file, passage, words)
    for listed in word_lists(file):
        yield from _read(file, listed, listed.words)


def is_shown_as_old(command: OldCommand) -> bool:
    """True below a heading of a document that names the launcher: it is shown there for what it is, beside its successor."""
    if not command.file.path.endswith(DOCUMENT_KINDS):
        return False
    heading, fence = "", ""
    for line in command.file.lines[: command.span.line - 1]:
        mark = line.lstrip()[:3]
        if mark in ("```", "~~~") and (not fence or fence == mark):
            fence = "" if fence else mark
        elif not fence and (found := _HEADING.match(line)) is not None:
            heading = found["text"]
    return LAUNCHER in heading


def _items(file: SourceModule, node: ast.List) -> tuple[Word, ...]:
    return tuple(_item(file, item, i) for i, item in enumerate(node.elts))


def _item(file: SourceModule, item: ast.expr, at: int) -> Word:
    if isinstance(item, ast.Constant) and isinstance(item.value, str):
        return Word(file.text_of(item), item.value, at, at + 1)
    if isinstance(item, ast.JoinedStr):
        written = "".join(str(v.value) if isinstance(v, ast.Constant) else "{}" for v in item.values)
        return Word(written, None, at, at + 1)
    return Word(file.text_of(item), None, at, at + 1)


def _read(file: SourceModule, source: Passage | WordList | ast.List, words: Sequence[Word]) -> Iterator[OldCommand]:
    module = next((i for i, w in enumerate(words) if w.value == LAUNCHER and i and words[i - 1].value == "-m"), None)
    python = next((i for i in range(module or 0) if _is_interpreter(words[i], source)), None)
    if module is None or python is None or any(basename(w.text) in TALKERS for w in words[:python]):
        return
    if any(not w.text.startswith("-") for w in words[python + 1 : module - 1]):
        return  # another program stands between them
    yield _command(file, source, tuple(words), python, module)


def _is_interpreter(word: Word, source: Passage | WordList | ast.List) -> bool:
    return is_python(word.text) or (isinstance(source, ast.List) and word.value is None and "executable" in word.raw)


def _command(
    file: SourceModule, source: Passage | WordList | ast.List, words: tuple[Word, ...], python: int, module: int
) -> OldCommand:
    at, use_env, strange, by_module = module + 1, [], "", False
    script: Word | None = None
    while at < len(words) and script is None:
        word, text = words[at], words[at].text
        name, equals, _ = text.lstrip("-").partition("=")
        name = name.replace("-", "_")
        at += 1
        if not text.startswith("-"):
            if (hidden := _hidden(file, word)) is not None:
                strange = strange or hidden
                continue
            script = word
        elif text in _USE_ENV:
            use_env.append(at - 1)
        elif name in ("m", "module") and not equals:
            by_module = True
        elif name in VALUES_OF_TORCHRUN:
            at += 0 if equals else 1
        elif name == "no_python":
            strange = "it starts no Python"
        elif name not in SWITCHES["torchrun"]:
            strange = strange or f"torchrun has no option `{text.partition('=')[0]}`"
    return OldCommand(file, source, words, python, module, script, by_module, tuple(use_env), strange)


def _hidden(file: SourceModule, word: Word) -> str | None:
    """Why a word may be more options of the launcher; "" where it surely is nothing else, None where it is the script."""
    if not isinstance(file, TextFile):
        return f"what `{word.raw}` stands for is not shown" if word.value is None and word.raw.startswith("*") else None
    variable = _VARIABLE.match(word.raw)
    if variable is None or word.value is not None or word.settled is not None:
        return None
    given = re.search(rf"(?m)^[ \t]*(?:export[ \t]+)?{re.escape(variable[1])}=[ \t]*[(\"']?[ \t\\\r\n]*(-?)", file.text)
    if given is None:
        return f"what `{word.raw}` stands for is not shown" if variable[1] in "@*" else None
    if not given[1]:
        return None
    return f"`--use_env` may stand in {word.raw}" if _TAKEN_ELSEWHERE.search(file.text) else ""


def _in_a_text(command: OldCommand, passage: Passage) -> list[Edit]:
    words, path = command.words, command.file.path
    python, module = words[command.python], words[command.module]
    edits: list[Edit] = []
    if command.becomes == "torchrun":
        start = python.start + len(python.raw) - len(python.raw.lstrip("@-"))
        edits.append(ReplaceText(path, passage.span(start, module.end), "torchrun"))
    else:
        edits.append(ReplaceText(path, passage.span(module.start, module.end), _MODULE))
    for i in command.use_env:
        if passage.between(words[i - 1], words[i]).strip(" \t\r\n\\"):
            return []
        edits.append(ReplaceText(path, passage.span(words[i - 1].end, words[i].end), ""))
    return edits


def _in_a_list(command: OldCommand) -> list[Edit]:
    words, file = command.words, command.file
    assert isinstance(file, TextFile)
    python, module = words[command.python], words[command.module]
    edits: list[Edit] = []
    dropped = [(words[i - 1].end, words[i].end) for i in command.use_env]
    if command.becomes == "torchrun":
        edits.append(ReplaceExpression(file.path, file.span_between(python.start, python.end), "torchrun"))
        dropped.append((python.end, module.end))
    else:
        edits.append(ReplaceExpression(file.path, file.span_between(module.start, module.end), _MODULE))
    if any("#" in file.text[start:end] for start, end in dropped):
        return []
    return [*edits, *(ChangeItems(file.path, file.span_between(start, end), "") for start, end in dropped)]


def _in_code(command: OldCommand) -> list[Edit]:
    """The list with the other module's name; as a whole, where an item goes."""
    node, module = command.source, command.file
    assert isinstance(node, ast.List)
    name = node.elts[command.module]
    if not command.use_env:
        return [ReplaceExpression(module.path, module.span(name), _like(module.text_of(name)))]
    if "#" in module.text_of(node):
        return []
    kept = [item for i, item in enumerate(node.elts) if i not in command.use_env]
    written = (_like(module.text_of(item)) if item is name else module.text_of(item) for item in kept)
    return [ReplaceExpression(module.path, module.span(node), f"[{', '.join(written)}]")]


def _like(old: str) -> str:
    return old.replace(LAUNCHER, _MODULE)
