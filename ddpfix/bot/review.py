"""A review of somebody's pull request: suggestions on the lines that it changes, one comment that is kept up to date, no push."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ddpfix.bot import marks
from ddpfix.bot.body import LIMIT, fit, quiet
from ddpfix.bot.child import REVIEW
from ddpfix.bot.client import ForgeError
from ddpfix.bot.forge import Pull
from ddpfix.bot.outcome import Outcome
from ddpfix.bot.publish import note
from ddpfix.bot.remarks import Remark
from ddpfix.bot.repositories import why_not
from ddpfix.summary.markdown import code, plural, sentence

if TYPE_CHECKING:
    from ddpfix.bot.inside import Reviewed
    from ddpfix.bot.repositories import Bot


def review(bot: Bot, slug: str, number: int) -> Outcome:
    """Review one pull request. Raises what is foreseen (`repositories.FORESEEN`)."""
    forge = bot.reviewing
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
    changed = forge.changed(slug, number)
    with bot.worker(REVIEW) as worker:
        seen: Reviewed = worker.ask("review", forge.access(slug), pull.base, forge.pull_ref(number), changed)
    if not seen.is_wanted:
        return outcome("skipped", "its settings turn the bot off")
    remarks = seen.remarks
    if bot.options.dry_run:
        return outcome(f"would be: reviewed, {plural(len(remarks), 'remark')}")
    suggested = _suggest(bot, slug, replace(pull, tip=seen.base), remarks)
    stands = any(marks.REVIEW in comment.body for comment in forge.comments(slug, number))
    if not remarks and not stands:
        return outcome("reviewed", "nothing to say")
    written = note(forge, slug, number, _summary(remarks), marks.REVIEW)
    return outcome("reviewed" if written or suggested else "unchanged", plural(len(remarks), "remark"))


def _suggest(bot: Bot, slug: str, pull: Pull, remarks: Sequence[Remark]) -> bool:
    """Put the suggestions that are not there yet, in one call; whether there were any."""
    forge = bot.reviewing
    for attempt in range(2):
        there = "\n".join(forge.review_texts(slug, pull.number))
        open_ones = [r for r in remarks if r.suggestion and marks.suggestion(r.finding.id) not in there]
        new = [r.suggestion for r in open_ones if r.suggestion][: forge.suggestion_limit]
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
    return fit(quiet("\n".join(out)), LIMIT)
