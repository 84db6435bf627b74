"""DDP203 keeps a whole message to rank 0, or none of it; what stays is said with the reason."""

from __future__ import annotations

import ast

import pytest

from codemods.analysis.output.message_parts import says_the_same
from codemods.api.findings import Applicability
from codemods.ranks.unguarded_print import UnguardedPrint
from ddpfix.testing import findings_of
from tests.places import module_of, node

HEAD = "import time\nimport torch.distributed as dist\n\n\ndef main(rank, args, loader):\n    dist.init_process_group('nccl')\n"
WAIT = "dist.barrier()"
OWN = "print('mine is', rank)"


def script(*lines: str) -> str:
    return HEAD + "".join(f"    {line}\n" for line in lines)


def texts(*lines: str) -> set[str]:
    """The lines at which a fix begins that is safe."""
    source = script(*lines)
    safe = [f for f in findings_of(UnguardedPrint, source) if f.applicability is Applicability.SAFE]
    return {source.splitlines()[f.span.line - 1].strip() for f in safe}


HEADER = "print('The classes:')"


@pytest.mark.parametrize(
    "body",
    [
        ("for name in args.names:", "    args.number += 1", "    while args.more:", "        print(args.take())"),
        ("for name in args.names:", "    try:", "        print(name, args.take())", "    finally:", "        args.look(name)"),
        ("first = args.first", "for name in args.names:", "    print(args.take(name))"),
    ],
)
def test_a_header_stays_with_its_body(body: tuple[str, ...]) -> None:
    lines = (WAIT, HEADER, *body, WAIT, "print('end')")
    assert texts(*lines) <= {"print('end')"}
    assert HEADER not in texts(WAIT, "if args.verbose:", f"    {HEADER}", *body, WAIT)


@pytest.mark.parametrize(
    "below",
    [
        ("for batch in loader:", "    args.step(batch).backward()", "    print(args.take(batch))"),  # the work itself
        ("for batch in loader:", "    args.scale(args.step(batch)).backward()", "    print(args.take(batch))"),
        (WAIT, "for name in args.names:", "    print(args.take(name))"),
        ("if args.odd:", "    print('warning: odd')"),  # a message of its own
    ],
)
def test_what_is_no_body_binds_no_header(below: tuple[str, ...]) -> None:
    assert HEADER in texts(WAIT, HEADER, *below, WAIT)


def test_a_long_loop_is_no_body() -> None:
    below = ("for name in args.names:", *["    args.work(name)"] * 30, "    print(args.take(name))")
    assert HEADER in texts(WAIT, HEADER, *below, WAIT)


@pytest.mark.parametrize("header", ["print(f'on rank {rank}:')", "print('debug of the weights')", "print(args.take(), 'holds')"])
def test_a_body_stays_with_its_header(header: str) -> None:
    loop = ("for name in args.names:", "    args.number += 1", "    print(name)")
    assert "print(name)" not in texts(WAIT, header, *loop, WAIT)
    assert "print(name)" in texts(WAIT, header, WAIT, *loop)


TITLE = "print('Time of the model')"


@pytest.mark.parametrize(
    "result",
    [
        ("took = args.measure(loader)", "print('took', args.scaled(took))"),
        ("first, took = args.measure(loader)", "print(args.scaled(took), args.unit)"),
        ("took = args.measure(loader)", "print(args.scaled(took), took)"),
    ],
)
def test_a_title_stays_with_the_result_below_it(result: tuple[str, ...]) -> None:
    assert TITLE not in texts(WAIT, TITLE, *result, WAIT, "print('end')")
    assert TITLE not in texts(WAIT, "if args.timed:", f"    {TITLE}", *(f"    {line}" for line in result), WAIT, "print('end')")


@pytest.mark.parametrize("title", ["print('Time:', args.take())", "print(args.scaled(1), 'is the scale')"])
def test_a_result_stays_with_the_title_above_it(title: str) -> None:
    result = ("took = args.measure(loader)", "print(f'took {took}')")
    assert texts(WAIT, title, *result, WAIT, "print('end')") == {"print('end')"}


