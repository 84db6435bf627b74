"""What is known of a value over the ranks: is it the same on all of them, and how do we know?

After Aiken and Gay, "Barrier inference" (1998): a value is single-valued or multi-valued, and what is decided by a
multi-valued one may not decide over a collective. Here a value also says by what it differs, how far that is proven, and
along which way it came.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, IntEnum

from codemods.analysis.call_graph import FunctionSite
from codemods.analysis.class_index import ClassSite
from codemods.runtime.record import record, replace

LONGEST_CHAIN = 7  # links that a reader still follows
REST = ""  # among the entries of a dict: what stands under all the other keys


class Cause(Enum):
    """By what a value differs between the ranks. weight: the heavier cause is told, where there are several."""

    SAME = ("the same on all ranks", 0)
    UNKNOWN = ("unknown", 1)
    PLACE = ("each process has its own", 2)  # clocks, random numbers, signals, exceptions
    RANK = ("it depends on the rank", 3)
    DATA = ("each rank has its own data", 4)

    def __init__(self, text: str, weight: int) -> None:
        self.text, self.weight, self.differs = text, weight, weight > 1


class Proof(IntEnum):
    """How far the cause is shown."""

    UNKNOWN = 0
    LIKELY = 1  # by a name, or through a call that the source does not show
    PROVEN = 2


class How(Enum):
    """What happens at one step of the way that a value came."""

    WRITTEN = "a statement or a call, as it is written"
    ASSIGNED = "an assignment, as it is written"
    HANDED = "from a parameter to the call that gives it"
    ASKS_RANK = "a test of the rank"
    RANK = "the number of the process itself"
    SHARE = "a whole is cut into the ranks' shares"
    SAMPLED = "a sampler or a prepared loader gives each rank its share"
    SHARDS = "a stream of each rank's own shards"
    OF_STEP = "what a hook or a step is handed on this rank"
    PREDICTED = "what a Trainer gives back of the rank's own batches"
    WHOLE = "each rank goes through the whole set, in an order of its own"
    CLOCK = "the process's own clock"
    GIVEN_UP = "an error on this rank, behind which it goes on without a result"


@record
class Link:
    """One step of the way that a value came. by_name: nothing but a name says so."""

    path: str
    line: int
    text: str
    by_name: bool = False
    how: How = How.WRITTEN


class Kind(Enum):
    """What an object is, as far as the analysis treats it in a way of its own."""

    LOADER = "loader"
    SAMPLER = "sampler"  # one that gives each rank its own share
    MODULE = "module"
    WRAPPED = "wrapped"  # behind DistributedDataParallel, or prepared
    OPTIMIZER = "optimizer"
    PLATEAU = "plateau"  # a scheduler that is told a number
    MODELS = "models"  # a container of wrapped models
    METRIC = "metric"  # of torchmetrics: compute() reduces
    ENUMERATED = "enumerated"  # the parts: a counter, and what is counted
    ZIPPED = "zipped"
    FUNCTION = "function"  # one that a call gave back
    INSTANCE = "instance"  # of a project class


@record
class Thing:
    """kind and, for an object of a project class, the class; for a function, where it stands.

    waits: of a model: it has buffers (BatchNorm) or is sharded, so that each forward of its wrapper is a collective; None where
    the model is not seen. unseen: a loader whose sampler is not seen. layers: it is made of PyTorch's layers without buffers
    alone.
    """

    kind: Kind
    site: ClassSite | None = None
    waits: bool | None = False
    function: FunctionSite | None = None
    unseen: bool = False
    layers: bool = False


@record
class Value:
    """cause and proof: see above; chain: the way it came, nearest first. params: it differs where one of these parameters
       of its function does. thing: what object it is. sized: where it differs, its length does too. optional: where it
       differs, it may also be missing (None) on a rank. missing: the parameters and fields that decide whether it is there.
       parts: the elements of a tuple that is written out. entries: those of a dict, by their keys. mean: it is put together
       from many batches. length: it is the length of what the parameters hold, and differs only where they are `sized`.
       decided: a test decides which value it is, none of which need differ. listed: it is a list that was filled. keyed:
       which keys it has differs. truths: parameters of which the truth alone
       counts: of a loader, whether it has batches.
    """

    cause: Cause = Cause.SAME
    proof: Proof = Proof.PROVEN
    chain: tuple[Link, ...] = ()
    params: frozenset[str] = frozenset()
    thing: Thing | None = None
    sized: bool = False
    optional: bool = False
    missing: frozenset[str] = frozenset()
    parts: tuple[Value, ...] = ()
    entries: tuple[tuple[str, Value], ...] = ()
    mean: bool = False
    length: bool = False
    decided: bool = False
    listed: bool = False
    keyed: bool = False
    truths: frozenset[str] = frozenset()

    @property
    def differs(self) -> bool:
        return self.cause.differs and self.proof >= Proof.LIKELY

    @property
    def kind(self) -> Kind | None:
        return self.thing.kind if self.thing else None

    @property
    def origin(self) -> Link | None:
        return self.chain[-1] if self.chain else None

    @property
    def by_name(self) -> bool:
        """True where nothing but a name says where it comes from."""
        return bool(self.chain) and self.chain[-1].by_name

    @property
    def is_of_own_data(self) -> bool:
        """True for what the rank's own data make, where more than a name says so."""
        return self.differs and self.cause is Cause.DATA and not self.by_name


