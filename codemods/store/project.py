"""The repository as the codemods see it: read lazily, parsed once, remembered, with an overlay of new bytes between rounds."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from itertools import chain, islice
from posixpath import dirname, join
from typing import TypeVar

from codemods.api.evidence import Observed
from codemods.files.source import SourceModule, Unreadable
from codemods.files.text_file import NOTEBOOK, PYTHON_KINDS
from codemods.runtime.lazy_pattern import lazy
from codemods.store.added_roots import added_root
from codemods.store.corpus import Corpus, alias_at, calls, is_imported, uses
from codemods.store.file_facts import file_fact
from codemods.store.import_targets import Resolved, absolute, absolute_imports, below, first_names, holders, relative
from codemods.store.programs import Reader, kind_of, program, programs
from codemods.store.tables import Rest

T = TypeVar("T")
# A header as far as its colon; a longer one than this is no list of bases.
_CLASS_HEADER = lazy(rb"class [ \t]*(\w+)[ \t]*(?:\[[^\]\0]*\])?[ \t]*\(([^:\0]{1,600})\)[ \t]*:")
_LONGEST_HEADER = 700  # bytes
_DEFINITION = lazy(rb"def [ \t]*(\w+)")
_DOTTED = lazy(rb"[A-Za-z_][\w.]*")
# Source of which the trees are held at the same time: a tree with its index is 37 times its text (CPython 3.11, measured).
MOST_HELD = 8_000_000  # bytes
MOST_DOUBLINGS = 2  # of that room, where it is full again after a few files: 1.2 GB of trees
FEW_FILES = 24  # between two times that room is made; each of them leads to much of the project, which is parsed anew each time
LONGEST_TEXT = 2 * 1024 * 1024  # bytes of a notebook; of a longer one only the code is looked at: the rest is pictures
FEW = 20  # files that are read one by one; a search through all of them costs as much as reading so many


class Project:
    """A set of files below one root.

    files: paths relative to the root, posix, of every kind (configuration too). read: gives a file's bytes, or None.
    observed: what was seen of its runs, for the codemods that weigh it beside the source. targets: package -> the version that
    its user upgrades to, whatever is pinned. launched: its programs are started on several processes, whatever its texts say.
    What an analysis wants to remember goes through `memo`, or through `keep` where the answer holds no node; a Project never
    changes, so neither goes stale. Nobody holds a node beyond the file that is looked at: `make_room` drops the trees.
    """

    def __init__(
        self,
        files: Iterable[str],
        read: Reader,
        *,
        modules: Mapping[str, SourceModule] | None = None,
        corpora: dict[tuple[str, ...], Corpus] | None = None,
        changed: Mapping[str, bytes] | None = None,
        observed: Iterable[Observed] = (),
        targets: Mapping[str, str] | None = None,
        launched: bool = False,
    ) -> None:
        self._files = frozenset(files)
        self.observed = tuple(observed)
        self.targets = dict(targets or {})
        self.launched = launched
        self._corpora = {} if corpora is None else corpora  # shared by a project and its overlays
        self._changed = dict(changed or {})
        self._raw = read
        self._read = self._original = programs(read)
        self._modules: dict[str, SourceModule | Unreadable | None] = dict(modules or {})
        self._memo: dict[Hashable, object] = {}
        self._kept: dict[Hashable, object] = {}
        self._held = sum(len(m.data) for m in self._modules.values() if isinstance(m, SourceModule))
        self._room = MOST_HELD
        self._looked_at = 0  # files, since room was last made
        self.failed: dict[str, list[str]] | None = None  # path -> what went wrong there; None: it is raised
        self.left_out: dict[str, int] = {}  # path -> findings of programs that nothing starts as several processes

    @classmethod
    def of(
        cls, sources: Mapping[str, bytes], observed: Iterable[Observed] = (), targets: Mapping[str, str] | None = None
    ) -> Project:
        """A project held in memory: path -> bytes."""
        return cls(sources, sources.get, observed=observed, targets=targets)

    def with_overlay(self, new: Mapping[str, bytes]) -> Project:
        """The same project with other bytes in some files; what is parsed of the others is kept, every memo is dropped."""
        kept = {p: m for p, m in self._modules.items() if p not in new and isinstance(m, SourceModule)}
        changed = {**self._changed, **{path: program(path, data) for path, data in new.items()}}
        before = self._original
        project = self._overlay(
            self._files | set(new), self._raw, modules=kept, corpora=self._corpora, changed=changed, observed=self.observed,
            targets=self.targets, launched=self.launched,
        )  # fmt: skip
        project._original = before
        project.failed = self.failed
        project.left_out = self.left_out
        project._read = lambda path: changed[path] if path in changed else before(path)
        return project

    @property
    def _overlay(self) -> type[Project]:
        """What a project with other bytes in some of the files is made of."""
        return Project

    def seen_from(self, path: str) -> Project:
        """The project as the code of one file sees it: of all notebooks there is only the one that is asked about.

        Nothing imports a notebook, and most hold a copy of what stands in a module, or another program: to the files of the
        project, and to each other, they are texts.
        """
        if not path.endswith(NOTEBOOK) or path in self._changed or (data := self.read(path)) is None:
            return self
        return self.with_overlay({path: data})

    def memo(self, key: Hashable, build: Callable[[], T]) -> T:
        """What `build()` gives, computed once for this project. A cycle sees KeyError-free recursion: guard in `build`."""
        if key not in self._memo:
            self._memo[key] = build()
        return self._memo[key]  # type: ignore[return-value]

    def keep(self, key: Hashable, build: Callable[[], T]) -> T:
        """As `memo`, for an answer that outlives the trees: neither it nor its key holds a node or a module."""
        if key not in self._kept:
            self._kept[key] = build()
        return self._kept[key]  # type: ignore[return-value]

    def fact(self, fact: Callable[..., T], path: str, *more: str) -> T:
        """What one of `file_facts` makes of a file."""
        return self.keep(("fact", fact, path, *more), lambda: fact(path, self.read(path) or b"", *more))

    def apart(self) -> AbstractContextManager[Rest]:
        """What an answer that goes into a `Table` is worked out in: the table wants to know what it rests on."""
        return nullcontext(Rest())

    def rests_on(self, rest: Rest) -> None:
        """An answer is given that was worked out before: what asks for it rests on the same."""

    def order_counts(self) -> None:
        """What is being worked out rests on what was asked before: it is not kept for another run."""

    def make_room(self) -> None:
        """Between two files: where many trees are held, all of them go, and every memo that may hold their nodes.

        A tree that is wanted again is parsed again. A big repository would else be held whole, at 37 times its size. Where a few
        files lead to that many trees, twice as many may be held: a check of 14 MB of such programs went on for half an hour,
        and takes a minute now.
        """
        self._looked_at += 1
        if self._held <= self._room:
            return
        if self._looked_at < FEW_FILES and self._room < MOST_HELD << MOST_DOUBLINGS:
            self._room *= 2
        if self._held > self._room:
            self._drop_trees()
        self._looked_at = 0

    def _drop_trees(self) -> None:
        self._modules = {p: m for p, m in self._modules.items() if isinstance(m, Unreadable)}
        self._memo = {}
        self._held = 0
        gc.collect()  # trees and what was worked out of them hold each other, and the collector is off in a check

    def read(self, path: str) -> bytes | None:
        if path not in self._changed and (held := self._corpora.get((".py",))) is not None:
            known = held.read(path)
            if known is not None:
                return known
        return self._read(path)

    def raw(self, path: str) -> bytes | None:
        """The bytes of a file as the project was given them, without what an overlay has in its place."""
        return self._raw(path)

    def read_text(self, path: str) -> bytes | None:
        """The bytes of a file as they are: of a notebook the JSON, in which a word of a text or an output stands, too."""
        return self._text(path) if path.endswith(NOTEBOOK) else self.read(path)

    def _text(self, path: str) -> bytes | None:
        data = self._raw(path)
        return self._original(path) if data is not None and len(data) > LONGEST_TEXT and path.endswith(NOTEBOOK) else data

    def each_python_file(self) -> Iterator[tuple[str, bytes]]:
        """Every Python file that can be read, in order, with its bytes; they are held from then on, for who searches in them."""
        if (".py",) in self._corpora or self._changed:
            yield from ((path, data) for path in self._python_files if (data := self.read(path)) is not None)
            return
        corpus = Corpus()
        for path in self._python_files:
            if (data := self._original(path)) is not None:
                corpus.add(path, data)
                yield path, data
        self._corpora[".py",] = corpus

    def add(self, module: SourceModule) -> None:
        """Hand over a module that is already parsed."""
        self._modules[module.path] = module

    def module(self, path: str) -> SourceModule | None:
        """The parsed file, or None where it is missing or unreadable (`why_unreadable` says why)."""
        if path not in self._modules:
            data = self.read(path) if path in self._files else None
            try:
                self._modules[path] = kind_of(path)(path, data) if data is not None else None
                self._held += len(data or b"")
            except Unreadable as error:
                self._modules[path] = error
        found = self._modules[path]
        return found if isinstance(found, SourceModule) else None

    def why_unreadable(self, path: str) -> str:
        found = self._modules.get(path)
        return found.reason if isinstance(found, Unreadable) else ""

    @property
    def files(self) -> frozenset[str]:
        """Every file of the project: paths relative to its root."""
        return self._files

    def has_file(self, path: str) -> bool:
        return path in self._files

    @property
    def python_files(self) -> tuple[str, ...]:
        """The modules, and of the notebooks that which `seen_from` added."""
        return self._python_files

    @cached_property
    def _python_files(self) -> tuple[str, ...]:
        own = (p for p in self._changed if p.endswith(NOTEBOOK))
        return tuple(sorted({*(p for p in self._files if p.endswith(".py")), *own}))

    def files_containing(self, word: bytes, *, kinds: tuple[str, ...] = (".py",)) -> tuple[str, ...]:
        """The files whose bytes hold `word`, sorted."""

        def build() -> tuple[str, ...]:
            old = (p for p in self._corpus(kinds).containing(word) if p not in self._changed)
            ends = PYTHON_KINDS if kinds == (".py",) else kinds
            new = (p for p, data in self._changed.items() if p.endswith(ends) and word in data)
            return tuple(sorted({*old, *new}))

        return self.keep(("files containing", word, kinds), build)

    def files_using(self, name: str, *, most: int, among: Collection[str] | None = None) -> tuple[str, ...] | None:
        """The Python files that hold `name` as a whole word, other than where a `def` or a `class` gives it; sorted.

        most: None is the answer where there are more files, and the search ends as soon as that is seen. among: where to look,
        if that is known.
        """
        found = self.first_using(name, most=most, among=among)
        return found if len(found) <= most else None

    def first_using(self, name: str, *, most: int, among: Collection[str] | None = None) -> tuple[str, ...]:
        """As `files_using`, but of too many files one more than `most`: they show that there are."""
        word = name.encode()
        if among is not None and len(among) <= FEW:
            return tuple(sorted(p for p in among if p.endswith(PYTHON_KINDS) and self.fact(holds_use, p, name)))

        def users() -> Iterator[str]:
            yield from (p for p, data in self._changed.items() if p.endswith(PYTHON_KINDS) and uses(data, word))
            yield from (p for p in self._corpus((".py",)).using(word) if p not in self._changed)

        found = (p for p in users() if among is None or p in among)
        near = None if among is None else frozenset(among)
        return self.keep(("files using", name, most, near), lambda: tuple(sorted(islice(found, most + 1))))

    def files_calling(self, name: str) -> tuple[str, ...]:
        """The Python files that call something of that name, `x.name(...)` included, told from the bytes; sorted."""

        def build() -> tuple[str, ...]:
            word = name.encode()
            old = (p for p in self._corpus((".py",)).calling(word) if p not in self._changed)
            new = (p for p, data in self._changed.items() if p.endswith(PYTHON_KINDS) and calls(data, word))
            return tuple(sorted({*old, *new}))

        return self.keep(("files calling", name), build)

    def files_importing(self, stem: str) -> tuple[str, ...]:
        """The Python files of which an import statement names `stem`, told from the bytes; sorted."""

        def build() -> tuple[str, ...]:
            word = os.fsencode(stem)
            old = (p for p in self._corpus((".py",)).importing(word) if p not in self._changed)
            changed = ((p, data) for p, data in self._changed.items() if p.endswith(PYTHON_KINDS))
            new = (p for p, data in changed if any(is_imported(data, *m.span()) for m in re.finditer(re.escape(word), data)))
            return tuple(sorted({*old, *new}))

        return self.keep(("files importing", stem), build)

    def _class_headers(self) -> Mapping[str, tuple[tuple[str, str], ...]]:
        found: dict[str, list[tuple[str, str]]] = {}
        for path, match in self._matches(b"class ", _CLASS_HEADER):
            name = match.group(1).decode("ascii", "replace")
            for base in {b.rpartition(b".")[2] for b in _DOTTED.findall(match.group(2))}:
                found.setdefault(base.decode("ascii", "replace"), []).append((path, name))
        return {base: tuple(places) for base, places in found.items()}

    def files_defining(self, name: str) -> frozenset[str]:
        """The Python files that define a function or a method of that name, found in the bytes, nothing parsed."""
        return self.keep("files defining", self._files_defining).get(name, frozenset())

    def _files_defining(self) -> Mapping[str, frozenset[str]]:
        found: dict[bytes, set[str]] = {}
        for path, match in self._matches(b"def ", _DEFINITION):
            found.setdefault(match.group(1), set()).add(path)
        return {name.decode("ascii", "replace"): frozenset(paths) for name, paths in found.items()}

    def headers_naming(self, base: str, *, few: bool = True) -> Iterator[tuple[str, str]]:
        """(path, name) of the classes whose header names a base of that last name, found as they are asked for.

        few: cheaper for the first few names, and where the first few answers will do; else all headers are read, once.
        """
        if not few or "class headers" in self._kept:
            yield from self.keep("class headers", self._class_headers).get(base, ())
            return
        word = base.encode()
        held = self._corpus((".py",)).holding(word, b"class ", _CLASS_HEADER, _LONGEST_HEADER)
        old = (found for found in held if found[0] not in self._changed)
        for path, match in chain(self._matches_in_changed(_CLASS_HEADER), old):
            if any(b.rpartition(b".")[2] == word for b in _DOTTED.findall(match.group(2))):
                yield path, match.group(1).decode("ascii", "replace")

    def aliases_of(self, name: str) -> tuple[str, ...]:
        """The other names that an import gives it somewhere, `import name as other`, found in the bytes."""
        return tuple(dict.fromkeys(other for _, other in self.aliases_at(name)))

    def aliases_at(self, name: str) -> tuple[tuple[str, str], ...]:
        """(file, other) for each of them."""

        def build() -> tuple[tuple[str, str], ...]:
            word = name.encode()
            found = [(p, other) for p, other in self._corpus((".py",)).aliases(word) if p not in self._changed]
            for path, data in self._changed.items():
                if path.endswith(PYTHON_KINDS):
                    found += [(path, o) for m in re.finditer(re.escape(word), data) if (o := alias_at(data, *m.span()))]
            return tuple((path, other.decode("ascii", "replace")) for path, other in found)

        return self.keep(("import aliases", name), build)

    def _matches(self, head: bytes, pattern: re.Pattern[bytes]) -> Iterator[tuple[str, re.Match[bytes]]]:
        yield from ((p, m) for p, m in self._corpus((".py",)).matches(head, pattern) if p not in self._changed)
        yield from self._matches_in_changed(pattern)

    def _matches_in_changed(self, pattern: re.Pattern[bytes]) -> Iterator[tuple[str, re.Match[bytes]]]:
        for path, data in self._changed.items():
            if path.endswith(PYTHON_KINDS):
                yield from ((path, m) for m in pattern.finditer(data))

    def _corpus(self, kinds: tuple[str, ...]) -> Corpus:
        if kinds not in self._corpora:
            paths = sorted(p for p in self._files if p.endswith(kinds))
            corpus = self._corpora[kinds] = Corpus()
            for path in paths:
                if (data := self._text(path)) is not None:
                    corpus.add(path, data)
        return self._corpora[kinds]

    def resolve(self, dotted: str, importer: str) -> Resolved | None:
        """The project file that the dotted name (with leading dots if relative) leads to from the file `importer`.

        The longest prefix that is a module or package wins. Absolute names are tried beside the importer (scripts import
        their neighbours), then in each folder above it, then under `src/`, then in the folders that a file of the project puts
        on `sys.path`, and in those that are installed.
        """
        found = self.resolved_above(dotted, importer)
        if found is None and not dotted.startswith("."):
            return self.keep(("resolve elsewhere", dotted, dirname(importer)), lambda: self._resolved_elsewhere(dotted, importer))
        return found

    def resolved_above(self, dotted: str, importer: str) -> Resolved | None:
        """As `resolve`, by the names of the files alone."""
        return self.keep(("resolve", dotted, dirname(importer)), lambda: self._resolve(dotted, importer))

    def _resolved_elsewhere(self, dotted: str, importer: str) -> Resolved | None:
        held = self.folders_holding(dotted.partition(".")[0])
        root = added_root(self, held, importer) if held else None
        return self.resolved_above(dotted, join(root, ".py")) if root is not None else None

    def folders_holding(self, name: str) -> tuple[str, ...]:
        """The folders below the root in which a package or a module of that name lies, by the names of the files alone."""
        return self.keep("folders holding", lambda: holders(self._python_files)).get(name, ())

    def _resolve(self, dotted: str, importer: str) -> Resolved | None:
        if dotted.startswith("."):
            return relative(self._files, dotted, importer)
        parts = tuple(p for p in dotted.split(".") if p)
        if parts and parts[0] not in self._importable:
            return below(self._files, "", parts[1:], allow_base=True) if parts[0] in self._root_names else None
        return absolute(self._files, parts, importer)

    @property
    def _importable(self) -> frozenset[str]:
        """The names that an absolute import of the project's own can begin with: those of its files and folders."""
        return self.keep("importable", lambda: first_names(self._python_files))

    @property
    def _root_names(self) -> frozenset[str]:
        """What the package is called that the root itself is: nothing but its folder says so, and what is imported from it."""
        return self.keep("names of the root", self._find_root_names) if "__init__.py" in self._files else frozenset()

    def _find_root_names(self) -> frozenset[str]:
        beside = {path.partition("/")[0].removesuffix(".py") for path in self._python_files}
        found: dict[str, bool] = {}
        for name, inner in (pair for path in self._python_files for pair in self.fact(absolute_imports, path)):
            found[name] = found.get(name, True) and inner in beside
        return frozenset(name for name, own in found.items() if own) - self._importable


@file_fact
def holds_use(path: str, data: bytes, name: str) -> bool:
    del path
    return uses(data, name.encode())
