"""How results are shown: pictures, and web pages that need no server.

Not part of the public API: what users need is exported by ``sunzi``.
"""
