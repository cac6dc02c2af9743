"""Small plans about records, as the tests of the analyses use them."""

import sunzi

ATTRIBUTES = {"a": ["x", "y", "z"], "b": ["0", "1", "2", "3"], "c": ["u", "v"]}

RECORD_PLANS = {
    "ordered": lambda epsilon: sunzi.make_ordered(0, 8, 8, epsilon),
    "number": lambda epsilon: sunzi.make_number(-1, 1, epsilon),
    "tables": lambda epsilon: sunzi.make_tables(ATTRIBUTES, [("a", "b"), ("b", "c")], epsilon),
}
"""Plans by the names of their protocols, as functions of ε."""
