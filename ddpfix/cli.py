"""The command line. Each command reads as a list of steps; only this module prints and ends the program."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from ddpfix import __version__

if TYPE_CHECKING:
    from ddpfix.diagnosis.cause import Diagnosis
    from ddpfix.discovery import Tree
    from ddpfix.results import Report
    from ddpfix.settings import Settings
    from ddpfix.summary import ShownProof

CLEAN, FINDINGS, TROUBLE, INTERRUPTED = 0, 1, 2, 130

app = typer.Typer(
    name="ddpfix",
    help="Repair PyTorch training code that breaks, hangs or lies when it goes from one GPU to several.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Words = list[str] | None
Paths = Annotated[list[Path] | None, typer.Argument(help="Files or folders; the current folder if none is given.")]
Select = Annotated[Words, typer.Option("--select", help="Only these codes (or prefixes), names or topics.")]
Ignore = Annotated[Words, typer.Option("--ignore", help="Leave these codes, names or topics out.")]
Extend = Annotated[Words, typer.Option("--extend-select", help="These codes, names or topics too.")]
Unsafe = Annotated[bool, typer.Option("--unsafe-fixes/--no-unsafe-fixes", help="Fixes that rest on an assumption, too.")]
Exclude = Annotated[Words, typer.Option("--exclude", help="Paths (globs) to leave alone.")]
Logs = Annotated[list[Path] | None, typer.Option("--log", help="What a run of this code printed, as evidence.")]
Seen = Annotated[list[Path] | None, typer.Option("--evidence", help="What `ddpfix probe` wrote, as evidence.")]


class Trouble(Exception):
    """Something the user can mend: what, why, what to do, a line each."""

    def __init__(self, what: str, why: str = "", todo: str = "") -> None:
        super().__init__(": ".join(p for p in (what, why) if p) + (f". {todo}" if todo else ""))


# Reading what was asked


def words(values: Sequence[str] | None) -> tuple[str, ...]:
    """`--select A,B --select C` -> A, B, C."""
    return tuple(w.strip() for value in values or () for w in value.split(",") if w.strip())


def asked(
    paths: Sequence[Path] | None,
    select: Sequence[str] | None,
    ignore: Sequence[str] | None,
    extend: Sequence[str] | None,
    unsafe: bool,
    exclude: Sequence[str] | None,
) -> list[tuple[Tree, Settings]]:
    """The projects the paths lie in, each with its settings; the command line wins."""
    from ddpfix import discovery, settings

    out = []
    given = list(paths or [Path()])
    for path in given:
        if not path.exists():
            raise Trouble(f"{path} does not exist", todo="Give a file or a folder.")
    for root in dict.fromkeys(discovery.find_root(p) for p in given):
        stored = settings.load(root)
        chosen = replace(
            stored,
            select=words(select) or stored.select,
            ignore=(*stored.ignore, *words(ignore)),
            extend_select=(*stored.extend_select, *words(extend)),
            unsafe_fixes=unsafe or stored.unsafe_fixes,
            exclude=(*stored.exclude, *words(exclude)),
        )
        inside = [p for p in given if discovery.find_root(p) == root]
        out += [(tree, chosen) for tree in discovery.discover(inside, chosen.exclude)]
    return out


def read_proof(path: Path) -> ShownProof:
    """What `ddpfix prove` wrote into a file."""
    from ddpfix import summary

    try:
        return summary.read_proof(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        make_one = "Make one with `ddpfix prove --output-format json`."
        raise Trouble(f"{path} cannot be used as a proof", str(error), make_one) from error


def with_evidence(
    projects: Sequence[tuple[Tree, Settings]], logs: Sequence[Path] | None, files: Sequence[Path] | None
) -> list[tuple[Tree, Settings]]:
    """The projects, each with what logs and probes saw of its runs."""
    if not (logs or files):
        return list(projects)
    from ddpfix.diagnosis import command

    return [(replace(tree, observed=command.observed(logs or (), files or (), tree)), settings) for tree, settings in projects]


# Commands


@app.command()
def check(
    paths: Paths = None,
    select: Select = None,
    ignore: Ignore = None,
    extend_select: Extend = None,
    unsafe_fixes: Unsafe = False,
    exclude: Exclude = None,
    output_format: Annotated[str, typer.Option("--output-format", help="text or json.")] = "text",
    with_edits: Annotated[bool, typer.Option("--with-edits", help="Put the line replacements into the JSON.")] = False,
    fail_on: Annotated[str, typer.Option("--fail-on", help="Exit 1 from this level on: display, unsafe, safe.")] = "",
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Work everything out again.")] = False,
) -> None:
    """Say what is wrong. Never writes. Exit 0: nothing to fix; 1: findings; 2: trouble."""
    from ddpfix import answers, cache, engine
    from ddpfix.outputs import json, text
    from ddpfix.outputs.paths import shown_from
    from ddpfix.settings import FAIL_ON

    if output_format not in ("text", "json"):
        raise Trouble(f"no output format is called {output_format!r}", todo="Use text or json.")
    if fail_on and fail_on not in FAIL_ON:
        raise Trouble(f"--fail-on takes {', '.join(FAIL_ON)}, not {fail_on!r}")
    reports = []
    level = fail_on
    projects = asked(paths, select, ignore, extend_select, unsafe_fixes, exclude)
    for tree, settings in projects:
        report = engine.check(tree, settings, use_cache=not no_cache, progress=progress())
        reports.append((report, shown_from(tree.root, Path.cwd())))
        level = fail_on or settings.fail_on
    clear_progress()
    if output_format == "json":
        answer, notes = json.render(reports, Path.cwd(), edits=edits_of(reports) if with_edits else None), ""
    else:
        answer, notes = text.render(reports), text.notes(reports)
    order = {"display": 0, "unsafe": 1, "safe": 2}
    ranks = [f.applicability.rank for report, _ in reports for f in report.findings]
    status = FINDINGS if any(rank >= order[level] for rank in ranks) else CLEAN
    sys.stdout.write(answer)
    sys.stderr.write(notes)
    if not no_cache and all(cache.knows(tree, settings) for tree, settings in projects):
        answers.remember(sys.argv[1:], map(str, paths or [Path()]), [tree for tree, _ in projects], (answer, notes, status))
    raise typer.Exit(status)


@app.command()
def diff(
    paths: Paths = None,
    select: Select = None,
    ignore: Ignore = None,
    extend_select: Extend = None,
    unsafe_fixes: Unsafe = False,
    exclude: Exclude = None,
    stat: Annotated[bool, typer.Option("--stat", help="Only count the lines of each file.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="The reason above each hunk.")] = False,
    log: Logs = None,
    evidence: Seen = None,
    color: Annotated[str, typer.Option("--color", help="auto, always or never.")] = "auto",
) -> None:
    """Show what apply would do, as a patch that `git apply` accepts. Exit 1 if there is one."""
    projects = asked(paths, select, ignore, extend_select, unsafe_fixes, exclude)
    _diff(with_evidence(projects, log, evidence), stat=stat, explain=explain, color=color)


def _diff(projects: Sequence[tuple[Tree, Settings]], *, stat: bool, explain: bool, color: str) -> NoReturn:
    from codemods.fix_source import safe, with_unsafe
    from ddpfix import catalog, engine, patches

    out: list[bytes] = []
    for tree, settings in projects:
        codemods = catalog.selected(settings.selection)
        fixed = engine.fix(tree, settings, codemods, with_unsafe if settings.unsafe_fixes else safe)
        for path, reason in [(f.path, f.error) for f in fixed.report.failed]:
            note(f"{path}: not read: {reason}")
        for finding, reason in fixed.withdrawn:
            note(f"{finding.path}:{finding.span.line}: {finding.code} withdrawn: {reason}")
        prefix = patches.prefix_from(tree.root, Path.cwd())
        out.append(patches.stat(fixed) if stat else patches.explained(fixed, prefix) if explain else patches.plain(fixed, prefix))
    data = b"".join(out)
    show_patch(data, color)
    raise typer.Exit(FINDINGS if data else CLEAN)


@app.command()
def apply(
    paths: Paths = None,
    select: Select = None,
    ignore: Ignore = None,
    extend_select: Extend = None,
    unsafe_fixes: Unsafe = False,
    exclude: Exclude = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="The same as `ddpfix diff`.")] = False,
    branch: Annotated[str, typer.Option("--branch", help="The branch to commit on.", show_default=False)] = "",
    no_switch: Annotated[bool, typer.Option("--no-switch", help="Make the branch, stay where you are.")] = False,
    in_place: Annotated[bool, typer.Option("--in-place", help="Write the files, commit nothing.")] = False,
    include_dirty: Annotated[
        bool, typer.Option("--include-dirty", help="Fix files with uncommitted changes too: written in place, nothing committed.")
    ] = False,
    no_summary_commit: Annotated[bool, typer.Option("--no-summary-commit", help="Leave the summary document out.")] = False,
    run_hooks: Annotated[bool, typer.Option("--run-hooks", help="Run the repository's commit hooks.")] = False,
    format_command: Annotated[
        str, typer.Option("--format-command", help="Run this on the changed files before the commit.", show_default=False)
    ] = "",
    proof: Annotated[Path | None, typer.Option("--proof", help="The JSON of `ddpfix prove`, for the summary.")] = None,
    log: Logs = None,
    evidence: Seen = None,
    color: Annotated[str, typer.Option("--color", help="auto, always or never (with --dry-run).")] = "auto",
) -> None:
    """Fix, and commit the fixes on a branch of their own: a commit for each codemod, then the summary."""
    projects = with_evidence(asked(paths, select, ignore, extend_select, unsafe_fixes, exclude), log, evidence)
    if dry_run:
        _diff(projects, stat=False, explain=False, color=color)
    from ddpfix import catalog, run

    if len(projects) > 1:
        roots = " and ".join(str(tree.root) for tree, _ in projects)
        raise Trouble(f"these paths lie in {roots}", todo="Apply to one repository at a time.")
    tree, settings = projects[0]
    codemods = catalog.selected(settings.selection)
    options = run.Options(
        unsafe=settings.unsafe_fixes,
        branch=branch or settings.branch,
        switch=not no_switch,
        summary=not no_summary_commit,
        in_place=in_place or include_dirty,
        include_dirty=include_dirty,
        run_hooks=run_hooks,
        format_command=format_command or settings.format_command,
        proof=read_proof(proof) if proof else None,
    )
    applied = run.apply(tree, settings, codemods, options, command=command_line(), progress=progress())
    clear_progress()
    for failure in applied.fixed.report.failed:
        note(f"{failure.path}: not read: {failure.error}")
    sys.stdout.write(applied.screen)
    raise typer.Exit(CLEAN)


@app.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
def prove(
    command: Annotated[
        list[str] | None, typer.Argument(help="The command that trains: -- python train.py", metavar="-- COMMAND")
    ] = None,
    nproc: Annotated[int, typer.Option("--nproc", min=1, help="Processes.")] = 2,
    steps: Annotated[int, typer.Option("--steps", min=0, help="Optimizer steps after which every rank stops; 0: never.")] = 20,
    timeout: Annotated[float, typer.Option("--timeout", min=1, help="Seconds for each of the two runs.")] = 600,
    memory: Annotated[float, typer.Option("--memory", min=0, help="GiB for all processes; 0: 4/5 of the machine's.")] = 0,
    link: Annotated[Words, typer.Option("--link", help="A path that git ignores and the program needs.")] = None,
    select: Select = None,
    ignore: Ignore = None,
    extend_select: Extend = None,
    unsafe_fixes: Unsafe = False,
    exclude: Exclude = None,
    output_format: Annotated[str, typer.Option("--output-format", help="text, or json for `apply --proof`.")] = "text",
) -> None:
    """Run a training command on two CPU processes before and after the fixes. Exit 0: right after; 1: wrong; 2: trouble."""
    from ddpfix import catalog
    from ddpfix.prove import proof as proofs
    from ddpfix.prove import report

    if output_format not in ("text", "json"):
        raise Trouble(f"no output format is called {output_format!r}", todo="Use text or json.")
    ((tree, settings),) = asked(None, select, ignore, extend_select, unsafe_fixes, exclude)
    bounds = proofs.Bounds(nproc, steps, timeout, memory)
    codemods = catalog.selected(settings.selection)
    made = proofs.prove(tree, settings, codemods, command or [], cwd=Path.cwd(), bounds=bounds, links=link or ())
    table = report.text(made, width=shutil.get_terminal_size((120, 40)).columns)
    if output_format == "json":
        sys.stdout.write(report.to_json(made))
        note(table.rstrip())
    else:
        sys.stdout.write(table)
    if not made.right:
        note(made.output.rstrip())
    raise typer.Exit(TROUBLE if made.impossible else CLEAN if made.right else FINDINGS)


@app.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
def probe(
    command: Annotated[
        list[str] | None, typer.Argument(help="The command that trains: -- python train.py", metavar="-- COMMAND")
    ] = None,
    steps: Annotated[int, typer.Option("--steps", min=1, help="Steps after which the program is stopped.")] = 50,
    out: Annotated[Path, typer.Option("--out", help="Where the evidence is written.")] = Path("ddpfix-evidence.json"),
) -> None:
    """Run a training command as one process and see which parameters lead to no loss. Exit: 0, or that of a failed program."""
    from ddpfix.diagnosis import probe as probes
    from ddpfix.diagnosis import probe_report

    sys.stdout.flush()
    found = probes.probe(command or [], cwd=Path.cwd(), steps=steps)
    if found.evidence.observed:
        probes.write(found, out)
    for line in probe_report.lines(found, str(out)):
        note(line)
    raise typer.Exit(found.exit_status or (CLEAN if found.evidence.observed else TROUBLE))


@app.command()
def diagnose(
    log: Annotated[Path, typer.Argument(help="What a run printed, of one rank or of all.")],
    repository: Annotated[Path | None, typer.Argument(help="The code that ran: its lines and repairs are named too.")] = None,
    select: Select = None,
    ignore: Ignore = None,
    unsafe_fixes: Unsafe = False,
    apply_: Annotated[bool, typer.Option("--apply", help="Commit the repairs of the cause, as `ddpfix apply` does.")] = False,
    output_format: Annotated[str, typer.Option("--output-format", help="text or json.")] = "text",
) -> None:
    """Name the probable cause of a failed run from its log. Exit 0: named, or nothing failed; 1: unknown; 2: trouble."""
    from ddpfix.diagnosis import command

    if output_format not in ("text", "json"):
        raise Trouble(f"no output format is called {output_format!r}", todo="Use text or json.")
    found = command.read(log)
    projects = asked([repository or Path()], select, ignore, None, unsafe_fixes, None) if repository or apply_ else []
    inside = [command.in_repository(found, tree, settings) for tree, settings in projects]
    sys.stdout.write(command.Answer(found, inside[0] if inside else None).render(output_format))
    status = CLEAN if found.known or not found.failed else FINDINGS
    for tree, settings in projects if apply_ else ():
        note(_repaired(found, log, tree, settings))
    raise typer.Exit(status)


def _repaired(found: Diagnosis, log: Path, tree: Tree, settings: Settings) -> str:
    """The closing screen of an apply with the codemods that repair the cause, or why there was none."""
    from ddpfix import catalog, run
    from ddpfix.diagnosis import command, observations

    chosen = command.narrowed(found, settings)
    if not chosen.select:
        return "Nothing to apply: no codemod repairs this cause."
    seen = replace(tree, observed=observations.observed(found, tree.files))
    options = run.Options(unsafe=chosen.unsafe_fixes, branch=chosen.branch, format_command=chosen.format_command)
    again = command.as_apply(log, chosen)
    return run.apply(seen, chosen, catalog.selected(chosen.selection), options, command=again).screen.rstrip()


@app.command()
def undo(
    path: Annotated[Path, typer.Argument(help="The repository.")] = Path(),
) -> None:
    """Take back the last apply, if nobody has built on it since."""
    from ddpfix import run

    sys.stdout.write(run.undo(path))
    raise typer.Exit(CLEAN)


@app.command()
def rules(
    output_format: Annotated[str, typer.Option("--output-format", help="text, json or markdown.")] = "text",
) -> None:
    """List every codemod."""
    from ddpfix import explain

    if output_format not in explain.FORMATS:
        raise Trouble(f"no output format is called {output_format!r}", todo=f"Use {', '.join(explain.FORMATS)}.")
    sys.stdout.write(explain.rules(output_format))


@app.command("explain")
def explain_command(
    rule: Annotated[str, typer.Argument(help="A code or a name: DDP101, unsynced-metric.")],
    output_format: Annotated[str, typer.Option("--output-format", help="text or json.")] = "text",
) -> None:
    """Say what a codemod does, why, when it is safe, and what it refuses."""
    from ddpfix import catalog, explain

    if output_format not in ("text", "json"):
        raise Trouble(f"no output format is called {output_format!r}", todo="Use text or json.")
    sys.stdout.write(explain.one(catalog.lookup(rule), output_format))


def _version(asked_for: bool) -> None:
    if asked_for:
        sys.stdout.write(f"ddpfix {__version__}\n")
        raise typer.Exit(CLEAN)


@app.callback()
def common(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Repair PyTorch training code that breaks, hangs or lies when it goes from one GPU to several."""


