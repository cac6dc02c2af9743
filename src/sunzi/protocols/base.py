"""The interface of a protocol: how clients randomise values, and how the server estimates from their reports."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from inspect import Parameter, signature
from math import exp
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from sunzi._typing import Floats, Integers
from sunzi.client.errors import ParameterError, shown
from sunzi.client.protocols import protocol as client
from sunzi.client.randomness import WordSource
from sunzi.client.reports import Report
from sunzi.designs.base import DecodingCost
from sunzi.designs.response import BlockResponse
from sunzi.domains.labels import Domain
from sunzi.errors import EstimateError
from sunzi.formatting import counted
from sunzi.numerics import kernels
from sunzi.numerics.bit_sums import BitSums
from sunzi.numerics.blanket import Blanket
from sunzi.numerics.checks import real_number
from sunzi.numerics.counters import Counters
from sunzi.numerics.randomness import ReproducibleSource
from sunzi.protocols.channel import Channel, FirstWord
from sunzi.protocols.decoder_rows import DecoderRow
from sunzi.results.discovery import Discovery, Threshold
from sunzi.results.estimate import Estimate
from sunzi.tally import Tally, TallyLayout
from sunzi.wire import EncodedReports

if TYPE_CHECKING:
    from sunzi.protocols.joint_fit import JointFit

# What randomize returns and encode and count take; each protocol chooses its own type.
Messages = Any

_SIMULATED_WORDS = 1 << 22
_SECONDS_PER_WORD = 2e-8


@dataclass(frozen=True)
class PlannedError:
    """What a plan answers, and how exactly: variances about the users, at the flat histogram."""

    question: str
    variance: float
    alternatives: Mapping[str, float] = field(default_factory=dict)
    """The variances of methods that one might use instead, by their names."""


@dataclass(frozen=True)
class Protocol(client.Protocol):
    """A frequency oracle for one domain size and ε.

    Subclasses are frozen dataclasses that validate in ``__post_init__`` everything that privacy depends on. To add your
    own, subclass it, give it a ``name``, provide ``domain_size``, ``epsilon``, ``report_layout`` and ``tally_layout``
    as fields or properties, and call :func:`sunzi.protocols.register`.

    >>> import sunzi
    >>> protocol = sunzi.make_plan("grr", 10, epsilon=1).protocol
    >>> isinstance(protocol, Protocol), protocol.name, protocol.domain_size
    (True, 'grr', 10)
    """

    error_of: ClassVar[str] = "a frequency"
    """What :meth:`expected_mse` is the error of."""

    response_kind: ClassVar[type[BlockResponse]] = BlockResponse

    if TYPE_CHECKING:  # at run time, dataclasses would take an inherited property for the default of a field

        @property
        def tally_layout(self) -> TallyLayout:
            """How counters are laid out in a tally."""

        @property
        def responses(self) -> tuple[BlockResponse, ...]:
            """The block responses that a report chooses from; empty if reports are made otherwise."""
    else:
        responses = ()

    @property
    def channels(self) -> tuple[Channel, ...]:
        """The channels that a report chooses from; empty if they are unknown, which rules out an analysis."""
        return self.responses

    @property
    def shares(self) -> Floats:
        """How often each channel is chosen, independently of the value; by default equally often."""
        return np.full(len(self.channels), 1 / len(self.channels))

    @property
    def first_word(self) -> FirstWord | None:
        """What the first word of a report decides, before the words of its channel; None if it has no such word."""
        return None

    def points_of(self, channel: int, values: Integers) -> Integers:
        """The point of each value in a channel; for values that are rounded by chance, the likelier point."""
        return values % self.channels[channel].points

    def place(self, drawn: int, value: int) -> tuple[int, int]:
        """The channel, and the value's point in it, once the first word has given the integer ``drawn``."""
        return drawn, int(self.points_of(drawn, np.array([value]))[0])

    def values_in_words(self, domain: Domain) -> str:
        """What clients report, for display."""
        return domain.in_words()

    @property
    def guessed(self) -> str:
        """What an attacker who sees a report guesses: one of :attr:`attacked_values`, in words."""
        return "the value"

    @property
    def attacked_values(self) -> Sequence[int]:
        """The values that attackers and audits distinguish: all, unless values between others are rounded to them."""
        return range(self.domain_size)

    def split(self, messages: Messages) -> tuple[Integers, tuple[Any, ...]]:
        """The channel of every message, and for each channel its own messages in order of appearance."""
        return np.zeros(len(messages), dtype=np.int64), (messages,)

    def join(self, parts: Sequence[Any]) -> Messages:
        """Messages of every channel in one batch, channel after channel; the inverse of :meth:`split`."""
        return parts[0]

    def wire_report(self, channel: int, payload: int) -> tuple[int, int]:
        """Selector and payload, as :meth:`encode` writes them, of one channel's encoded message."""
        return channel, payload

    def narrowed(self, epsilon: Fraction, word_bits: int, smallest: bool) -> Self | None:  # noqa: ARG002 - for protocols that can
        """This protocol on words of ``word_bits`` bits, with its own designs or the smallest of their kinds; for
        exhaustive checks. None if that is not possible.
        """
        return None

    def flat_points(self, channel: int) -> Floats:
        """The shares of a channel's points if all values are equally frequent."""
        points = self.points_of(channel, np.arange(self.domain_size))
        return np.bincount(points, minlength=self.channels[channel].points) / self.domain_size

    def targets(self, number: int) -> list[int]:
        """Values for fake clients to push: ``number`` of them, spread evenly over the domain."""
        if not 1 <= number <= self.domain_size:
            raise ParameterError(f"targets must be between 1 and {self.domain_size} items, got {number}")
        return [(2 * index + 1) * self.domain_size // (2 * number) for index in range(number)]

    def pushed(self, domain: Domain, targets: Sequence[int]) -> str:  # noqa: ARG002 - for protocols that name parts of it
        """What fake clients push, in words."""
        return f"the summed frequency of {counted(len(targets), 'value')}"

    def target_row(self, targets: Sequence[int]) -> Floats:
        """What fake clients push, as weights of the items of :meth:`linear_estimate`: by default 1 for every target."""
        row = np.zeros(self.domain_size)
        row[list(targets)] = 1.0
        return row

    def target_parts(self, targets: Sequence[int]) -> tuple[Floats, ...]:  # noqa: ARG002 - for protocols that know
        """For every channel, how much the support of each of its points adds to what fake clients push, before
        debiasing.
        """
        raise ParameterError(f"{self.name!r} does not define target_parts")

    def joint_fit(self, tally: Tally) -> JointFit | None:  # noqa: ARG002 - for protocols with several channels
        """The least-squares fit that joins the channels, for protocols that have several."""
        return None

    @classmethod
    @abstractmethod
    def choose(cls, domain_size: int, epsilon: Fraction, *args: Any, **options: Any) -> Self:
        """A good instance for this setting. Unknown options raise TypeError."""

    @classmethod
    def domain_options(cls, domain: Domain) -> dict[str, Any]:  # noqa: ARG003 - for protocols that need more
        """What :meth:`choose` needs to know about the domain apart from its size, as options."""
        return {}

    def make_reports(self, indices: Sequence[Any], source: WordSource) -> list[Report]:
        """One report per index; protocols that plans of version 1 name have their own way."""
        encoded = self.randomize_reports(np.array(indices, dtype=np.int64), source)
        return list(zip(encoded.selectors.tolist(), encoded.in_order(), strict=True))

    @abstractmethod
    def randomize(self, values: Integers, source: WordSource) -> Messages:
        """One message per value. ε-LDP for each value if the words are uniform."""

    @abstractmethod
    def encode(self, messages: Messages) -> EncodedReports:
        """Messages as integers for the wire."""

    def randomize_reports(self, values: Integers, source: WordSource) -> EncodedReports:
        """The encoded messages of :meth:`randomize`; override it where there is a faster way."""
        return self.encode(self.randomize(values, source))

    @abstractmethod
    def decode(self, encoded: EncodedReports) -> Messages:
        """The inverse of :meth:`encode`; raises ReportError for messages that no client sends."""

    @abstractmethod
    def count(self, messages: Messages) -> Counters:
        """Messages as counts, laid out as ``tally_layout`` says."""

    def count_reports(self, encoded: EncodedReports) -> Counters:
        """The counts of encoded messages; override it where there is a faster way than decoding them first."""
        return self.count(self.decode(encoded))

    @property
    @abstractmethod
    def words_per_report(self) -> float:
        """Mean number of random words that a report draws."""

    def simulate(self, values: Integers, source: ReproducibleSource) -> Counters:
        """Counts with the distribution that real reports of these values would have."""
        # Compiled loops pay by the work of the whole simulation, which its portions and their blocks do not know.
        kernels.load_if_worthwhile(len(values) * self.words_per_report * _SECONDS_PER_WORD)
        total = Counters.zeros(self.tally_layout.length)
        for part in self._portions(values):
            total += self.sample(part, source)
        return total

    def sample(self, values: Integers, source: WordSource) -> Counters:
        """The counts of :meth:`randomize`'s messages, from the same words; override it where there is a faster way."""
        return self.count(self.randomize(values, source))

    def _portions(self, values: Integers) -> Iterator[Integers]:
        """Pieces whose random words fit in 32 MiB."""
        step = max(1, int(_SIMULATED_WORDS / self.words_per_report))
        for start in range(0, len(values), step):
            yield values[start : start + step]

    @abstractmethod
    def estimate(self, domain: Domain, tally: Tally, *args: Any, **options: Any) -> Estimate:
        """The unbiased histogram. Options depend on the protocol; unknown ones raise TypeError."""

    def discover(self, domain: Domain, tally: Tally, *args: Any, **options: Any) -> Discovery:  # noqa: ARG002 - for open domains
        """The frequent texts of an open domain, found without a list."""
        raise EstimateError(f"this {self.name} plan has a list of values; estimate them all with plan.estimate(tally)")

    def detection(self, domain: Domain, users: int, *args: Any, **options: Any) -> list[Threshold]:  # noqa: ARG002 - for open domains
        """How frequent texts of an open domain must be to be found."""
        raise ParameterError(f"this {self.name} plan has a list of values, so there is nothing to find")

    def linear_estimate(self, domain: Domain, tally: Tally) -> Estimate:
        """The estimate as a fixed linear function of the counts, which analyses of single reports assume; by default
        :meth:`estimate`.
        """
        return self.estimate(domain, tally)

    @abstractmethod
    def expected_mse(self, users: int, histogram: Floats | None = None) -> float:
        """Mean squared error per item about the users' own histogram: the given one, or the flat one, in which all
        values are equally frequent.
        """

    def planned_errors(
        self,
        domain: Domain,  # noqa: ARG002 - for protocols that name parts of it
        users: int,
        wanted: Sequence[Sequence[str]] | None = None,  # noqa: ARG002 - for tables
    ) -> list[PlannedError]:
        """The questions that a plan answers; ``wanted`` names the tables of a plan of tables, by default all views."""
        return [PlannedError(self.error_of, self.expected_mse(users))]

    @abstractmethod
    def worst_mse(self, users: int) -> float:
        """The largest mean squared error per item over all histograms, or an upper bound on it."""

    @property
    @abstractmethod
    def attackability(self) -> float:
        """Success of a Bayes-optimal attacker who sees one report, uniform prior: (1/k)·Σ_y max_x P(y|x).

        See docs/mathematics.md §4.
        """

    def blanket(self) -> Blanket:
        """What a batch of reports hides of one user; by default the bound that holds for every ε-LDP randomiser."""
        return Blanket.of_any(exp(self.epsilon))

    def counts_blanket(self) -> Blanket | BitSums:
        """The same for a reader who sees only the counts of the batch, where they reveal less than its reports."""
        return self.blanket()

    def decoding_cost(self, reports: int) -> DecodingCost | None:  # noqa: ARG002 - for protocols that know
        """The work of turning a tally of ``reports`` reports into frequencies; None if unknown."""
        return None

    @property
    def reading_work(self) -> float | None:
        """Mean operations of reading one report and counting it, in the same unit; None if unknown."""
        return None

    def decoder_rows(self, items: Iterable[int]) -> Iterator[DecoderRow]:  # noqa: ARG002 - for linear decoders
        """How the estimates of some items depend on the reports, one at a time; raises ParameterError if the protocol
        cannot tell.
        """
        raise ParameterError(f"{self.name!r} does not say how its estimates depend on reports: define decoder_rows")

    @abstractmethod
    def support_probabilities(self) -> list[tuple[float, float]]:
        """(p, q) of every block: how often a report supports the true point, and another given one."""


def padded(values: Floats, points: int) -> Floats:
    """Values with zeros after them, one for every point that no value has."""
    return np.pad(values, (0, points - values.size))


def check_options(name: str, function: Callable[..., object], options: Mapping[str, object]) -> None:
    """Raise ParameterError for an option that a protocol's function does not have."""
    known = signature(function).parameters
    takes_others = any(each.kind is Parameter.VAR_KEYWORD for each in known.values())
    unknown = [
        option
        for option in options
        if (known[option].default is Parameter.empty if option in known else not takes_others)
    ]
    if not unknown:
        return
    reason = f"there is no option {unknown[0]!r}"
    if unknown[0] == "table":
        reason = "only plans of tables have tables, those of sunzi plan --tables or sunzi.make_tables"
    raise ParameterError(f"{name} does not accept the options {shown(dict(options))}: {reason}")


def check_users(users: int) -> None:
    """Raise ParameterError unless there is at least one user."""
    if real_number("users", users) < 1:
        raise ParameterError(f"users must be at least 1, got {users}")


def check_histogram(histogram: Floats, domain_size: int) -> Floats:
    """The histogram as an array; ParameterError unless it is a probability vector over the domain."""
    try:
        array = np.asarray(histogram, dtype=np.float64)
    except (ValueError, TypeError):
        array = np.empty(0)
    if array.shape != (domain_size,) or not np.all(array >= 0) or not np.isclose(array.sum(), 1):
        raise ParameterError(f"histogram must be {domain_size} non-negative frequencies that sum to 1")
    return array


def check_reports(tally: Tally) -> None:
    """Raise EstimateError for an empty tally."""
    if tally.reports == 0:
        raise EstimateError("the tally holds no report yet, so there is nothing to estimate")
