"""A server that answers with any bytes, and complete answers for it to give."""

import socket
import threading
from contextlib import contextmanager


@contextmanager
def hostile(*pieces):
    """A server that sends these bytes to every client, whatever it asks; yields its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    is_over = threading.Event()

    def answer(connection):
        with connection:
            try:
                connection.recv(1 << 16)
                for piece in pieces if len(pieces) > 1 else pieces[0]:
                    connection.sendall(piece)
                    if is_over.is_set():
                        return
            except OSError:
                pass

    def accept():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        is_over.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(30)


def response(body, *headers, status="200 OK"):
    """The bytes of an answer."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body