# Showing


def note(text: str) -> None:
    """A line that is no result."""
    sys.stderr.write(f"{text}\n")


def progress() -> Callable[[int, int], None] | None:
    """A counter on stderr, where that is a terminal and nobody collects it."""
    if not sys.stderr.isatty() or os.environ.get("CI"):
        return None

    def show(done: int, total: int) -> None:
        if total > 50 and done % 10 == 0:
            sys.stderr.write(f"\r{done}/{total} files\x1b[K")
            sys.stderr.flush()

    return show


def clear_progress() -> None:
    if sys.stderr.isatty() and not os.environ.get("CI"):
        sys.stderr.write("\r\x1b[K")


def wants_color(color: str) -> bool:
    if color not in ("auto", "always", "never"):
        raise Trouble(f"--color takes auto, always or never, not {color!r}")
    if color == "auto":
        return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    return color == "always"


def show_patch(data: bytes, color: str) -> None:
    """Raw bytes into a pipe; coloured, and through the pager where it is longer than the screen, on a terminal."""
    colored = wants_color(color)
    if colored:
        from ddpfix import patches

        data = patches.colored(data)
    if sys.stdout.isatty() and data.count(b"\n") > os.get_terminal_size().lines - 2:
        import subprocess

        pager = os.environ.get("PAGER", "less -FRX")
        try:
            subprocess.run(pager, shell=True, input=data, check=False)
            return
        except OSError:
            pass
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def edits_of(reports: Sequence[tuple[Report, Callable[[str], str]]]) -> dict[str, list[dict[str, Any]]]:
    """Finding id -> its line replacements, with paths as the user sees them."""
    from ddpfix import engine

    out = {}
    for report, shown in reports:
        for key, rows in engine.line_edits(report).items():
            out[key] = [{**row, "path": shown(str(row["path"]))} for row in rows]
    return out


