"""One topic brought to where it should be: look, decide, do; look again where somebody was faster or an answer was lost."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from functools import partial

from ddpfix import __version__, catalog, git
from ddpfix.bot import body, fixes
from ddpfix.bot.client import ForgeError
from ddpfix.bot.forge import Pull
from ddpfix.bot.login import hidden
from ddpfix.bot.marks import Marks
from ddpfix.bot.notes import note, plain
from ddpfix.bot.outcome import Outcome
from ddpfix.bot.place import Place
from ddpfix.bot.planning import Branch, Decision, Policy, Seen, Wanted, decide
from ddpfix.bot.signing import Unsigned, signed
from ddpfix.bot.topics import Topic
from ddpfix.summary.markdown import code, prose

TRIES = 4
HANDS_OFF = (
    "ddpfix leaves this alone from now on: {why}.\n\nComment `/ddpfix rebuild` to have the change made afresh, "
    "without what others did to it."
)
PROGRAM = " If those commits are another program's, name it under `ignored-authors` in `.github/ddpfix.toml`."
GONE = "On {base} there is nothing left for this to fix, so ddpfix closes it and deletes its branch."
SUPERSEDED = "ddpfix now makes these changes in {successor}, so it closes this and deletes its branch."
ADDED = "by an added commit, since the server takes no forced push"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person asked for. here, repo: codes to leave out of this pull request, and of the settings."""

    rebuild: bool = False
    here: tuple[str, ...] = ()
    repo: tuple[str, ...] = ()


class Raced(Exception):
    """Somebody else changed what was read, or an answer was lost (its text says how): it has to be read again."""


def settle(place: Place, topic: Topic, asked: Asked) -> Outcome:
    """Bring a topic to where it should be. Raises ForgeError, GitRefusal and what `fixes.make` raises."""
    branch = place.branch_of(topic.name)
    preferences = place.project.preferences
    policy = Policy(asked.rebuild, preferences.max_open, preferences.ignored_authors)
    made: dict[tuple[tuple[str, ...], tuple[str, ...]], Wanted] = {}
    opened = False

    def wanted_without(here: tuple[str, ...], repo: tuple[str, ...]) -> Wanted:
        if (here, repo) not in made:
            made[here, repo] = fixes.make(
                place.project, place.clone, topic, branch=branch, base_branch=place.repository.default_branch,
                identity=place.identity, here=here, repo=repo,
            )  # fmt: skip
        return made[here, repo]

    if branch not in place.branches and wanted_without(asked.here, asked.repo).tree is None:
        return place.outcome(topic.name, "nothing", why="nothing to fix")
    for attempt in range(TRIES):
        seen = place.look(branch, may_exist=attempt > 0 or branch in place.branches)
        here, repo = _left_out(seen, asked)
        wanted = wanted_without(here, repo)
        decision = decide(wanted, seen, policy)
        if place.dry_run:
            return place.outcome(topic.name, f"would be: {decision.action}", decision.pull, decision.why)
        try:
            done = _carry_out(place, wanted, seen, decision, Marks(topic.name, here=here, repo=repo))
        except Raced as raced:
            if attempt == TRIES - 1:
                why = f"the push has no answer: {raced}" if str(raced) else "others kept changing it"
                return place.outcome(topic.name, "failed", seen.open, f"{why}; run again")
            continue
        except ForgeError as error:
            if not error.unsure or attempt == TRIES - 1:
                raise
            opened = opened or decision.action == "create"
            continue
        if opened and done.action in ("unchanged", "updated") and done.number:
            # the answer was lost, not the request
            return replace(done, action="created", why=_label(place, done.number))
        return done
    raise AssertionError("the last attempt returns or raises")


def _left_out(seen: Seen, asked: Asked) -> tuple[tuple[str, ...], tuple[str, ...]]:
    marked = seen.left_in(seen.open)
    known = {codemod.code for codemod in catalog.all_codemods()}  # one that is gone since must not stop all the others
    here = {*(marked.here if marked else ()), *asked.here} & known
    repo = {*(marked.repo if marked else ()), *asked.repo} & known
    return tuple(sorted(here - repo)), tuple(sorted(repo))


