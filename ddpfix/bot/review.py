"""A review of somebody's pull request: suggestions on the lines that it changes, one comment that is kept up to date, no push."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from codemods.findings import Applicability, Finding
from ddpfix import catalog, engine, git
from ddpfix.bot import fixes
from ddpfix.bot.body import LIMIT, fit, harmless
from ddpfix.bot.client import ForgeError
from ddpfix.bot.forge import ChangedFile, Pull, Suggestion
from ddpfix.bot.marks import Seal
from ddpfix.bot.notes import REVIEW, note, place
from ddpfix.bot.outcome import Outcome
from ddpfix.bot.repositories import why_not
from ddpfix.summary.markdown import code, plural, sentence

if TYPE_CHECKING:
    from ddpfix.bot.repositories import Bot


@dataclass(frozen=True, slots=True)
class Remark:
    """A finding on the lines of a pull request, with the suggestion that repairs it where a suggestion can."""

    finding: Finding
    suggestion: Suggestion | None


def review(bot: Bot, slug: str, number: int) -> Outcome:
    """Review one pull request. Raises what is foreseen (`repositories.FORESEEN`)."""
    forge = bot.forge
    repository = forge.repository(slug)
    pull = forge.pull(slug, number)

    def outcome(action: str, why: str = "") -> Outcome:
        return Outcome(slug, "", action, why, number, pull.url)

    if why := why_not(replace(repository, fork=False, may_push=True), bot.options):
        return outcome("skipped", why)
    if pull.state != "open":
        return outcome("skipped", f"it is {pull.state}")
    if pull.inside and pull.branch.startswith(f"{bot.options.prefix}/"):
        return outcome("skipped", "it is one of its own")
    with git.cloned(lambda: forge.access(slug), repository.default_branch, ref=forge.pull_ref(number)) as clone:
        project = fixes.look_at(clone)
        if not (project.settings.bot and project.preferences.enabled):
            return outcome("skipped", "its settings turn the bot off")
        remarks = remarks_on(project, forge.changed(slug, number))
    if bot.options.dry_run:
        return outcome(f"would be: reviewed, {plural(len(remarks), 'remark')}")
    seal = bot.seal(repository)
    suggested = _suggest(bot, seal, slug, replace(pull, tip=project.state.base), remarks)
    stands = any(seal.bears(comment, REVIEW, place(number)) for comment in forge.comments(slug, number))
    if not remarks and not stands:
        return outcome("reviewed", "nothing to say")
    written = note(forge, seal, slug, number, _summary(remarks), REVIEW)
    return outcome("reviewed" if written or suggested else "unchanged", plural(len(remarks), "remark"))


def remarks_on(project: fixes.Project, changed: Mapping[str, ChangedFile]) -> list[Remark]:
    """What there is to say about the lines that a pull request changes."""
    tree = replace(project.tree, chosen=tuple(p for p in project.tree.chosen if p in changed))
    codemods = catalog.selected(project.settings.selection)
    found = engine.fix(tree, project.settings, codemods, lambda finding: False, read=project.read)
    here = [f for f in found.report.findings if _is_on(f, changed[f.path])]
    rows = engine.line_edits(replace(found.report, findings=tuple(here)), read=project.read)
    out: list[Remark] = []
    for finding in sorted(here, key=lambda f: (f.path, f.span, f.code)):
        taken = [r.suggestion for r in out if r.suggestion]
        out.append(Remark(finding, _suggestion(finding, rows.get(finding.id, ()), changed, taken)))
    return out


def _is_on(finding: Finding, file: ChangedFile) -> bool:
    return not file.changed.isdisjoint(range(finding.span.line, finding.span.end_line + 1))


def _suggestion(
    finding: Finding, rows: Sequence[Mapping[str, object]], changed: Mapping[str, ChangedFile], taken: Sequence[Suggestion]
) -> Suggestion | None:
    """The fix as one suggestion; None where it needs lines that the pull request leaves alone, or those of another one."""
    if len(rows) != 1:
        return None
    row = rows[0]
    path, first, last = str(row["path"]), int(str(row["start_line"])), int(str(row["end_line"]))
    file = changed.get(path)
    if file is None or last < first or not file.in_one_hunk(first, last) or file.changed.isdisjoint(range(first, last + 1)):
        return None
    if any(s.path == path and first <= s.last and s.first <= last for s in taken):
        return None
    words = f"**{finding.code} {finding.name}**: {sentence(finding.message)}"
    if finding.applicability is Applicability.UNSAFE:
        words += f" This assumes: {sentence(finding.reason)}"
    text = str(row["replacement"]).replace("\r\n", "\n")
    return Suggestion(path, first, last, text, harmless(words))


def _suggest(bot: Bot, seal: Seal, slug: str, pull: Pull, remarks: Sequence[Remark]) -> bool:
    """Put the suggestions that are not there yet, in one call; whether there were any."""
    forge = bot.forge
    for attempt in range(2):
        own = [c for c in forge.review_comments(slug, pull.number) if seal.is_own(c.author)]
        new: list[Suggestion] = []
        for remark in remarks:
            about = place(pull.number, remark.finding.id)
            if remark.suggestion and not any(seal.bears(c, "suggestion", about) for c in own):
                new.append(replace(remark.suggestion, mark=seal.block("suggestion", about)))
        new = new[: forge.suggestion_limit]
        if not new:
            return attempt > 0
        try:
            forge.review(slug, pull, f"ddpfix: {plural(len(new), 'suggestion')} for running on several processes.", new)
            return True
        except ForgeError as error:
            if not error.unsure or attempt:
                raise
    return True


def _summary(remarks: Sequence[Remark]) -> str:
    if not remarks:
        return "ddpfix: nothing is left to say about the lines that this changes."
    out = [f"### ddpfix: {plural(len(remarks), 'remark')} on the lines that this changes", ""]
    for remark in remarks:
        finding = remark.finding
        place = code(f"{finding.path}:{finding.span.line}")
        if remark.suggestion:
            how = "See the suggestion on that line."
        elif finding.fix:
            how = f"The fix needs further lines: `ddpfix diff --select {finding.code}` shows it."
        else:
            how = f"No fix: {sentence(finding.reason)}" if finding.reason else ""
        out.append(f"- {place} **{finding.code}** {sentence(finding.message)} {how}".rstrip())
    out += ["", f"<sub>Comment `/ddpfix explain {remarks[0].finding.code}` for the reasons, `/ddpfix rerun` to look again.</sub>"]
    return fit(harmless("\n".join(out)), LIMIT)
