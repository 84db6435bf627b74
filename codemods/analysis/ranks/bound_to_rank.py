"""Names that a file of the project binds to the rank, whatever they are called: `device_id = int(os.environ["LOCAL_RANK"])`,
and those by which it joins a group: `init_process_group("nccl", rank=number)`.

They are handed to functions and constructors of other files, in which no word speaks of ranks. Told from the bytes, before any
file is parsed; whether such a name is the rank at its place is told by what its callers give (rank_sources.py).
"""

from __future__ import annotations

from codemods.analysis.distribution import is_test_file
from codemods.files.sites import Site
from codemods.runtime.lazy_pattern import lazy
from codemods.store.file_facts import file_fact
from codemods.store.project import Project

_SOURCE = (
    rb"(?:(?:int|str)\([ \t]*)?(?:os\.)?(?:environ(?:\.get)?|getenv)[ \t]*[\[(][ \t]*[\"'](?:LOCAL_)?RANK[\"']|"
    rb"[\w.]*\bget_(?:local_)?rank\(|[\w.]*\b(?:local|global)_rank[ \t]*(?:[\r\n#;]|$)"
)
_BOUND = Site(rb"(?m:^[ \t]*|;[ \t]*)\w+[ \t]*=[ \t]*(?:" + _SOURCE + rb")", b"RANK", b"rank")
_NAMES = lazy(rb"(?m:^[ \t]*|;[ \t]*)(\w+)[ \t]*=[ \t]*(?:" + _SOURCE + rb")")
# `init_process_group("nccl", init_method=f"tcp://{host}:{port()}", rank=number)`
_JOINED = lazy(rb"\binit_process_group\((?:[^()]|\([^()]*\))*?\brank[ \t]*=[ \t]*(\w+)\s*[,)]")
_SHORT = 2  # letters: `r` and `i` are everything in other files


@file_fact
def _bound_in(path: str, data: bytes) -> frozenset[str]:
    del path
    bound = _NAMES.findall(data) if _BOUND.search(data) else []
    return frozenset(m.decode() for m in (*bound, *(_JOINED.findall(data) if b"init_process_group" in data else ())))


def bound_to_rank(project: Project) -> frozenset[str]:
    """The names without the word `rank` that a statement binds to it, or that a process joins by."""

    def build() -> frozenset[str]:
        paths = {p for word in (b"RANK", b"_rank", b"init_process_group") for p in project.files_containing(word)}
        found = (project.fact(_bound_in, p) for p in paths if p.endswith(".py") and not is_test_file(p))
        return frozenset(n for names in found for n in names if len(n) > _SHORT and "rank" not in n.lower())

    return project.keep("names bound to the rank", build)
