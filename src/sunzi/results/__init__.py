"""What a server reads: estimates with their errors, and the questions that they answer, over time too.

Not part of the public API: what users need is exported by ``sunzi``.
"""
