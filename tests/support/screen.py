"""A text stream that can pose as a terminal."""

import io


class Screen(io.TextIOWrapper):
    """Keeps all output; ``isatty`` returns ``is_terminal``."""

    def __init__(self, encoding="utf-8", is_terminal=True):
        super().__init__(io.BytesIO(), encoding=encoding, newline="")
        self.is_terminal = is_terminal

    def isatty(self):
        return self.is_terminal

    def text(self):
        self.flush()
        return self.buffer.getvalue().decode(self.encoding)
