"""Random vectors for another client: plans of all protocols, values, and words that are often at edges."""

from fractions import Fraction
from math import nextafter

import sunzi
from sunzi.numerics.randomness import ScriptedSource

WORDS = 1 << 64
_SPARE = 64


def make_plans(random):
    """Plans of every protocol in many sizes; those with subsets are small, because their reports are the slowest."""
    plans = []
    for protocol in sunzi.catalogue():
        largest = {"ss": 90, "mss": 120, "rappor": 70, "oue": 70}.get(protocol, 3000)
        for _ in range(5):
            size = random.choice([2, 3, 5, random.randint(4, 40), random.randint(20, largest)])
            plans.append(sunzi.make_plan(protocol, size, Fraction(random.randint(1, 400), 100)))
    return plans


def make_record_plans(random):
    """Plans of ordered values, numbers and tables, with awkward ranges and with more records than 2^32."""
    plans = []
    for _ in range(3):
        low = round(random.uniform(-1000, 1000), random.randrange(6))
        high = round(low + random.choice([1, 1e-3, 1e6]) * random.uniform(1, 10), 5)
        epsilon, clamp = Fraction(random.randint(20, 400), 100), random.random() < 0.5
        plans.append(sunzi.make_ordered(low, high, 1 << random.randint(1, 11), epsilon, clamp=clamp))
        plans.append(sunzi.make_number(low, high, epsilon, clamp=clamp))
        sizes = {f"attribute {place}": random.randint(2, 25) for place in range(random.choice([2, 5, 10]))}
        attributes = {name: sunzi.Domain(size) for name, size in sizes.items()}
        attributes["kind"] = sunzi.Domain(["a", "b", "?"], other="?")
        attributes["time"] = sunzi.OrderedDomain(low, high, 7, clamp=clamp)
        names = list(attributes)
        wanted = [tuple(random.sample(names, random.randint(1, 2))), *((name,) for name in names)]
        plans.append(sunzi.make_tables(attributes, list(dict.fromkeys(wanted)), epsilon))
    return plans


def make_text_plans(random):
    """Plans of texts as letters, as bytes and as tokens of up to several characters of any plane."""
    alphabets = ["letters", "bytes", [chr(random.randrange(33, 1000)) for _ in range(5)]]
    alphabets += [[random_text(random, random.choice([1, 2, 6])) for _ in range(size)] for size in (3, 12, 300)]
    plans = []
    for alphabet in alphabets:
        tokens = alphabet if isinstance(alphabet, str) else list(dict.fromkeys(alphabet))
        domain = sunzi.OpenDomain(tokens, random.choice([1, 2, 7, 30]))
        epsilon = Fraction(random.randint(20, 400), 100)
        options = {"cells": max(1000, 4 * domain.end) + random.randint(0, 900), "list_only": random.random() < 0.3}
        plans.append(sunzi.make_plan("prefixes", domain, epsilon, **options))
    return plans


def random_text(random, length):
    """Characters of every length in UTF-8, without lone surrogates."""
    ranges = [(1, 127), (128, 2047), (2048, 0xD7FF), (0xE000, 0xFFFF), (0x10000, 0x10FFFF)]
    return "".join(chr(random.randint(*random.choice(ranges))) for _ in range(random.randint(1, length)))


def any_text(random, domain):
    """A text of tokens, other characters and surrogates, often about as long as the plan tells apart."""
    count = random.choice([0, 1, random.randint(0, domain.longest), domain.longest, domain.longest + 2])
    odd = [random_text(random, 2), chr(random.randint(0xD800, 0xDFFF))]
    return "".join(random.choice([random.choice(domain.symbols)] * 6 + odd) for _ in range(count))


def random_value(random, domain):
    """A value as JSON, often at the edge of a bin."""
    if domain.is_open:
        return any_text(random, domain)
    if isinstance(domain, sunzi.RecordDomain):
        record = {name: random_value(random, part) for name, part in domain.attributes.items()}
        return {name: value for name, value in record.items() if value is not None}
    if isinstance(domain, sunzi.OrderedDomain):
        edge = domain.low + domain.width * random.randint(0, domain.size)
        value = random.choice(
            [edge, nextafter(edge, 2e9), nextafter(edge, -2e9), random.uniform(domain.low, domain.high)]
        )
        return value if domain.clamp else min(max(value, domain.low), domain.high)
    if domain.labels is not None:
        return random.choice([*domain.labels, None, "unheard of"])
    return random.randrange(domain.size)


def words_needed(plan):
    """The largest number of words of one report without rejections."""
    if plan.protocol.first_word is None:
        return int(plan.protocol.words_per_report)
    return 1 + max(int(response.words_per_report) for response in plan.protocol.responses)


def edges(plan):
    """Words at which the result changes: thresholds, steps of uniform integers, and limits of rejection."""
    parameters = plan.to_json()["parameters"]
    views = parameters.get("views", [])
    responses = (
        [view["response"] for view in views] or parameters.get("responses") or [parameters.get("response", parameters)]
    )
    found = {0, 1, 2, WORDS - 1}
    share = 0
    for view in views:
        share += view["share"]
        found |= {(share << 32) - 1, share << 32}
    for response in responses:
        found |= {int(value) + near for key, value in response.items() if "threshold" in key for near in (-1, 0, 1)}
        found |= {WORDS // bound * step for bound in (2, 3, response.get("points", 7)) for step in (1, 2)}
    return sorted(word for word in found if 0 <= word < WORDS)


def random_words(random, count, special):
    """Random words; about one in eight is an edge."""
    return [random.choice(special) if random.random() < 0.12 else random.getrandbits(64) for _ in range(count)]


def hexadecimal(words):
    return "".join(f"{word:016x}" for word in words)


def single_cases(random, plan, count):
    """([value, words, False], [report, words used]) for single reports."""
    special, needed = edges(plan), words_needed(plan) + _SPARE
    for _ in range(count):
        words, value = random_words(random, needed, special), random_value(random, plan.domain)
        source = ScriptedSource(words)
        report = plan.client(source=source).report(value)
        yield [value, hexadecimal(words), False], [report.hex(), needed - source.remaining]


def batch_case(random, plan, size):
    """The same for one batch."""
    values = [random_value(random, plan.domain) for _ in range(size)]
    needed = (size + 4) * words_needed(plan) + 8 * size + _SPARE
    words = random_words(random, needed, edges(plan))
    source = ScriptedSource(words)
    batch = plan.client(source=source).report_batch(values)
    return [values, hexadecimal(words), True], [batch.hex(), needed - source.remaining]
