"""What a bounded mapping keeps and drops."""

import random

from sunzi.collector.recently_used import RecentlyUsed


def test_what_was_not_used_for_the_longest_time_is_dropped_first():
    kept = RecentlyUsed(3)
    for key in "abc":
        kept[key] = key.upper()
    assert (kept["a"], kept.get("b"), kept.get("z")) == ("A", "B", None)
    assert "c" in kept  # asking is not using
    kept["d"] = "D"
    assert (list(kept), kept.values()) == (["a", "b", "d"], ["A", "B", "D"])


def test_sizes_add_up_to_at_most_the_limit_unless_one_value_alone_is_larger():
    chance, kept, expected = random.Random(1), RecentlyUsed(20, len), {}
    for _ in range(3000):
        key = chance.randrange(30)
        if chance.random() < 0.2 and key in kept:
            del kept[key], expected[key]
            continue
        expected.pop(key, None)
        kept[key] = expected[key] = "x" * chance.randrange(25)
        while len(expected) > 1 and sum(map(len, expected.values())) > 20:
            del expected[next(iter(expected))]
        assert (list(kept), kept.values()) == (list(expected), list(expected.values()))
