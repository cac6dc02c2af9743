"""Memoised reports are the same bytes in Python and JavaScript, so that a device can change its language."""

import random
import secrets

import javascript
import pytest
import vectors

import sunzi
from sunzi.client.device.memoising import MemoisingClient

ATTRIBUTES = ["browser", "Sprache", "年齢", "a\0b", " "]


@pytest.mark.usefixtures("client_directory")
def test_memoised_reports_are_the_same():
    seed = secrets.randbits(32)
    generator = random.Random(seed)
    labelled = sunzi.make_plan("mss-compact", domain=["Firefox", "Chrome", "", "é", "😀", "other"], epsilon=1)
    texts = vectors.make_text_plans(generator)
    asked, expected = [], []
    for plan in [*vectors.make_plans(generator), *vectors.make_record_plans(generator), *texts, labelled]:
        key, attribute = generator.randbytes(32), generator.choice(ATTRIBUTES)
        client = MemoisingClient(plan, key, attribute, max_epsilon=32)
        known = plan.domain.labels
        values = [generator.choice(known) if known else vectors.random_value(generator, plan.domain) for _ in range(25)]
        values.append(None)
        asked.append({"plan": plan.to_json(), "key": key.hex(), "attribute": attribute, "values": values})
        indices = [None if value is None else plan.domain.index(value) for value in values]
        expected.append([client.report_index(index).hex() for index in indices])
    assert javascript.run_node("memoise.mjs", asked) == expected, f"seed {seed}"
