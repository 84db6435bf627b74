"""DDP404: an order that differs between processes decides over labels or shares."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from codemods.analysis.class_index import class_facts
from codemods.analysis.distribution import is_test_module, ranks_in_file, ranks_in_importers
from codemods.analysis.loading.dealt_out import dealt_out
from codemods.analysis.loading.far_sets import far_sets, files_of_far_sets
from codemods.analysis.loading.kept_numbers import is_kept_by_the_first
from codemods.analysis.loading.numbered_sets import numbered_sets, of_numbers
from codemods.analysis.loading.one_machine import is_on_one_machine
from codemods.analysis.loading.rows_of_sets import RowsOfSet, rows_of_sets
from codemods.analysis.loading.samplers import short
from codemods.analysis.loading.shuffled_alone import Shuffled, alike, shuffled_alone
from codemods.analysis.loading.shuffled_streams import ShuffledStream, shuffled_streams
from codemods.analysis.loading.splits import is_by_rank
from codemods.analysis.loading.unordered import Unordered, sorted_text, unordered
from codemods.analysis.model.signatures import parameters
from codemods.analysis.names import dotted
from codemods.analysis.processes.made_by_the_parent import is_made_by_the_parent
from codemods.analysis.ranks.reach import ranks_reaching
from codemods.analysis.run_by_ranks import may_show_ranks, shows_ranks
from codemods.api.codemod import DdpCodemod
from codemods.api.findings import Applicability, Evidence, Finding, ReplaceExpression
from codemods.files.source import SourceModule, line_of, walk
from codemods.runtime.lazy_pattern import lazy
from codemods.store.project import Project


class UnorderedLabels(DdpCodemod):
    """Labels or shares by an order that each process has for itself.

    ## What it does
    Finds numbers that are given to the elements of a set (`enumerate(set(names))`, `dict(zip(set(names), range(n)))`,
    `list(set(names)).index(name)`, `tokenizer.add_tokens(list(set(names)))`), files of an unsorted folder of which each
    rank takes its part (`glob(...)[rank::world_size]`), and such files behind the index of a `DistributedSampler`, or texts
    of a set (`list(images.keys() & captions.keys())`), behind that of Lightning's too, also where another function, class or
    file makes the set and the list. It sorts them. Finds a data set behind
    a `DistributedSampler`, or one that the Trainer of transformers gets, whose list is shuffled or drawn (`random.sample`) when
    it is made, or just before, where no seed is set or each rank has one of its own, and gives the call a generator with a fixed
    seed. Reports an IterableDataset that shuffles in `__iter__` before a worker takes its part.

    ## Why it matters
    Python hashes texts with a seed of its own in each process, so the elements of a set come in another order on each rank: one
    rank's class 3 is another's class 5, and the model learns neither. A folder is listed in no order, and machines differ in it:
    ranks on two of them read some files twice and others never. Nothing fails.

    ## Example
    ```python
    import torch.distributed as dist


    def numbers(rows):
        names = list({name for _, name in rows})
        return {name: i for i, name in enumerate(names)}, dist.get_rank()
    ```

    ## Use instead
    ```python
    import torch.distributed as dist


    def numbers(rows):
        names = sorted({name for _, name in rows})
        return {name: i for i, name in enumerate(names)}, dist.get_rank()
    ```

    ## Safety
    Unsafe: the elements must be comparable, and weights that were trained with another numbering of the classes do not fit.

    ## Refuses
    - Says nothing of what is sorted, in whatever place of the function or class.
    - Says nothing of sets that only hold numbers: those have the same order everywhere.
    - Says nothing of what a program numbers before it spawns its processes: they are all handed the same numbers.
    - Says nothing of numbers that rank 0 writes to a file before a barrier, and that all others read there.
    - A set that is used as one (`names.add(name)`) stays a set: it is sorted where its order is read.
    - Says nothing of numbers that leave the function no name: a count of files, a loop over them.
    - Says nothing of a shuffle whose library is seeded alike on every rank somewhere, and of one by an own generator.
    - Says nothing of a shuffle in a function that broadcasts, and of a stream that speaks of seeds or epochs.
    - Says nothing of a shuffle by a parameter that is False in runs of several processes.
    - Says nothing of what the Trainer of transformers gets where a seed is set on the way to it, where the Trainer has loaders of
      its own, and where no text or program shows several processes.
    - Says nothing of files where the group is started at 127.0.0.1 with a rank for each device: no other machine is in it.
    - Says nothing where no file shows several processes, on one rank alone, and in a repository's own tests.

    ## References
    The documentation of Python (`PYTHONHASHSEED`; `os.listdir`: "The list is in arbitrary order"); a set of names on two
    processes. transformers 5, `Trainer.__init__`: it calls `set_seed`, behind the making of the data set that it is handed.
    """

    code = "DDP404"
    severity = "data"
    subject = "Sort what gives labels and shares"
    must_show = "Both processes number the classes alike, and have no file in common."
    printed = ("not supported between instances of",)
    TRIGGERS = (
        (b"glob", b"listdir", b"iterdir", b"set(", b".keys()", b" for ", b"shuffle(", b"permutation(", b"randperm(",
         b"random.sample(", b"random.choice"),
    )  # fmt: skip
    READS_TESTS = False

    def concerns(self, data: bytes) -> bool:
        """A set that is numbered, a folder's files that are taken by their place, or a data set that shuffles."""
        if not super().concerns(data):
            return False
        listed = any(word in data for word in (b"glob", b"listdir", b"iterdir"))
        if any(word in data for word in _SHUFFLES) and (b"__getitem__" in data or b"ataset" in data):
            return True
        if b"__getitem__" in data and (b"set(" in data or b".keys()" in data):
            return True
        if any(word in data for word in _NUMBERS):
            return True
        if b"list(" in data and any(word in data for word in _SETS):
            return True
        return (listed and (b"__getitem__" in data or _STEP.search(data) is not None))

    def is_worth_parsing(self, path: str, project: Project) -> bool:
        if not may_show_ranks(project, path):
            return False
        if any(word in (project.read(path) or b"") for word in _SHUFFLES):
            return True
        return shows_ranks(project, path) or path in files_of_far_sets(project)

    def find(self, module: SourceModule, project: Project) -> Iterator[Finding]:
        if is_test_module(module):
            return
        several = ranks_in_file(project, module) or ranks_in_importers(project, module)
        done: set[int] = set()
        for found, where, message in [*_shares(module, project), *_numbers(module), *_items(module, project)]:
            if found.files and is_on_one_machine(project):
                continue  # one folder, which all ranks list in the same order
            if several is None or id(found.node) in done or ranks_reaching(project, module, found.node).some:
                continue
            if not found.files and is_made_by_the_parent(project, module, found.node):
                continue  # one process numbers them, and hands the numbers on to those that it starts
            if not found.files and is_kept_by_the_first(project, module, found.node):
                continue  # the others read what rank 0 has written
            done.add(id(found.node))
            old, new = sorted_text(module, found)
            evidence = [Evidence("static", "its order decides here", module.path, line_of(where)), several]
            yield self.finding(
                module, found.node, message, level=Applicability.UNSAFE, evidence=evidence,
                edits=[ReplaceExpression(module.path, module.span(old), new)],
                reason="assumes that the elements can be compared, and that no stored weights rest on the old order",
            )  # fmt: skip
        for rows in rows_of_sets(project, module) if several is not None and module.holds(b"__getitem__") else ():
            if id(rows.inside) not in done:
                done |= {id(rows.inside), id(rows.value)}
                yield self._tell_rows(module, rows)
        for rows in far_sets(project, module):
            if not {id(rows.inside), id(rows.value)} & done and not ranks_reaching(project, module, rows.value).some:
                yield self._tell_rows(module, rows)
        for one in shuffled_alone(project, module) if any(word in module.data for word in _SHUFFLES) else ():
            if not ranks_reaching(project, module, one.call).some:
                yield self._tell_shuffled(module, one)

        for stream in shuffled_streams(project, module) if several is not None and module.holds(b"shuffle(") else ():
            yield self._tell_stream(module, stream)

    def _tell_stream(self, module: SourceModule, found: ShuffledStream) -> Finding:
        return self.finding(
            module,
            found.call,
            f"each worker of {found.stream} shuffles `{found.name}` by random numbers of its own, and takes its part of it then: "
            "the parts overlap, so an epoch has some samples twice and others never",
            evidence=[Evidence("static", "the worker takes its part here", module.path, line_of(found.part))],
            reason="shuffle by a generator that is seeded alike in all workers of all ranks (`random.Random(seed + epoch)`), or "
            "behind the part",
        )

    def _tell_rows(self, module: SourceModule, rows: RowsOfSet) -> Finding:
        value, edits = rows.value, list[ReplaceExpression]()
        if isinstance(value, ast.Call) and dotted(value.func) == "list" and len(value.args) == 1:
            edits = [ReplaceExpression(module.path, module.span(value), f"sorted({module.text_of(value.args[0])})")]
        elif value is rows.inside:  # the set itself is gone through where the list is made
            edits = [ReplaceExpression(module.path, module.span(value), f"sorted({module.text_of(value)})")]
        name = rows.name if rows.site.module is module else f"{rows.site.node.name}{rows.name.removeprefix('self')}"
        return self.finding(
            module,
            value,
            f"`{name}` has the order of a set of texts, another one in each process: the indices that are dealt out mean "
            "other samples on each rank, so an epoch has some samples twice and others never",
            level=Applicability.UNSAFE if edits else Applicability.DISPLAY,
            edits=edits,
            evidence=[
                Evidence("static", f"the set: `{short(module, rows.inside)}`", module.path, line_of(rows.inside)),
                Evidence("static", "the index of the sampler is an index of it", rows.site.module.path, rows.item.lineno),
                Evidence("static", "its indices are dealt out", rows.loader.module.path, rows.loader.call.lineno),
            ],
            reason="assumes that the elements can be compared" if edits else "sort it where it is made a list",
        )

    def _tell_shuffled(self, module: SourceModule, one: Shuffled) -> Finding:
        edits = alike(module, one.call)
        return self.finding(
            module,
            one.call,
            f"each rank {'draws' if one.drawn else 'shuffles'} `{one.name}` by random numbers of its own: the indices that "
            f"{one.dealer} deals out mean other samples on each rank, so an epoch has some samples twice and others never",
            level=Applicability.UNSAFE if edits else Applicability.DISPLAY,
            edits=edits,
            evidence=[
                Evidence("static", "the index of the sampler is an index of it", module.path, one.item.lineno),
                Evidence("static", f"{one.dealer} deals the indices out", one.dealt_in.path, one.dealt.lineno),
            ],
            reason="assumes that the same order in every run is fine"
            if edits
            else "shuffle by a generator with a fixed seed (`random.Random(0).shuffle(x)`), or leave it to the sampler",
        )


