"""Random vectors for another client: plans of all protocols, values, and words that are often at edges."""

from fractions import Fraction

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


def words_needed(plan):
    """The largest number of words of one report without rejections."""
    if not hasattr(plan.protocol, "moduli"):
        return int(plan.protocol.words_per_report)
    return 1 + max(int(response.words_per_report) for response in plan.protocol.responses)


def edges(plan):
    """Words at which the result changes: thresholds, steps of uniform integers, and limits of rejection."""
    parameters = plan.contract.to_json()["parameters"]
    responses = parameters.get("responses", [parameters["response"]] if "response" in parameters else [parameters])
    found = {0, 1, 2, WORDS - 1}
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
        words, value = random_words(random, needed, special), random.randrange(plan.domain.size)
        source = ScriptedSource(words)
        report = plan.client(source=source).report_index(value)
        yield [value, hexadecimal(words), False], [report.hex(), needed - source.remaining]


def batch_case(random, plan, size):
    """The same for one batch."""
    values = [random.randrange(plan.domain.size) for _ in range(size)]
    needed = (size + 4) * words_needed(plan) + 8 * size + _SPARE
    words = random_words(random, needed, edges(plan))
    source = ScriptedSource(words)
    batch = plan.client(source=source).report_batch(values)
    return [values, hexadecimal(words), True], [batch.hex(), needed - source.remaining]
