"""What GitHub shows: ten annotations of each level, the worst first; the job's page within its limit; its own hash of a line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codemods.api.findings import Applicability, Finding, Fix, SetKeyword, Span
from ddpfix import catalog
from ddpfix.outputs import github, sarif, step_summary
from ddpfix.outputs.answer import Answer, Checked
from ddpfix.outputs.line_hash import line_hashes
from ddpfix.results import Report
from tests.gitrepos import make
from tests.programs import MODULE, ddpfix

AT = Span(3, 4, 3, 9)


def finding(number: int, code: str = "DDP203", message: str = "m", *, told: bool = False, span: Span = AT) -> Finding:
    fix = None if told else Fix(Applicability.SAFE, (SetKeyword("a.py", span, "k", "1"),))
    severity = catalog.lookup(code).severity
    return Finding(code, "a-name", "a.py", span, "f", message, fix=fix, id=f"{number:012x}", severity=severity)


def answer(*findings: Finding, source: bytes = b"1\n2\n    print(1)\n    more\n") -> Answer:
    report = Report(Path("/r"), findings, 1, 1, ())
    return Answer((Checked(report, lambda path: path, {"a.py": source}),), Path("/r"))


def test_ten_of_each_level_are_annotated_the_worst_first_and_the_others_listed() -> None:
    prints = [finding(i, message=f"print {i}") for i in range(12)]
    waits = [finding(100 + i, "DDP301", f"hang {i}") for i in range(11)]
    told = [finding(200 + i, message=f"told {i}", told=True) for i in range(3)]
    rows = github.document(answer(*told, *prints, *waits)).splitlines()
    levels = [row.split(" ")[0] for row in rows]
    assert levels[:23] == ["::error"] * 10 + ["::warning"] * 10 + ["::notice"] * 3
    assert rows[23] == "::group::3 more findings than GitHub shows as annotations; all are in the summary of this job"
    assert rows[24:27] == [
        "- a.py:3:5: DDP301 [fix] hang 10", "- a.py:3:5: DDP203 [fix] print 10", "- a.py:3:5: DDP203 [fix] print 11",
    ]  # fmt: skip
    assert rows[27] == "::endgroup::"


def test_text_of_the_repository_is_no_command_and_no_property() -> None:
    (row,) = github.document(answer(finding(1, message="50 %\r\n::error::x, y: z"))).splitlines()
    assert row.endswith("::50 %25%0D%0A::error::x, y: z")
    many = [finding(i, message="##[add-mask]x\n::warning::x") for i in range(11)]
    folded = github.document(answer(*many)).splitlines()[11]
    assert folded == "- a.py:3:5: DDP203 [fix] ## [add-mask]x ::warning::x"


def test_a_block_is_annotated_at_its_first_line() -> None:
    (row,) = github.document(answer(finding(1, span=Span(3, 4, 4, 8)))).splitlines()
    assert "line=3,endLine=3,col=5,endColumn=13," in row


def test_sarif_keeps_the_worst_five_thousand_and_says_so() -> None:
    many = [finding(i, told=True) for i in range(5000)] + [finding(9000 + i, "DDP301") for i in range(7)]
    run = json.loads(sarif.document(answer(*many)))["runs"][0]
    assert len(run["results"]) == 5000
    assert [r["ruleId"] for r in run["results"][:7]] == ["DDP301"] * 7
    (said,) = run["invocations"][0]["toolExecutionNotifications"]
    assert said["message"]["text"] == "7 findings are left out: only the worst 5000 are here."


def test_the_page_of_a_job_is_a_table_that_is_cut_at_a_row() -> None:
    many = [finding(i, message=f"a | b <i> `c` {'x' * 300}\n# no heading") for i in range(5000)]
    whole = step_summary.markdown(answer(*many[:2]))
    assert whole.splitlines()[:6] == [
        "## ddpfix", "", "2 findings in 1 Python file: 2 fixable, 0 with --unsafe-fixes, 0 reported.", "",
        "| level | place | finding | fix |", "| --- | --- | --- | --- |",
    ]  # fmt: skip
    assert whole.splitlines()[6].startswith("| warning | a.py:3 | DDP203 a \\| b &lt;i&gt; \\`c\\` x")
    cut = step_summary.markdown(answer(*many))
    assert step_summary.LIMIT - 1000 < len(cut.encode()) <= step_summary.LIMIT
    rows = sum(line.startswith("| warning") for line in cut.splitlines())
    assert cut.splitlines()[-1] == f"{5000 - rows} more findings did not fit here; the log of the step has them."
    assert step_summary.markdown(answer(*many), room=100) == ""


def test_a_job_of_actions_gets_its_page_behind_what_is_there(tmp_path: Path) -> None:
    repo, page = make(tmp_path, {"model.py": MODULE}), tmp_path / "page.md"
    page.write_text("# before\n")
    env = {"GITHUB_STEP_SUMMARY": str(page), "DDPFIX_CACHE_DIR": str(tmp_path / "cache")}
    for _ in range(2):  # the second time nothing has changed, and the page is wanted all the same
        assert ddpfix(repo, "check", "--output-format", "github", ".", env=env).returncode == 1
    text = page.read_text()
    assert text.startswith("# before\n## ddpfix\n")
    assert text.count("| error | model.py:15 | DDP101 ") == 2
    page.write_text("")
    ddpfix(repo, "check", ".", env=env)
    assert page.read_text() == ""


# Line -> what fingerprints.ts of github/codeql-action gave for the text of the test below, run with Node
GITHUB = {
    1: "acb96e932b564d18:1", 2: "608e63c96eb67a4b:1", 3: "fc744617013f1aaa:1", 4: "84adfb4d2efe4859:1", 5: "d627cb01bc4c482d:1",
    6: "fe3f20a1774da062:1", 7: "e29997bc913c87ef:1", 37: "c24ed7f9e84be5a:1", 38: "c129715d7a2bc9a3:1",
}  # fmt: skip


@pytest.mark.parametrize("ends", [b"\n", b"\r\n", b"\r"])
def test_a_line_has_the_fingerprint_that_github_works_out(ends: bytes) -> None:
    text = 'import torch\n\n\nclass Ä:\n\tx = "é𝄞"\n    y = 1\n    y = 1\n' + "".join(f"    z{i} = {i}\n" for i in range(30))
    assert line_hashes(text.encode().replace(b"\n", ends), [*GITHUB, 60]) == GITHUB


def test_equal_lines_are_told_apart_by_their_number() -> None:
    lines = line_hashes(b"x = 1\n" * 60, [1, 2, 60])
    assert lines[1].endswith(":1") and lines[2].endswith(":2") and lines[1].split(":")[0] == lines[2].split(":")[0]