@pytest.mark.parametrize("work", ["args.measure(loader) + time.time()", "args.measure(time.perf_counter()) - time.time()"])
def test_a_title_is_as_unsafe_as_its_result(work: str) -> None:
    source = script(WAIT, TITLE, f"took = {work}", "print(f'took {took}')", WAIT)
    found = findings_of(UnguardedPrint, source)
    assert {f.applicability for f in found} == {Applicability.UNSAFE}
    assert {e.span.line for f in found for e in f.edits} == {8, 10}


@pytest.mark.parametrize(
    "below",
    [
        (WAIT, "took = args.measure(loader)", "print(args.scaled(took))"),  # something else was done first
        ("took = args.begun", "print(args.scaled(took))"),  # no work
        ("took = args.measure(loader)", "print(args.scaled(1))"),
        ("took = args.measure(loader)", WAIT, "print(args.scaled(took))"),
    ],
)
def test_what_is_no_result_of_a_title(below: tuple[str, ...]) -> None:
    assert TITLE in texts(WAIT, TITLE, *below, WAIT)


@pytest.mark.parametrize("work", ["args.measure(args.names)", "args.measure(len(args.names)), 1"])
def test_a_title_goes_with_its_result(work: str) -> None:
    lines = (WAIT, TITLE, f"took = {work}", "print(f'took {took}')", WAIT)
    assert texts(*lines) == {TITLE, "print(f'took {took}')"}


@pytest.mark.parametrize(
    ("loop", "goes"),
    [
        (("for name in args.names:", "    if rank == 0:", "        print(name)"), True),
        (("for name in args.names:", "    if args.rank == 0:", "        print(name)", "    args.look(name)"), True),
        (("for name in args.names:", "    if rank == 1:", "        print(name)"), True),
        (("for name in args.names[rank::2]:", "    print(name)"), False),
        (("for name in args.names:", "    if rank == 0:", "        print(name)", "    print(args.take(rank))"), False),
    ],
)
def test_a_loop_that_one_rank_prints_in_holds_no_line_beside_it(loop: tuple[str, ...], goes: bool) -> None:
    begins, ends = "print('The work begins')", "print('That was all')"
    assert texts(WAIT, begins, "found = {}", *loop, ends, WAIT) == ({begins, ends} if goes else set())


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("print('Saving the graphs')", "print(f'Saved on {rank}.')"),
        ("print(f'=> Loading {args.path}')", "print('Model loaded:', args.take())"),
        ("print('Stopping ...')", "print('stopped', rank)"),
    ],
)
def test_the_two_ends_of_a_work(begin: str, end: str) -> None:
    assert begin not in texts(WAIT, begin, WAIT, WAIT, WAIT, end, WAIT)
    assert begin in texts(WAIT, begin, WAIT, WAIT, WAIT, end.lower().replace("loaded", "there").replace("saved", "off")
                          .replace("stopped", "off"), WAIT)  # fmt: skip


def test_lines_of_one_text() -> None:
    own = ("for part in args.parts[rank::2]:", "    if part.bad:", "        print('Early end')")
    assert "print('Early end')" not in texts(*own, WAIT, "if args.stop:", "    print('Early end')", WAIT)
    assert "print('End')" in texts(*own, WAIT, "if args.stop:", "    print('End')", WAIT)


def test_lines_of_one_text_in_two_arms_are_two_runs() -> None:
    module = module_of("if many:\n    print('a')\n    print('a')\nelse:\n    print('a')\nprint('a')\n")
    first, second, other, last = (node(module, "print('a')", ast.Expr, nth=n) for n in range(4))
    assert isinstance(first, ast.stmt) and isinstance(other, ast.stmt)
    assert [says_the_same(module, first, s) for s in (second, other, last) if isinstance(s, ast.stmt)] == [True, False, True]
    assert not says_the_same(module, other, first)


