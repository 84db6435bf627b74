"""What judgements rest on, as a graph of numbers: files and questions about all files at its ends, answers in between.

A judgement holds as long as each question that it comes to has the same answer (a verifying trace, in the terms of "Build
systems à la carte"). Questions about all files are answered in rows, each of one file (`questions`), so that only the files that
changed are looked at.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from codemods.files.text_file import NOTEBOOK
from codemods.runtime.record import field, record
from codemods.store.file_facts import fact_named
from codemods.store.project import Project
from codemods.store.questions import Question, alone, may_add, rows

FILE, FILES, RESOLVE = "file", "files", "resolve"  # one file; the list of all; a project file by a dotted name
HOLDING, HAS = "holding", "has"  # the folders in which a name lies, whether there is a file: by the list of files, too
FACT = "fact"  # what a function of `file_facts` says of one file
NEVER = "never"  # what no trace says: an answer that rests on it holds for its own run only
_BY_ONE = frozenset({FILE, FILES, RESOLVE, HOLDING, HAS, FACT, NEVER})
Answer = tuple[object, ...]  # of a question about all files: rows


def answered(project: Project, question: Question) -> Answer:
    """The answer as it is kept; of a file, and of the list of files, only whether they changed counts."""
    if question[0] in (FILE, FILES, NEVER):
        return ()
    if question[0] == RESOLVE:
        _, dotted, folder = question
        found = project.resolved_above(str(dotted), f"{folder}/.py" if folder else ".py")
        return ((found.path, *found.rest),) if found is not None else ()
    if question[0] == HOLDING:
        return project.folders_holding(str(question[1]))
    if question[0] == HAS:
        return (project.has_file(str(question[1])),)
    if question[0] == FACT:
        _, name, path, *more = question
        return (project.fact(fact_named(str(name)), str(path), *map(str, more)),)
    return rows(project, question)


@record
class Change:
    """texts: the files that changed, came or went, with their bytes as they are now. project: as it is now, where the list of
    its files is another."""

    texts: Mapping[str, bytes | None]
    project: Project | None = None


@record
class Trace:
    """questions: number -> the question and its answer. sources: number -> those that it rests on. roots: judgement -> number."""

    questions: Mapping[int, tuple[Question, Answer]] = field(default_factory=dict)
    sources: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    roots: Mapping[str, int] = field(default_factory=dict)

    def broken_by(self, change: Change) -> set[str]:
        """The judgements that a change may change."""
        reached = {n for n, (question, answer) in self.questions.items() if question[0] in _BY_ONE
                   and _is_another(question, answer, change)}  # fmt: skip
        reached |= self._answered_otherwise(change)
        for number in sorted(self.sources):  # an answer has a higher number than what it rests on
            if not reached.isdisjoint(self.sources[number]):
                reached.add(number)
        return {name for name, number in self.roots.items() if number in reached}

    def _answered_otherwise(self, change: Change) -> set[int]:
        """The questions about all files to which one of the changed files adds other rows than before."""
        asked = [n for n, (question, _) in self.questions.items() if question[0] not in _BY_ONE]
        before: defaultdict[str, dict[int, list[object]]] = defaultdict(dict)
        for number in asked:
            for row in self.questions[number][1]:
                assert isinstance(row, tuple)
                if row[0] in change.texts:
                    before[row[0]].setdefault(number, []).append(row)
        found: set[int] = set()
        for path, data in change.texts.items():
            now, here = alone(path, data), before.get(path, {})
            for number in asked:
                question, answer = self.questions[number]
                if number in found or (number not in here and not may_add(question, path, data)):
                    continue
                if _other_rows(question, answer, tuple(here.get(number, ())), rows(now, question)):
                    found.add(number)
        return found

    def kept(self, names: Collection[str]) -> Trace:
        """Only what these judgements rest on."""
        roots = {name: number for name, number in self.roots.items() if name in names}
        reached, left = {0}, list(roots.values())
        while left:
            number = left.pop()
            if number not in reached:
                reached.add(number)
                left += self.sources.get(number, ())
        questions = {n: q for n, q in self.questions.items() if n in reached}
        return Trace(questions, {n: s for n, s in self.sources.items() if n in reached}, roots)


def _is_another(question: Question, answer: Answer, change: Change) -> bool:
    if question[0] == FILE:
        return question[1] in change.texts
    if question[0] == NEVER:
        return True
    if question[0] == FACT:
        return (path := str(question[2])) in change.texts and _says_else(question, answer, change.texts[path])
    if change.project is None:
        return False
    return question[0] == FILES or answered(change.project, question) != answer


def _says_else(question: Question, answer: Answer, data: bytes | None) -> bool:
    _, name, path, *more = question
    if str(path).endswith(NOTEBOOK):
        return True  # the fact is one of its program
    try:
        return (fact_named(str(name))(path, data or b"", *more),) != answer
    except KeyError:
        return True


def _other_rows(question: Question, answer: Answer, before: Answer, now: Answer) -> bool:
    """True where the rows of one file are not what they were. Of more files than count, those that are named are enough."""
    if question[0] == "using":
        most = question[2]
        assert isinstance(most, int)
        if len(answer) > most:
            return bool(before) and not now
    return before != now


def together(traces: Sequence[Trace]) -> Trace:
    """All of them as one: a judgement that several hold is the last one's."""
    questions: dict[int, tuple[Question, Answer]] = {}
    sources: dict[int, tuple[int, ...]] = {}
    roots: dict[str, int] = {}
    numbers: dict[Question, int] = {}
    last = 0
    for trace in traces:
        new = {0: 0}
        for number in sorted((*trace.questions, *trace.sources)):
            known = None if number in trace.sources else numbers.get(trace.questions[number][0])
            if known is None:
                known = last = last + 1
                if number in trace.questions:
                    questions[known] = trace.questions[number]
                    numbers[trace.questions[number][0]] = known
                else:
                    sources[known] = _renumbered(trace.sources[number], new)
            new[number] = known
        roots |= {name: new[number] for name, number in trace.roots.items()}
    return Trace(questions, sources, roots)


def _renumbered(numbers: Iterable[int], new: Mapping[int, int]) -> tuple[int, ...]:
    return tuple([new[n] for n in numbers])
