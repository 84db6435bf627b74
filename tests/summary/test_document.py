"""What the reader of DDPFIX_SUMMARY.md sees."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from codemods.api.findings import SEVERITIES
from codemods.engine.fix_source import Accept, safe, with_unsafe
from ddpfix import catalog
from ddpfix.results import Failure
from ddpfix.summary import LIMIT, render
from ddpfix.summary.markdown import prose
from ddpfix.summary.new_lines import in_new_text
from tests.summary.made import (
    CLASSIFIER,
    EXAMPLES,
    MODEL,
    STEP,
    block,
    check_markdown,
    context,
    fenced,
    fold,
    found_launches,
    in_memory,
    on_disk,
    section,
    unfolded,
)

HEAD = MODEL[1:].partition("        x, y")[0]
MANY_TOLD = HEAD + "".join(
    f"        if batch.has_{n}:\n            self.log('val/loss_{n}', self.loss_{n}(batch))\n" for n in range(200)
)


def model(steps: int) -> str:
    lines = "".join(f"        self.log('val/loss_{n}', F.mse_loss(self(x), y))\n" for n in range(steps))
    return f"{HEAD}        x, y = batch\n{lines}"


# --- the first screen ---


def test_the_first_screen_says_what_breaks_and_how_many_fixes_there_are() -> None:
    text = render(on_disk(CLASSIFIER), context())
    screen = text[: text.index("\n## ")]
    assert len(screen.splitlines()) <= 15
    fixed = on_disk(CLASSIFIER).fixed
    assert screen.startswith(f"# ddpfix: {len(fixed)} fixes in ")
    assert "an epoch-level metric is logged from each rank's own share of the data (DDP101): 2 places" in screen
    assert "`ddpfix/fixes` on top of `0123456789ab`" in screen
    assert "No training was run" in screen


def test_the_first_screen_counts_what_was_left_and_what_could_not_be_read() -> None:
    fixed = in_memory({"model.py": MODEL, "told.py": MANY_TOLD}, failed=[Failure("old.py", "line 1: it looks like Python 2")])
    text = render(fixed, context())
    screen = text[: text.index("\n## ")]
    counted = "200 places with lost or wrong data (200 without a fix)"
    assert f"Found too, and not changed here: {counted}: see [Left alone](#left-alone)." in screen
    assert "1 path was not read, so nothing is known of it: see [Not read](#not-read)." in screen
    assert "### Not read" in text
    assert "- `old.py`: line 1: it looks like Python 2" in text


def test_nothing_changed_is_said_in_a_few_lines() -> None:
    text = render(in_memory({"told.py": MANY_TOLD}), context())
    assert text.startswith("# ddpfix: nothing was changed\n")
    assert "How to test" not in text
    assert "still does" not in text
    check_markdown(text)


def test_thirty_fixes_in_six_files_are_one_page_before_anything_is_opened() -> None:
    whole = on_disk(CLASSIFIER)
    assert len(whole.after) == 6
    (path, *_) = sorted(whole.after)
    (first, *_) = [f for f in whole.fixed if f.path == path]
    more = tuple(replace(first, id=f"{first.id}{n}") for n in range(30 - len(whole.fixed)))
    text = render(replace(whole, fixed=(*whole.fixed, *more)), context(launches=found_launches(CLASSIFIER, whole.after)))
    assert text.startswith("# ddpfix: 30 fixes in 6 files\n")
    assert len(text.splitlines()) <= 120  # with what is folded up
    for shown in ("- **Crash**: ", "devices", "Undo", "No training was run."):
        assert shown in unfolded(text)
    check_markdown(text)


def test_the_worst_comes_first() -> None:
    text = render(on_disk(CLASSIFIER), context())
    rows = re.findall(r"^- \*\*(.*?)\*\*: ", text, re.M)
    assert rows == [kind for kind in SEVERITIES.values() if kind in rows]
    codes = re.findall(r"^### .*\((DDP\d+)\): ", text, re.M)
    fixed = on_disk(CLASSIFIER).fixed
    worst = {code: min(f.severity_rank for f in fixed if f.code == code) for code in codes}
    assert codes == sorted(codes, key=lambda code: (worst[code], code))
    assert "- **Crash**: " in text and codes[0] == "DDP204"


def test_every_codemod_says_what_its_error_does_to_a_run() -> None:
    assert {c.code for c in catalog.all_codemods() if c.severity not in SEVERITIES} == set()


def test_wrong_numbers_come_before_what_only_may_end_a_run() -> None:
    files = {
        "one.py": """
            import torch
            from torch.nn.parallel import DistributedDataParallel

            def resume(net, optimizer, path, gpu):
                model = DistributedDataParallel(net.cuda(gpu), device_ids=[gpu])
                state = torch.load(path)
                model.load_state_dict(state["model"])
                optimizer.load_state_dict(state["optimizer"])
                return model

            def save(model, optimizer, path):
                torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
            """,
        "two.py": MODEL,
    }
    fixed = in_memory(files, unsafe=True, codemods=[catalog.lookup(code) for code in ("DDP503", "DDP101")])
    rows = re.findall(r"^- \*\*(.*?)\*\*: (.*)", render(fixed, context()), re.M)
    assert [title for title, _ in rows] == ["Lost or wrong data", "Crash or hang under conditions"]
    assert [said.partition("(")[2] for _, said in rows] == ["DDP101): 1 place", "DDP503): 1 place"]


def test_noise_alone_breaks_nothing() -> None:
    fixed = on_disk(CLASSIFIER)
    bars = tuple(f for f in fixed.fixed if f.severity == "noise")
    assert "What this tidies up:" in render(replace(fixed, fixed=bars, left=()), context())
    assert "What this repairs, the worst first:" in render(fixed, context())


def test_one_fix_is_a_short_page() -> None:
    assert len(render(in_memory({"model.py": MODEL}), context()).splitlines()) <= 50


def test_what_the_commits_show_is_not_shown_again() -> None:
    assert "```diff" not in render(on_disk(CLASSIFIER), context())
    assert "```diff" in render(on_disk(CLASSIFIER), context(branch=None, base=None))


def test_places_are_lines_of_the_new_text() -> None:
    whole = on_disk(CLASSIFIER)
    path = "classifier/resnet.py"
    new = whole.after[path].decode().splitlines()
    moved = [f for f in in_new_text(whole).fixed if f.path == path and f.code == "DDP101"]
    assert len(moved) == 2
    for finding in moved:
        assert "sync_dist=True" in "".join(new[finding.span.line - 1 : finding.span.end_line])
    assert [f.span.line for f in moved] != [f.span.line for f in whole.fixed if f.path == path and f.code == "DDP101"]


@pytest.mark.parametrize("example", sorted(p.name for p in EXAMPLES.iterdir() if p.is_dir()))
def test_what_is_left_has_the_levels_that_a_check_gives_it(example: str) -> None:
    whole = on_disk(EXAMPLES / example / "before")
    first = {f.id: (f.applicability, f.reason) for f in whole.first}
    left = {f.id: (f.applicability, f.reason) for f in whole.left if f.id in first}
    assert left.items() <= first.items()


@pytest.mark.parametrize("accept", [safe, with_unsafe])
def test_what_a_rule_says_stands_once_in_its_section_and_once_among_what_is_left(accept: Accept) -> None:
    whole = on_disk(CLASSIFIER, accept)
    text = render(whole, context())
    assert block(text, "DDP101").count("is logged at epoch level without being reduced") == 1
    hooks = block(text, "DDP201")
    assert hooks.count(", which writes by `") == 2  # in a hook, and in what it calls
    assert hooks.count(", which prints by `print(…)`: that appears once for each rank") == 1
    for finding in in_new_text(whole).fixed:
        assert finding.path in block(text, finding.code) and str(finding.span.line) in block(text, finding.code)


def test_which_line_numbers_are_meant_is_said_once() -> None:
    text = render(on_disk(CLASSIFIER), context())
    assert text.count("Line numbers are those") == 1


# --- a codemod ---


def test_each_codemod_tells_what_happens_why_it_may_and_what_the_test_shows() -> None:
    part = block(render(on_disk(CLASSIFIER), context()), "DDP101")
    assert part.startswith("### Reduce epoch metrics over the ranks (DDP101): 2 places\n")
    assert "- `classifier/resnet.py:52`: `'val/loss'` is logged at epoch level" in part
    for begins in ("\n- Safe here: every rank runs `validation_step`", " Read in the code: ", "\n- Test: Each logged value is"):
        assert begins in part
    assert "Since Lightning 1.7" not in part  # what is so in general


def test_file_by_file_with_lines_before_and_after() -> None:
    fixed = in_memory({"model.py": MODEL})
    part = block(render(fixed, context(branch=None, base=None)), "DDP101")
    assert "- `model.py:9`: " in part
    (diff,) = fenced(part, "diff")
    assert diff.splitlines() == [
        "@@ -7,4 +7,4 @@",
        "         x, y = batch",
        "         loss = F.cross_entropy(self(x), y)",
        '-        self.log("val/loss", loss)',
        '+        self.log("val/loss", loss, sync_dist=True)',
        " ",
    ]


def test_the_excerpts_of_a_codemod_hold_its_own_changes() -> None:
    text = render(on_disk(CLASSIFIER), context(branch=None, base=None))
    makedirs = "".join(fenced(block(text, "DDP204"), "diff"))
    assert "+    os.makedirs(checkpoint_dir, exist_ok=True)" in makedirs
    assert "self.log" not in makedirs


def test_findings_that_differ_in_names_only_share_a_line() -> None:
    text = render(in_memory({"model.py": model(30)}), context())
    (line,) = [row for row in text.splitlines() if row.startswith("- `model.py:8`: ")]
    assert line.endswith(" The same with other names: `model.py` 9-37.")
    assert text.count("is logged at epoch level without being reduced") == 1


def test_facts_are_told_once_with_all_their_places() -> None:
    part = block(render(on_disk(CLASSIFIER), context()), "DDP101")
    (line,) = [row for row in part.splitlines() if " Read in the code: " in row]
    assert "(`classifier/resnet.py` 52, 70)" in line


def test_that_a_file_is_one_of_several_processes_proves_nothing() -> None:
    text = render(on_disk(CLASSIFIER), context())
    assert any(e.kind == "several" for f in on_disk(CLASSIFIER).fixed for e in f.evidence)
    assert "the file imports" not in text


# --- levels ---


def test_an_unsafe_fix_names_what_it_assumes() -> None:
    fixed = in_memory({"model.py": STEP}, unsafe=True)
    text = render(fixed, context())
    assert "0 of level safe, 1 of level unsafe: " in text
    assert f"- Not checked, at `model.py` 9: {prose(fixed.fixed[0].reason)}" in block(text, "DDP101")
    assert "Safe where" not in block(text, "DDP101")
    check_markdown(text)


def test_an_unsafe_fix_that_was_not_made_is_offered() -> None:
    fixed = in_memory({"model.py": MODEL + STEP})
    text = render(fixed, context())
    assert "1 that only `--unsafe-fixes` would fix" in text
    part = section(text, "## Left alone")
    assert f"Unsafe: {prose(fixed.left[0].reason)}" in part
    assert "Not checked, at" not in text


def test_two_hundred_told_findings_stay_readable() -> None:
    text = render(in_memory({"model.py": MODEL, "told.py": MANY_TOLD}), context())
    part = section(text, "## Left alone")
    assert len(part.splitlines()) < 24
    assert "- `told.py` 8, 10, 12" in part
    assert "a rank that skips it would leave the others waiting" in part
    check_markdown(text)


def test_told_findings_with_different_reasons_stay_apart() -> None:
    own = MODEL.replace("import torch.nn", "import torch\nimport torch.nn")
    own = own.replace("F.cross_entropy(self(x), y)", "torch.tensor(float(len(x)))")
    fixed = in_memory({"model.py": MODEL, "own.py": own, "told.py": MANY_TOLD})
    (alone,) = [f for f in fixed.left if f.path == "own.py"]
    text = render(fixed, context())
    part = section(text, "## Left alone")
    assert "- `own.py` 10 DDP101: " in part
    assert f"No fix: {prose(alone.reason)}" in part


def test_a_fix_that_could_not_be_made_is_told() -> None:
    fixed = in_memory({"model.py": MODEL})
    made = fixed.fixed[0]
    withdrawn = replace(fixed, fixed=(), after={}, before={}, left=(made,), withdrawn=((made, "the new text would not compile"),))
    text = render(withdrawn, context())
    assert "1 fix that could not be made" in text
    assert "- `model.py:9` DDP101: the new text would not compile" in text
    assert "without a fix" not in text


# --- what comes next ---


def test_how_to_test_uses_the_repository_s_own_command_with_two_processes() -> None:
    folder = EXAMPLES / "raw-ddp-vision" / "before"
    text = render(in_memory({"model.py": MODEL}), context(launches=found_launches(folder, on_disk(folder).after)))
    part = section(text, "## How to test")
    command = "torchrun --standalone --nproc_per_node=2 train.py --config configs/tiny.yaml --max-steps 10"
    assert f"# from launch.sh:7, with --max-steps 10\n{command}" in fenced(part, "sh")[0]


def test_without_a_command_it_is_said_what_is_to_be_called() -> None:
    part = section(render(in_memory({"model.py": MODEL}), context()), "## How to test")
    assert "No program in the repository was found that runs the changed lines of `model.py`." in part
    assert "```" not in part


def test_a_message_is_told_where_something_in_the_file_reads_or_waits() -> None:
    save = "import torch\nimport torch.distributed as dist\n\n\ndef train(net):\n    dist.init_process_group('gloo')\n"
    save += "    torch.save(net.state_dict(), 'net.pt')\n"
    rule = [catalog.lookup("DDP501")]
    plain = block(render(in_memory({"a.py": save}, unsafe=True, codemods=rule), context()), "DDP501")
    assert "PytorchStreamReader" not in plain
    again = save + "    net.load_state_dict(torch.load('net.pt'))\n"
    assert "PytorchStreamReader failed" in block(
        render(in_memory({"a.py": again}, unsafe=True, codemods=rule), context()), "DDP501"
    )


def test_the_message_to_expect_is_given_for_each_codemod() -> None:
    text = render(on_disk(CLASSIFIER), context())
    assert "`Watchdog caught collective operation timeout` after the time-out" in block(text, "DDP101")
    assert "If it is wrong: `FileExistsError`." in block(text, "DDP204")
    assert "If it is wrong" not in block(text, "DDP103")


def test_how_to_take_back_one_codemod_and_all() -> None:
    part = fold(render(on_disk(CLASSIFIER), context()), "Undo")
    (commands,) = fenced(part, "sh")
    assert "\ngit switch main && ddpfix apply . --ignore DDP204 --branch ddpfix/fixes-without-ddp204\n" in commands
    assert "\nddpfix undo\n" in commands
    assert "# ddpfix: ignore[DDP204] reason" in part


def test_on_a_detached_head_the_commit_is_switched_to() -> None:
    part = fold(render(on_disk(CLASSIFIER), context(home=None)), "Undo")
    assert "\ngit switch --detach 0123456789ab && " in fenced(part, "sh")[0]


def test_names_of_branches_are_quoted_for_the_shell() -> None:
    part = fold(render(on_disk(CLASSIFIER), context(home="it's", branch="a;b")), "Undo")
    assert fenced(part, "sh")[0].endswith("\ngit switch 'it'\"'\"'s' && git merge 'a;b'~1\n")


def test_without_a_branch_only_undo_is_told() -> None:
    text = render(in_memory({"model.py": MODEL}), context(branch=None, base=None))
    assert "`ddpfix undo`" in fold(text, "Undo")
    assert "git merge" not in text
    assert "ommitted" not in text


def test_without_a_summary_commit_there_is_nothing_to_drop() -> None:
    text = render(in_memory({"model.py": MODEL}), context(summary_commit=False))
    assert "DDPFIX_SUMMARY.md" not in text
    assert "~1" not in text


def test_what_was_not_run_and_how_it_was_made() -> None:
    notes = ("left alone, submodules: vendor",)
    given = context(ran=("`ruff format` on the changed files",), notes=notes, identity_note="no user.name")
    text = render(in_memory({"model.py": MODEL}), given)
    made = text[text.index("<summary>How this was made") :]
    assert "ddpfix imported, trained, evaluated and tested nothing of the project" in made
    assert "beyond what is named below" in made
    assert "- Run: `ruff format` on the changed files" in made
    assert "no test, git hook, linter or formatter" in render(in_memory({"model.py": MODEL}), context())
    for row in ("`ddpfix apply .`", "ddpfix `0.1.0`", "Python `3.11.9`", "- left alone, submodules: vendor", "- no user.name"):
        assert row in made


# --- form ---


@pytest.mark.parametrize("example", sorted(p.name for p in EXAMPLES.iterdir() if p.is_dir()))
@pytest.mark.parametrize("accept", [safe, with_unsafe])
def test_every_example_is_well_formed_short_enough_and_free_of_this_machine(example: str, accept: Accept) -> None:
    folder = EXAMPLES / example / "before"
    fixed = on_disk(folder, accept)
    text = render(fixed, context(launches=found_launches(folder, fixed.after)))
    check_markdown(text)
    assert len(text) <= LIMIT
    assert str(folder.parent) not in text
    assert not [c for c in re.sub(r"^(```+)\w*\n.*?^\1$", "", text, flags=re.M | re.S) if ord(c) > 0x1F000], "a pictogram"


def test_the_same_input_gives_the_same_text_wherever_it_lies() -> None:
    files = {"model.py": model(5), "told.py": MANY_TOLD}
    texts = {render(in_memory(files, root=root), context()) for root in ("/a", "/somewhere/else", "/a")}
    assert len(texts) == 1


def test_elapsed_time_does_not_show() -> None:
    fixed = in_memory({"model.py": MODEL})
    slow = replace(fixed, report=replace(fixed.report, elapsed=77.25, root=Path("/x")))
    assert render(slow, context()) == render(fixed, context())


# --- length ---


def test_a_long_summary_is_cut_in_its_excerpts_and_names_every_file() -> None:
    fixed = in_memory({f"pkg/model_{n}.py": model(12) for n in range(40)})
    text = render(fixed, context(branch=None, base=None))
    assert 20_000 < len(text) <= LIMIT
    check_markdown(text)
    for n in range(40):
        assert f"`pkg/model_{n}.py`" in text
    assert "Excerpts were left out to keep this under its length" in text
    for heading in ("## How to test", "<summary>Undo</summary>", "<summary>How this was made, and what was not run</summary>"):
        assert f"\n{heading}\n" in text


def test_a_thousand_files_are_still_counted() -> None:
    fixed = in_memory({f"pkg/a_rather_long_name_of_a_folder/model_{n}.py": model(1) for n in range(1000)})
    text = render(fixed, context())
    assert len(text) <= LIMIT
    assert text.startswith("# ddpfix: 1000 fixes in 1000 files\n")
    assert "more files" in block(text, "DDP101")
    check_markdown(text)


@pytest.mark.parametrize("limit", [1500, 3000, 6000, 9000, 12_000])
def test_any_limit_is_kept_and_leaves_whole_markdown(limit: int) -> None:
    fixed = in_memory({**{f"model_{n}.py": model(3) for n in range(5)}, "told.py": MANY_TOLD})
    text = render(fixed, context(), limit=limit)
    assert len(text) <= limit
    check_markdown(text)
