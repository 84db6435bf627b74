"""What a judgement rests on is noted, whoever worked the answers out that it was given."""

from __future__ import annotations

import inspect
import marshal
import random
from collections.abc import Callable
from functools import partial

from codemods.api.codemod import built_in
from codemods.store import file_facts
from codemods.store.project import Project
from codemods.store.tables import Table
from codemods.store.trace import Change, together
from codemods.store.traced_project import TracedProject

FILES = {"a.py": b"import b\n", "b.py": b"def f(): pass\n", "c.py": b"class C(Base): pass\n", "run.sh": b"python a.py\n"}


def project() -> TracedProject:
    return TracedProject(FILES, FILES.get)


def broken(live: TracedProject, roots: dict[str, int], path: str, data: bytes | None) -> set[str]:
    trace = live.notes.trace(live, roots)
    assert together([trace, trace]).broken_by(Change({path: data})) == trace.broken_by(Change({path: data}))
    return trace.broken_by(Change({path: data}))


def test_who_is_given_an_answer_rests_on_what_it_was_made_from() -> None:
    live = project()
    _, one = live.traced(lambda: live.memo("text", lambda: live.read("b.py")))
    _, two = live.traced(lambda: live.memo("text", lambda: b"never made again"))
    _, three = live.traced(lambda: live.read("c.py"))
    assert broken(live, {"one": one, "two": two, "three": three}, "b.py", b"") == {"one", "two"}


def test_an_entry_of_a_table_knows_what_it_rests_on() -> None:
    live = project()

    def ask(path: str) -> bytes | None:
        known: Table[str, bytes | None] = live.keep("texts", lambda: Table(live))
        if path in known:
            return known[path]
        with live.apart() as rest:
            found = live.read(path)
        return known.put(path, found, rest)

    roots = {name: live.traced(partial(ask, path))[1] for name, path in (("1", "b.py"), ("2", "b.py"), ("3", "c.py"))}
    assert broken(live, roots, "b.py", b"") == {"1", "2"}


def test_a_question_about_all_files_changes_with_what_a_file_adds() -> None:
    live = project()
    questions: dict[str, Callable[[], object]] = {
        "word": lambda: live.files_containing(b"def"),
        "script": lambda: live.files_containing(b"python", kinds=(".sh",)),
        "import": lambda: live.files_importing("b"),
        "heirs": lambda: tuple(live.headers_naming("Base")),
        "uses": lambda: live.files_using("f", most=0),
        "defined": lambda: live.files_defining("f"),
        "fact": lambda: live.fact(_uses_f, "b.py"),
    }
    roots = {name: live.traced(ask)[1] for name, ask in questions.items()}
    assert broken(live, roots, "b.py", b"def f(): return 1\n") == set()
    assert broken(live, roots, "b.py", b"def g(): return f()\n") == {"uses", "defined", "fact"}
    assert broken(live, roots, "a.py", b"import b, c\n") == set()
    assert broken(live, roots, "a.py", None) == {"import"}
    assert broken(live, roots, "c.py", b"class C(Other): pass\n") == {"heirs"}
    assert broken(live, roots, "run.sh", b"sh a.py\n") == {"script"}


@file_facts.file_fact
def _uses_f(path: str, data: bytes) -> bool:
    del path
    return b"f()" in data.replace(b"def f()", b"")


def test_where_an_import_leads_is_asked_of_the_new_list_of_files() -> None:
    live = project()
    roots = {"b": live.traced(lambda: live.resolve("b", "a.py"))[1], "none": live.traced(lambda: live.resolve("x", "a.py"))[1]}
    trace = live.notes.trace(live, roots)
    assert trace.broken_by(Change({"x.py": b""}, Project.of({**FILES, "x.py": b""}))) == {"none"}


def test_what_rests_on_the_order_of_questions_is_never_kept() -> None:
    live = project()
    roots = {"one": live.traced(live.order_counts)[1], "two": live.traced(lambda: live.read("a.py"))[1]}
    assert broken(live, roots, "run.sh", b"") == {"one"}


def test_every_fact_is_found_by_its_name_and_can_be_stored() -> None:
    built_in()
    assert len(file_facts._FACTS) > 10
    for name, fact in file_facts._FACTS.items():
        assert file_facts.fact_named(name) is fact
        more = ["rank"] * (len(inspect.signature(fact).parameters) - 2)
        for text in (b"", b"import torch\nrank = int(os.environ['RANK'])\n", random.Random(1).randbytes(400)):
            value = fact("a.py", text, *more)
            assert marshal.loads(marshal.dumps(value)) == value
