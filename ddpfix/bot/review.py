"""A review of somebody's pull request: suggestions on the lines that it changes, one comment that is kept up to date, no push."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ddpfix.bot import child
from ddpfix.bot.body import LIMIT, fit, harmless
from ddpfix.bot.client import ForgeError
from ddpfix.bot.forge import Pull, Suggestion
from ddpfix.bot.marks import Seal
from ddpfix.bot.notes import REVIEW, note, place
from ddpfix.bot.outcome import Outcome
from ddpfix.bot.remarks import Remark
from ddpfix.bot.repositories import why_not
from ddpfix.results import Failure
from ddpfix.summary.markdown import code, plural, sentence

if TYPE_CHECKING:
    from ddpfix.bot.inside import Reviewed
    from ddpfix.bot.repositories import Bot


MOST_UNREAD = 10  # files that are named


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
    with bot.worker(child.REVIEW) as worker:
        seen: Reviewed = worker.ask("review", forge.access(slug), pull.base, forge.pull_ref(number), changed)
    if not seen.is_wanted:
        return outcome("skipped", "its settings turn the bot off")
    remarks = seen.remarks
    unread = _unread(seen.unread)
    if bot.options.dry_run:
        return outcome(f"would be: reviewed, {plural(len(remarks), 'remark')}", unread)
    seal = bot.seal(repository)
    suggested = _suggest(bot, seal, slug, replace(pull, tip=seen.base), remarks)
    stands = any(seal.bears(comment, REVIEW, place(number)) for comment in forge.comments(slug, number))
    if not remarks and not stands:
        return outcome("reviewed", "; ".join(filter(None, ("nothing to say", unread))))
    written = note(forge, seal, slug, number, _summary(remarks, seen.unread), REVIEW)
    why = "; ".join(filter(None, (plural(len(remarks), "remark"), unread)))
    return outcome("reviewed" if written or suggested else "unchanged", why)


def _suggest(bot: Bot, seal: Seal, slug: str, pull: Pull, remarks: Sequence[Remark]) -> bool:
    """Put the suggestions that are not there yet, in one call; whether there were any."""
    forge = bot.reviewing
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


def _unread(failed: Sequence[Failure]) -> str:
    """For the log: the files of which nothing is known, "" where all were read."""
    more = f" and {len(failed) - MOST_UNREAD} more" if len(failed) > MOST_UNREAD else ""
    return "not read: " + "; ".join(f"{f.path}: {f.error}" for f in failed[:MOST_UNREAD]) + more if failed else ""


def _summary(remarks: Sequence[Remark], unread: Sequence[Failure] = ()) -> str:
    told = [f"- {code(f.path)} was not read: {sentence(f.error)}" for f in unread[:MOST_UNREAD]]
    told += [f"- and {plural(len(unread) - MOST_UNREAD, 'more file')}"] * (len(unread) > MOST_UNREAD)
    if not remarks:
        said = "ddpfix: nothing is left to say about the lines that this changes."
        return "\n".join([said, "", *told] if told else [said])
    out = [f"### ddpfix: {plural(len(remarks), 'remark')} on the lines that this changes", ""]
    for remark in remarks:
        finding = remark.finding
        place = code(finding.place)
        if remark.suggestion:
            how = "See the suggestion on that line."
        elif finding.fix:
            how = f"The fix needs further lines: `ddpfix diff --select {finding.code}` shows it."
        else:
            how = f"No fix: {sentence(finding.reason)}" if finding.reason else ""
        out.append(f"- {place} **{finding.code}** {sentence(finding.message)} {how}".rstrip())
    out += told
    out += ["", f"<sub>Comment `/ddpfix explain {remarks[0].finding.code}` for the reasons, `/ddpfix rerun` to look again.</sub>"]
    return fit(harmless("\n".join(out)), LIMIT)