def _carry_out(place: Place, wanted: Wanted, seen: Seen, decision: Decision, marked: Marks) -> Outcome:
    match decision.action:
        case "create":
            return _created(place, wanted, seen, decision, marked)
        case "update" | "unchanged":
            return _published(place, wanted, seen, decision, marked)
        case "left-to-human":
            # what somebody else opened is his own: there is nobody to be told
            if decision.pull and place.seal.is_own(decision.pull.author):
                foreign = seen.branch and seen.branch.foreign(place.project.preferences.ignored_authors)
                text = HANDS_OFF.format(why=prose(decision.why)) + (PROGRAM if foreign else "")
                note(place.forge, place.seal, place.slug, decision.pull.number, text)
            return place.outcome(wanted.topic, "left-to-human", decision.pull, decision.why)
        case "close-empty" if decision.pull:
            close(place, decision.pull, seen.branch, GONE.format(base=code(wanted.base_branch)))
            return place.outcome(wanted.topic, "closed", decision.pull, decision.why)
        case "delete-branch" if seen.branch:
            deleted = place.clone.delete(wanted.branch, seen.branch.tip)
            if deleted.stale or deleted.unsure:
                raise Raced
            action, why = ("deleted", decision.why) if deleted.done else ("refused", f"the branch stays: {deleted.why}")
            return place.outcome(wanted.topic, action, why=why)
        case _:
            return place.outcome(wanted.topic, decision.action, decision.pull, decision.why)


def _created(place: Place, wanted: Wanted, seen: Seen, decision: Decision, marked: Marks) -> Outcome:
    taken = place.budget.take()
    if taken is None:
        return place.outcome(wanted.topic, "deferred", why="enough pull requests were opened in this hour")
    opened = True  # or nobody knows
    try:
        done = _published(place, wanted, seen, decision, marked)
        opened = done.action == "created"
        return done
    except (Raced, ForgeError, git.GitRefusal) as error:
        opened = isinstance(error, ForgeError) and error.unsure
        raise
    finally:
        if not opened:
            place.budget.give_back(taken)


def _published(place: Place, wanted: Wanted, seen: Seen, decision: Decision, marked: Marks) -> Outcome:
    assert wanted.commit
    head, how, run = seen.branch.tip if seen.branch else "", "", seen.branch.run if seen.branch else ""
    if decision.push and place.signed:
        try:
            wanted = signed(place, wanted)
        except Unsigned as error:
            return _refused(place, wanted, decision, str(error))
    if decision.push:
        run = secrets.token_hex(8)
        pushed, head, how = _pushed(place, wanted, seen.branch, run)
        run = run if how else wanted.run
        if pushed.stale or pushed.unsure:
            raise Raced(pushed.why if pushed.unsure else "")
        if not pushed.done:
            return _refused(place, wanted, decision, pushed.why)
    marked = replace(marked, head=head, base=wanted.base, tool=__version__, run=run)
    cut = place.seal.cut(decision.pull) if decision.pull else None
    words = body.words_in(*cut) if cut else body.words_of_others(decision.pull.body) if decision.pull else body.Words(place.cover)
    sealed = partial(place.seal.of_pull, wanted.branch)
    text = body.pull_body(wanted.text, body.footer(".github/ddpfix.toml"), marked, sealed, words)
    if decision.pull is None:
        return _opened(place, wanted, text)
    new_text = text if plain(text) != plain(decision.pull.body) else None
    # a title that a person has changed stands until the change itself is another
    known = seen.left_in(decision.pull)
    is_other = decision.push or known is None or known.head != head
    new_title = wanted.title if is_other and wanted.title != decision.pull.title else None
    new_base = wanted.base_branch if decision.pull.base != wanted.base_branch else None
    changed = decision.push or new_text or new_title or new_base
    if new_text or new_title or new_base:
        place.forge.edit_pull(place.slug, decision.pull.number, title=new_title, body=new_text, base=new_base)
    return place.outcome(wanted.topic, "updated" if changed else "unchanged", decision.pull, how)