_NUMBERS = (b"enumerate", b"zip(", b"add_tokens", b"add_special_tokens", b"= len(", b".index(", b"+= 1")
_SETS = (b"set(", b".keys()", b"reduce(", b"list({", b"set.", b" & ")
_STEP = lazy(rb":\s*[^\W\d][\w.()]*\s*\]")  # `[rank::world]`
_SHUFFLES = (b"shuffle(", b"permutation(", b"randperm(", b"random.sample(", b"random.choice")
_Found = tuple[Unordered, ast.AST, str]


def _shares(module: SourceModule, project: Project) -> Iterator[_Found]:
    """`files[rank::world]` of an unsorted list."""
    for slice_ in module.nodes(ast.Slice):
        holder = module.parent(slice_)
        if isinstance(holder, ast.Subscript) and is_by_rank(project, module, slice_):
            found = unordered(module, holder.value)
            if found is not None and not of_numbers(module, found):
                yield (
                    found,
                    holder,
                    f"{_what(module, found)} has another order on other {_places(found)}: the parts of the ranks overlap",
                )


def _numbers(module: SourceModule) -> Iterator[_Found]:
    """`{name: i for i, name in enumerate(names)}` of a set."""
    for found, where in numbered_sets(module):
        what = _what(module, found)
        yield found, where, f"{what} has another order in each process: each rank numbers its elements in another way"


def _items(module: SourceModule, project: Project) -> Iterator[_Found]:
    """A data set behind a DistributedSampler whose `__getitem__` takes the files by their index."""
    for site, _ in dealt_out(project, module):
        method = class_facts(project, module, site.node).method("__getitem__")
        if method is None or method[0].module is not module:
            continue
        index = {a.arg for a in parameters(method[1], bound=True)}
        for node in walk(method[1]):
            if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name) and node.slice.id in index:
                files = unordered(module, node.value)
                if files is not None and files.files:
                    text = (
                        f"{_what(module, files)} has another order on other machines: "
                        "the same index is another file there, so ranks read some files twice and others never"
                    )
                    yield files, node, text


def _what(module: SourceModule, found: Unordered) -> str:
    return f"`{short(module, found.node)}`"


def _places(found: Unordered) -> str:
    return "machines" if found.files else "processes"