def command_line() -> str:
    """The command as it was given, for the summary; no path of this machine in it."""
    import shlex

    return shlex.join(["ddpfix", *(Path(a).name if os.path.isabs(a) else a for a in sys.argv[1:])])


# The one way out


def main() -> NoReturn:
    """Run the command line. An error that was not foreseen is one line and exit 2, with --debug its traceback."""
    debug = "--debug" in sys.argv
    gc.disable()  # a run is short, and its trees are wanted to the end: each collection goes through millions of nodes
    try:
        code = app(standalone_mode=False)  # what `typer.Exit` held; typer makes 130 of Ctrl-C
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        end(CLEAN)
    except Exception as error:
        if debug:
            raise
        end(tell(error))
    if code == INTERRUPTED:
        note("\ninterrupted; nothing is half written")
    end(code if isinstance(code, int) else CLEAN)


def tell(error: Exception) -> int:
    """One line of what, why and what to do."""
    show = getattr(error, "show", None)
    if callable(show):  # the command line was not understood; the parser says so itself
        show()
        return TROUBLE
    names = {cls.__name__ for cls in type(error).__mro__}
    parts = [getattr(error, name, "") for name in ("what", "why", "todo")]
    if names & {"Trouble", "UnknownSelector", "NoSuchPath", "SettingsError"}:
        note(f"ddpfix: {error}")
    elif all(isinstance(p, str) for p in parts) and parts[0]:
        what, why, todo = parts
        begins = todo if todo.startswith("git ") else todo[:1].upper() + todo[1:]
        note(f"ddpfix: {what}: {why}. {begins}")
    else:
        name = type(error).__name__
        text = " ".join(str(error).split())
        note(f"ddpfix: {name}: {text}. This is a defect of ddpfix: `ddpfix --debug …` shows where; please report it.")
    return TROUBLE


def end(code: int) -> NoReturn:
    gc.freeze()  # or Python's own way out collects once more
    sys.exit(code)


if __name__ == "__main__":
    main()
