"""Time a peer's client in the peers' environment: read a number of users per line, print the seconds they took.

Usage: peer_client.py DOMAIN_SIZE EPSILON. The first call compiles code, so it is made before any timing.
"""

from __future__ import annotations

import sys
from time import process_time

from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Client


def main() -> None:
    """Serve until the input ends."""
    domain_size, epsilon = int(sys.argv[1]), float(sys.argv[2])
    SS_Client(0, domain_size, epsilon)
    for line in sys.stdin:
        users = int(line)
        start = process_time()
        for user in range(users):
            SS_Client(user % domain_size, domain_size, epsilon)
        print(process_time() - start, flush=True)


if __name__ == "__main__":
    main()
