"""The protocols: how a value, by its index, becomes a selector and a payload."""
