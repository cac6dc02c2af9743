"""What a value can be: one of some labels, a number in a range, a record, or any text.

Not part of the public API: what users need is exported by ``sunzi``.
"""
