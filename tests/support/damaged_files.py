"""Damaged copies of a file."""


def damaged(data: bytes) -> dict[str, bytes]:
    return {
        "cut": data[: len(data) // 2],
        "cut at the end": data[:-1],
        "altered": data[:60] + bytes([data[60] ^ 1]) + data[61:],
        "longer": data + b"x",
        "empty": b"",
        "other": b"id,browser\n1,Chrome\n" * 10,
    }