def test_one_that_belongs_to_an_unsafe_one_is_as_unsafe() -> None:
    start = "start = time.time()"
    lines = (start, "print('Saving the graphs')", WAIT, WAIT, WAIT, "print('Saved', time.time() - start)", WAIT)
    found = findings_of(UnguardedPrint, script(*lines))
    assert found and all(f.applicability is Applicability.UNSAFE for f in found)


def test_what_remains_is_said() -> None:
    lines = (WAIT, "print('begins')", WAIT, WAIT, WAIT, OWN, WAIT, WAIT, "print('worker lost')", WAIT, "try:", "    args.go()",
             "except OSError:", "    print('gone')")  # fmt: skip
    source = script(*lines)
    (found,) = findings_of(UnguardedPrint, source)
    rows = source.splitlines()
    assert [(rows[e.line - 1].strip(), e.text) for e in found.remaining] == [
        (OWN, "it names the rank"),
        ("print('worker lost')", "it speaks of something that went wrong"),
    ]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("print('stopping training now')", "it says why this rank stops"),
        ("print('done on this process')", "it speaks of each process for itself"),
        ("print('memory', args.device)", "it speaks of the rank's own device, host or process"),
        ("print('no such file: invalid')", "it speaks of something that went wrong"),
    ],
)
def test_each_line_has_its_own_reason(line: str, why: str) -> None:
    (found,) = findings_of(UnguardedPrint, script(WAIT, "print('begins')", WAIT, WAIT, WAIT, line, WAIT))
    assert [e.text for e in found.remaining] == [why]


@pytest.mark.parametrize(
    ("ends", "why"),
    [
        ("assert args.ready", "it says why the run ends there"),
        ("assert loader, 'there is nothing to train on'", "it says why the run ends there"),
        ("raise ValueError(args)", "it says why the run ends there"),
        ("assert args.ready, 'nothing is ready'", ""),
    ],
)
def test_an_assert_with_a_text_says_why_by_itself(ends: str, why: str) -> None:
    source = script(WAIT, "print('begins')", WAIT, WAIT, WAIT, "print('we have', loader)", ends)
    found = findings_of(UnguardedPrint, source)
    assert {e.text for f in found for e in f.remaining} == ({why} if why else set())
    assert len(found) == (1 if why else 2)


def test_nothing_remains() -> None:
    (found,) = findings_of(UnguardedPrint, script(WAIT, "print('begins')", WAIT))
    assert found.remaining == ()


CALLED = """
class Parts:
    def prepare_data(self):
        print('parts', len(self.names))
        if self.rank == 0:
            print('the first')


def helper():
    try:
        print('help')
    except OSError:
        print('gone')


def other():
    print('nobody calls it there')
"""


@pytest.mark.parametrize(
    ("call", "left"),
    [
        ("Parts().prepare_data()", "print('parts', len(self.names))"),
        ("helper()", "print('help')"),
        ("rank == 0 and helper()", "print('help')"),
    ],
)
def test_what_a_changed_function_calls_remains_too(call: str, left: str) -> None:
    source = script(WAIT, call, "print('begins')", WAIT) + CALLED
    found = [f for f in findings_of(UnguardedPrint, source) if f.symbol == "main"]
    rows = source.splitlines()
    told = {(rows[e.line - 1].strip(), e.text.partition(", ")[2]) for f in found for e in f.remaining}
    assert told <= {(left, "which main calls")}
    assert any(f.remaining for f in found) or call.startswith("rank ==")


def test_a_call_of_one_rank_leaves_nothing() -> None:
    source = script(WAIT, "if rank == 0:", "    Parts().prepare_data()", "print('begins')", WAIT) + CALLED
    (found,) = [f for f in findings_of(UnguardedPrint, source) if f.symbol == "main"]
    assert found.remaining == ()


def test_lines_that_are_changed_as_well_do_not_remain() -> None:
    source = script(WAIT, "helper()", "print('begins')", WAIT) + CALLED.replace("    try:", "    dist.barrier()\n    try:")
    found = findings_of(UnguardedPrint, source)
    changed = {line for f in found for e in f.edits for line in range(e.span.line, e.span.end_line + 1)}
    assert not changed & {e.line for f in found for e in f.remaining}
