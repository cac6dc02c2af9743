"""The JavaScript client makes the same bytes as the library, on 100,000 new random vectors in every run."""

import random
import secrets
from math import ceil

import javascript
import pytest
import vectors

import sunzi

VECTORS = 100_000
IN_BATCHES = 0.8
BATCH = 50


@pytest.mark.usefixtures("client_directory")
def test_random_vectors():
    seed = secrets.randbits(32)
    generator = random.Random(seed)
    plans = [*vectors.make_plans(generator), *vectors.make_record_plans(generator), *vectors.make_text_plans(generator)]
    assert {plan.protocol.name for plan in plans} == {*sunzi.catalogue(), "ordered", "tables", "number", "prefixes"}
    compare(generator, plans, f"seed {seed}")


@pytest.mark.long
@pytest.mark.usefixtures("client_directory")
def test_random_texts():
    seed = secrets.randbits(32)
    generator = random.Random(seed)
    compare(generator, [plan for _ in range(5) for plan in vectors.make_text_plans(generator)], f"seed {seed}")


def compare(generator, plans, seed):
    """Both clients on as many vectors, divided among the plans."""
    singles = ceil(VECTORS * (1 - IN_BATCHES) / len(plans))
    batches = ceil(VECTORS * IN_BATCHES / len(plans) / BATCH)
    asked, expected = [], []
    for plan in plans:
        cases = list(vectors.single_cases(generator, plan, singles))
        cases += [vectors.batch_case(generator, plan, BATCH) for _ in range(batches)]
        asked.append({"plan": plan.to_json(), "cases": [given for given, _ in cases]})
        expected.append([wanted for _, wanted in cases])
    made = javascript.run_node("report_vectors.mjs", asked)
    assert len(plans) * (singles + batches * BATCH) >= VECTORS
    for question, wanted, got in zip(asked, expected, made, strict=True):
        for (values, words, _), right, answer in zip(question["cases"], wanted, got, strict=True):
            assert answer == right, f"{seed}: {question['plan']} with {values} from {words}"
