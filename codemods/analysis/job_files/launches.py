"""Commands of a launcher as a shell reads them, whether or not they name a script: its own options, what it starts, the rest."""

from __future__ import annotations

from collections.abc import Sequence
from posixpath import basename

from codemods.analysis.job_files.command_lines import LAUNCHER_MODULES, LAUNCHERS, TALKERS, is_python, launcher_of_module
from codemods.api.findings import Span
from codemods.data.launcher_options import SWITCHES
from codemods.files.passages import Passage, passages
from codemods.files.shell_words import Word, commands
from codemods.files.text_file import TextFile
from codemods.runtime.record import record


@record
class Launch:
    """given: all that the launcher is given; options: what stands before the script, by name (`nproc_per_node`), with its word
    and that of its value; started: the words from the first on that the launcher takes for the script, none where there is none.
    """

    file: TextFile
    passage: Passage
    launcher: str
    words: tuple[Word, ...]
    given: tuple[Word, ...]
    options: tuple[tuple[str, Word, Word | None], ...]
    started: tuple[Word, ...]

    def span(self, first: Word, last: Word) -> Span:
        return self.passage.span(first.start, last.end)

    def option(self, *names: str) -> Word | None:
        """The word that gives an option its value; of `--name=value` the whole word."""
        return next((value or word for name, word, value in self.options if name in names), None)

    def has(self, *names: str) -> bool:
        return any(name in names for name, _, _ in self.options)


def launches(file: TextFile) -> tuple[Launch, ...]:
    """Every command of the file that calls a launcher, in order."""
    found: list[Launch] = []
    for passage in passages(file):
        if any(name in passage.text for name in (*LAUNCHERS, "torch.distributed")):
            found += (made for words in commands(passage.text) if (made := _launch(file, passage, words)) is not None)
    return tuple(found)


def _launch(file: TextFile, passage: Passage, words: Sequence[Word]) -> Launch | None:
    begun = _begin(words)
    if begun is None:
        return None
    launcher, at = begun
    options: list[tuple[str, Word, Word | None]] = []
    rest = at
    while rest < len(words) and words[rest].text.startswith("-"):
        word = words[rest]
        name, equals, _ = word.text.partition("=")
        name = name.lstrip("-").replace("-", "_")
        rest += 1
        if equals or name in SWITCHES[launcher] or rest >= len(words) or words[rest].text.startswith("-"):
            options.append((name, word, None))
            continue
        options.append((name, word, words[rest]))
        rest += 1
    return Launch(file, passage, launcher, tuple(words), tuple(words[at:]), tuple(options), tuple(words[rest:]))


def _begin(words: Sequence[Word]) -> tuple[str, int] | None:
    """(the launcher, the index of the first word that is handed to it)."""
    for i, word in enumerate(words):
        name = word.text
        if basename(name) in TALKERS:
            return None
        if is_python(name):
            module = next((k for k in range(i + 1, len(words)) if words[k].text == "-m"), None)
            named = words[module + 1].text if module is not None and module + 1 < len(words) else ""
            if module is None or named not in LAUNCHER_MODULES:
                return None
            script = any(not w.text.startswith("-") for w in words[i + 1 : module])
            return None if script else (launcher_of_module(named), module + 2)
        launcher = basename(name).lstrip("@-")
        if launcher in LAUNCHERS and len(words) > i + 1:
            if launcher != "accelerate":
                return launcher, i + 1
            return (launcher, i + 2) if words[i + 1].text == "launch" else None
    return None