SAME = Value()
UNKNOWN = Value(Cause.UNKNOWN, Proof.UNKNOWN)


def differing(cause: Cause, proof: Proof, *chain: Link, sized: bool = False, thing: Thing | None = None) -> Value:
    return Value(cause, proof, tuple(chain), sized=sized, thing=thing)


def _strength(value: Value) -> tuple[int, int]:
    return (value.cause.weight if value.proof or value.cause is Cause.SAME else 1, value.proof)


def join(values: Iterable[Value]) -> Value:
    """What is made of several values: it differs where one of them does, by the strongest cause."""
    found = list(values)
    several = [v for v in found if v is not SAME]  # most operands are that
    if not several:
        return SAME
    if len(found) == 1:
        return found[0]
    if len(several) == 1 and several[0].cause is not Cause.SAME and not several[0].parts:
        return several[0]
    best = max(found, key=_strength)
    held = [v for v in several if v.params and not v.length]  # beside what they hold, how long others are counts for nothing
    thing, sized, optional, mean, length, keyed, entries, truths = None, False, False, False, False, False, False, False
    missing = frozenset[str]()
    for v in several:  # one round: it is the commonest question of all, and SAME has none of these
        thing, sized, optional = thing or v.thing, sized or v.sized, optional or v.optional
        mean, length, keyed = mean or v.mean, length or v.length, keyed or v.keyed
        missing, entries = missing | v.missing if v.missing else missing, entries or bool(v.entries)
        truths = truths or bool(v.truths)
    return replace(
        best,
        params=frozenset[str]().union(*[v.params for v in held or several]),
        missing=missing,
        thing=thing and one_thing(v.thing for v in several),
        sized=sized,
        optional=optional,
        parts=_joined_parts(found),
        entries=_joined_entries(several) if entries else (),
        mean=mean,
        length=length and not held,
        keyed=keyed,
        truths=_truths(several) if truths else best.truths,
    )


def _truths(found: list[Value]) -> frozenset[str]:
    """The parameters of which no value needs more than the truth."""
    whole = frozenset[str]().union(*[v.params - v.truths for v in found])
    return frozenset[str]().union(*[v.truths for v in found]) - whole


def one_thing(things: Iterable[Thing | None]) -> Thing | None:
    """The one object that all of them are; of a model that is wrapped on one of two ways the wrapper, which has the hazard."""
    found = {t for t in things if t is not None}
    if len(found) > 1:
        found = {_of_unseen_layers(t) for t in found}
    if len(found) > 1 and all(t.kind in (Kind.MODULE, Kind.WRAPPED) for t in found):
        found = {t for t in found if t.kind is Kind.WRAPPED}
    return next(iter(found)) if len(found) == 1 else None


def _of_unseen_layers(thing: Thing) -> Thing:
    """A model of which only one of two ways is seen: what it is made of on the other counts as well."""
    if not thing.layers:
        return thing
    return replace(thing, layers=False, waits=None if thing.kind is Kind.WRAPPED and thing.waits is False else thing.waits)


def _joined_parts(found: list[Value]) -> tuple[Value, ...]:
    lengths = {len(v.parts) for v in found}
    if len(lengths) != 1 or not found[0].parts:
        return ()
    return tuple(join(column) for column in zip(*(v.parts for v in found), strict=True))


def _joined_entries(found: list[Value]) -> tuple[tuple[str, Value], ...]:
    """Of a dict, or None, or a dict in which nothing differs; of several dicts an entry is that of those that have it."""
    held = [dict(v.entries) for v in found if v.entries]
    others = [v for v in found if not v.entries and not v.optional and not v.missing]
    if any(v.cause.differs or v.kind is not None for v in others):
        return ()
    held += [{REST: plain(v)} for v in others if v.cause is Cause.UNKNOWN or v.params]
    keys = dict.fromkeys(key for d in held for key in d)
    return tuple((key, join([d[key] if key in d else d[REST] for d in held if key in d or REST in d])) for key in keys)


def plain(value: Value) -> Value:
    """The value as an operand of something else: what object it is no longer counts."""
    if value.thing is None and not value.parts and not value.entries:
        return value
    return replace(value, thing=None, parts=(), entries=())


def made_of(*values: Value) -> Value:
    """The result of an operation on values."""
    found = join(map(plain, values))
    return replace(found, optional=False, missing=frozenset()) if found.optional or found.missing else found


def along(value: Value, link: Link) -> Value:
    """The value with one more step of its way; nothing is noted of one that does not differ."""
    if not (value.cause.differs or value.params) or (value.chain and value.chain[0] == link):
        return value
    chain = (link, *value.chain)
    if len(chain) > LONGEST_CHAIN:
        chain = (*chain[: LONGEST_CHAIN - 1], chain[-1])
    return replace(value, chain=chain)


def at_most(value: Value, proof: Proof) -> Value:
    """The value, with no more proof than that."""
    return replace(value, proof=proof) if value.proof > proof and value.cause is not Cause.SAME else value