def _pushed(place: Place, wanted: Wanted, branch: Branch | None, run: str) -> tuple[git.Pushed, str, str]:
    """(what came of it, the new tip, how it was done if not in the ordinary way). run: of a commit that has to be added."""
    assert wanted.commit and wanted.tree
    pushed = place.clone.push(wanted.branch, wanted.commit, branch.tip if branch else None)
    if pushed.done or pushed.stale or pushed.unsure or branch is None or place.signed:
        return pushed, wanted.commit, ""
    parents = [branch.tip] if any(wanted.base in c.parents for c in branch.own()) else [branch.tip, wanted.base]
    message = f"{wanted.title}\n\nOn top of what was here, since the server takes no forced push."
    commit = place.clone.on_top(wanted.tree, parents, message, place.identity, run)
    again = place.clone.push(wanted.branch, commit, branch.tip, force=False)
    return (again, commit, ADDED) if again.done or again.stale or again.unsure else (pushed, "", "")


def _refused(place: Place, wanted: Wanted, decision: Decision, why: str) -> Outcome:
    """What the server said, with the rules that bind the branch: somebody has to let the bot past them."""
    try:
        rules = place.forge.rules(place.slug, wanted.branch)
    except ForgeError:
        rules = ()
    bound = f"; rules for {wanted.branch}: {', '.join(rules)}: let ddpfix bypass them" if rules else ""
    return place.outcome(wanted.topic, "refused", decision.pull, f"the server refused the push: {why}{bound}")


def _opened(place: Place, wanted: Wanted, text: str) -> Outcome:
    try:
        pull = place.forge.open_pull(
            place.slug, branch=wanted.branch, base=wanted.base_branch, title=wanted.title, body=text, draft=wanted.draft
        )
    except ForgeError as error:
        if error.status in (409, 422) and "already exists" in error.message:
            raise Raced from None
        raise
    place.pulls[wanted.branch] = (pull, *place.pulls.get(wanted.branch, ()))
    return place.outcome(wanted.topic, "created", pull, _label(place, pull.number))


def _label(place: Place, number: int) -> str:
    """Label a new pull request, which stands without, too; what went wrong, "" where nothing did."""
    labels = (*place.labels, *place.project.preferences.labels)
    for attempt in range(2 if labels else 0):
        try:
            place.forge.label(place.slug, number, labels)
            break
        except ForgeError as error:
            # to label again what has the label changes nothing
            if attempt or not error.unsure:
                return f"without labels: {hidden(str(error), place.forge.secrets())}"
    return ""


def supersede(place: Place, branch: str, successor: Pull | None) -> Outcome | None:
    """Close what the bot opened under a topic that is no longer asked for; None where there is nothing of its own to close."""
    seen = place.look(branch)
    marked = seen.left_in(seen.open)
    topic = branch.removeprefix(f"{place.prefix}/")
    if not seen.open and seen.branch and seen.branch.own() and _was_closed_here(seen):
        # what a crash between closing and deleting left
        return None if place.dry_run else _tidied(place, topic, seen.branch)
    if not (seen.open and marked and marked.topic == topic):
        return None
    if seen.branch is None or seen.branch.foreign(place.project.preferences.ignored_authors):
        return place.outcome(topic, "left-to-human", seen.open, "it is superseded, but holds somebody else's commits")
    if place.dry_run:
        return place.outcome(topic, "would be: superseded", seen.open)
    text = SUPERSEDED.format(successor=successor.url if successor else "another way")
    close(place, seen.open, seen.branch, text)
    return place.outcome(topic, "superseded", seen.open, f"by {successor.url}" if successor else "")


def _was_closed_here(seen: Seen) -> bool:
    marked = seen.left_in(seen.pulls[0]) if seen.pulls else None
    return bool(marked and marked.closed)


def _tidied(place: Place, topic: str, branch: Branch) -> Outcome | None:
    done = place.clone.delete(place.branch_of(topic), branch.tip).done
    return place.outcome(topic, "deleted", why="its pull request was closed") if done else None


def close(place: Place, pull: Pull, branch: Branch | None, reason: str) -> None:
    """Close a pull request of the bot with a reason, marked so that it does not count as somebody's no; delete its branch."""
    note(place.forge, place.seal, place.slug, pull.number, reason)
    above, marked, below = place.seal.cut(pull) or (f"{pull.body}\n\n", Marks(pull.branch.removeprefix(f"{place.prefix}/")), "")
    text = f"{above}{place.seal.of_pull(pull.branch, replace(marked, closed=True))}{below}"
    place.forge.edit_pull(place.slug, pull.number, body=text, close=True)
    if branch:
        place.clone.delete(pull.branch, branch.tip)
