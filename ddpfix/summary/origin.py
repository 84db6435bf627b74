"""How the change was made, what took part in it, and what nobody has seen happen."""

from __future__ import annotations

from ddpfix.results import Fixed
from ddpfix.summary.context import Context
from ddpfix.summary.markdown import code, plural, prose


def how_it_was_made(context: Context, fixed: Fixed) -> list[str]:
    """The command, the versions, what was read, what was run and what was not; then what the state of the repository adds."""
    versions = ", ".join(f"{prose(name)} {code(version)}" for name, version in context.versions.items())
    onto = f", on commit {code(context.base)}" if context.base else ""
    report = fixed.report
    its_own = "beyond what is named below" if context.ran else "no test, git hook, linter or formatter"
    not_run = " ".join(prose(text) for text in context.not_run)
    notes = [*context.notes, *([context.identity_note] if context.identity_note else [])]
    return [
        f"- {code(context.command)} ({versions}){onto}.",
        f"- {plural(report.scanned, 'Python file')} looked at; {report.parsed} of them, with a word that a codemod looks for, "
        "were read whole.",
        f"- Not run: {not_run} Nothing of the repository's own was started: {its_own}.",
        *(f"- Run: {prose(text)}" for text in context.ran),
        *(f"- {prose(note)}" for note in notes),
    ]
