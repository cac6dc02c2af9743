"""A small Prio3 (draft-irtf-cfrg-vdaf, XofTurboShake128, Field128): Prio3Histogram and Prio3MultihotCountVec.

For tests only: plain Python integers, neither fast nor constant-time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MODULUS = (1 << 66) * 4611686018427387897 + 1
ROOT, ROOT_ORDER = pow(7, 4611686018427387897, MODULUS), 1 << 66
SEED_BYTES, ELEMENT_BYTES, NONCE_BYTES = 32, 16, 16
VERSION = 12
MEAS_SHARE, PROOF_SHARE, JOINT_RANDOMNESS, PROVE_RANDOMNESS, QUERY_RANDOMNESS, JOINT_SEED, JOINT_PART = range(1, 8)
ONE_PROOF = b"\1"

_LANES = (1 << 64) - 1
_RATE = 168


def _round_constants() -> list[int]:
    """The constants of Keccak's 24 rounds, from its linear feedback shift register."""
    state, constants = 1, []
    for _ in range(24):
        constant = 0
        for place in range(7):
            constant |= (state & 1) << ((1 << place) - 1)
            state = (state << 1) ^ (0x171 if state & 0x80 else 0)
        constants.append(constant)
    return constants


_CONSTANTS = _round_constants()


def _rotated(lane: int, places: int) -> int:
    return (lane << places | lane >> (64 - places)) & _LANES


def _permute(lanes: list[int]) -> None:
    """The last 12 rounds of Keccak-f[1600]; lane (x, y) is at x + 5y."""
    for constant in _CONSTANTS[12:]:
        columns = [lanes[x] ^ lanes[x + 5] ^ lanes[x + 10] ^ lanes[x + 15] ^ lanes[x + 20] for x in range(5)]
        for x in range(5):
            effect = columns[x - 1] ^ _rotated(columns[(x + 1) % 5], 1)
            for y in range(0, 25, 5):
                lanes[x + y] ^= effect
        x, y, current = 1, 0, lanes[1]
        for step in range(24):
            x, y = y, (2 * x + 3 * y) % 5
            current, lanes[x + 5 * y] = lanes[x + 5 * y], _rotated(current, (step + 1) * (step + 2) // 2 % 64)
        for y in range(0, 25, 5):
            row = lanes[y : y + 5]
            for x in range(5):
                lanes[x + y] = row[x] ^ (~row[(x + 1) % 5] & row[(x + 2) % 5])
        lanes[0] ^= constant


def turbo_shake(message: bytes, length: int, domain: int = 1) -> bytes:
    """TurboSHAKE128 (RFC 9861)."""
    padded = bytearray(message + bytes([domain]))
    padded += bytes(-len(padded) % _RATE)
    padded[-1] ^= 0x80
    lanes = [0] * 25
    for start in range(0, len(padded), _RATE):
        for index in range(_RATE // 8):
            lanes[index] ^= int.from_bytes(padded[start + 8 * index : start + 8 * index + 8], "little")
        _permute(lanes)
    found = b""
    while len(found) < length:
        found += b"".join(lane.to_bytes(8, "little") for lane in lanes[: _RATE // 8])
        _permute(lanes)
    return found[:length]


def encode_vector(vector: Sequence[int]) -> bytes:
    """Field elements, little-endian."""
    return b"".join(element.to_bytes(ELEMENT_BYTES, "little") for element in vector)


def _inverse(element: int) -> int:
    return pow(element, -1, MODULUS)


def _powers(order: int) -> list[int]:
    """All powers of the principal root of unity of this order."""
    root = pow(ROOT, ROOT_ORDER // order, MODULUS)
    found = [1]
    for _ in range(order - 1):
        found.append(found[-1] * root % MODULUS)
    return found


def evaluate(values: Sequence[int], point: int) -> int:
    """A polynomial at a point that is no root of unity, from its values at all roots of unity of their number."""
    number = len(values)
    terms = (value * root * _inverse(point - root) for value, root in zip(values, _powers(number), strict=True))
    return (pow(point, number, MODULUS) - 1) * _inverse(number) * sum(terms) % MODULUS


def doubled(values: Sequence[int]) -> list[int]:
    """The values of the same polynomial at twice as many roots of unity: the old ones are every second."""
    roots = _powers(2 * len(values))
    return [values[index // 2] if index % 2 == 0 else evaluate(values, root) for index, root in enumerate(roots)]


@dataclass(frozen=True)
class Circuit:
    """A vector of bits, exactly one of them 1 (``max_weight`` None) or at most ``max_weight``, checked in chunks."""

    length: int
    chunk_length: int
    max_weight: int | None = None

    @property
    def identifier(self) -> int:
        """The VDAF's number."""
        return 4 if self.max_weight is None else 5

    @property
    def entries(self) -> int:
        """The length of an encoded measurement."""
        return self.length + (0 if self.max_weight is None else self.max_weight.bit_length())

    @property
    def calls(self) -> int:
        """How many chunks there are."""
        return -(-self.entries // self.chunk_length)

    @property
    def wire_length(self) -> int:
        """P: the calls and a random value, padded to a power of 2."""
        return 1 << self.calls.bit_length()

    @property
    def arity(self) -> int:
        """Two wires per entry of a chunk."""
        return 2 * self.chunk_length

    @property
    def proof_length(self) -> int:
        """Wire seeds, and the values that determine the gadget polynomial."""
        return self.arity + 2 * self.wire_length - 1

    @property
    def offset(self) -> int:
        """What is added to the weight, so that the largest one has all bits set."""
        assert self.max_weight is not None
        return (1 << self.max_weight.bit_length()) - 1 - self.max_weight

    def encode(self, bits: Sequence[int]) -> list[int]:
        """The bits, and their number in bits."""
        found = [int(bit) for bit in bits]
        if self.max_weight is None:
            return found
        weight = sum(found) + self.offset
        return found + [weight >> place & 1 for place in range(self.max_weight.bit_length())]

    def wires(self, entries: Sequence[int], joint: Sequence[int], shares: int) -> list[list[int]]:
        """The inputs of every call: r^(j+1)·m and m − 1/shares for the j-th entry m of its chunk."""
        constant, found = _inverse(shares), []
        padded = [*entries, *[0] * (self.calls * self.chunk_length - self.entries)]
        for call, challenge in enumerate(joint):
            inputs, power = [], challenge
            for entry in padded[call * self.chunk_length : (call + 1) * self.chunk_length]:
                inputs += [power * entry % MODULUS, (entry - constant) % MODULUS]
                power = power * challenge % MODULUS
            found.append(inputs)
        return found

    def weight_check(self, entries: Sequence[int], shares: int) -> int:
        """0 if the number of 1s is the claimed one."""
        total = sum(entries[: self.length])
        if self.max_weight is None:
            return total - _inverse(shares)
        claimed = sum(bit << place for place, bit in enumerate(entries[self.length :]))
        return total + self.offset * _inverse(shares) - claimed

    def prove(self, entries: Sequence[int], randomness: Sequence[int], joint: Sequence[int]) -> list[int]:
        """Wire seeds, and all but the last value of the gadget polynomial at the 2P-th roots of unity."""
        calls = self.wires(entries, joint, 1)
        padding = [0] * (self.wire_length - 1 - self.calls)
        wires = [doubled([seed, *(call[index] for call in calls), *padding]) for index, seed in enumerate(randomness)]
        return [*randomness, *(gadget(values) for values in zip(*wires, strict=True))][:-1]

    def query(
        self, entries: Sequence[int], proof: Sequence[int], randomness: Sequence[int], joint: Sequence[int], shares: int
    ) -> list[int]:
        """One aggregator's share of the verifier."""
        seeds, values = proof[: self.arity], list(proof[self.arity :])
        # The polynomial has degree below 2P − 1, so its coefficient of x^(2P−1) is 0, which gives the last value.
        roots = _powers(2 * self.wire_length)
        values.append(-roots[1] * sum(value * root for value, root in zip(values, roots, strict=False)) % MODULUS)
        calls = self.wires(entries, joint, shares)
        outputs = sum(values[2 * call] for call in range(1, self.calls + 1)), self.weight_check(entries, shares)
        *weights, point = randomness
        padding = [0] * (self.wire_length - 1 - self.calls)
        wires = [[seed, *(call[index] for call in calls), *padding] for index, seed in enumerate(seeds)]
        reduced = sum(weight * output for weight, output in zip(weights, outputs, strict=True)) % MODULUS
        return [reduced, *(evaluate(wire, point) for wire in wires), evaluate(values, point)]

    def decide(self, verifier: Sequence[int]) -> bool:
        """Whether the sum of all shares of the verifier shows a valid measurement."""
        reduced, *wires, output = verifier
        return reduced == 0 and gadget(wires) == output


def gadget(inputs: Sequence[int]) -> int:
    """The sum of the products of pairs."""
    return sum(left * right for left, right in zip(inputs[::2], inputs[1::2], strict=True)) % MODULUS


def _sum(vectors: Sequence[Sequence[int]]) -> list[int]:
    return [sum(elements) % MODULUS for elements in zip(*vectors, strict=True)]


def _difference(left: Sequence[int], right: Sequence[int]) -> list[int]:
    return [(a - b) % MODULUS for a, b in zip(left, right, strict=True)]


@dataclass(frozen=True)
class Prio3:
    """Shard, verify, aggregate, unshard, between ``shares`` aggregators."""

    circuit: Circuit
    context: bytes
    shares: int = 2

    def _seed(self, seed: bytes, usage: int, binder: bytes, length: int = SEED_BYTES) -> bytes:
        tag = bytes([VERSION, 0]) + self.circuit.identifier.to_bytes(4, "big") + usage.to_bytes(2, "big") + self.context
        return turbo_shake(len(tag).to_bytes(2, "little") + tag + bytes([len(seed)]) + seed + binder, length)

    def _vector(self, seed: bytes, usage: int, binder: bytes, length: int) -> list[int]:
        """Field elements, by rejection; a word is rejected with probability 2^-62, so one spare suffices."""
        words = self._seed(seed, usage, binder, (length + 1) * ELEMENT_BYTES)
        drawn = [int.from_bytes(words[at : at + ELEMENT_BYTES], "little") for at in range(0, len(words), ELEMENT_BYTES)]
        return [element for element in drawn if element < MODULUS][:length]

    def _joint_part(self, aggregator: int, blind: bytes, share: Sequence[int], nonce: bytes) -> bytes:
        return self._seed(blind, JOINT_PART, bytes([aggregator]) + nonce + encode_vector(share))

    def _joint_randomness(self, seed: bytes) -> list[int]:
        return self._vector(seed, JOINT_RANDOMNESS, ONE_PROOF, self.circuit.calls)

    def joint_seed(self, parts: Sequence[bytes]) -> bytes:
        """The seed of the joint randomness, from all aggregators' parts."""
        return self._seed(bytes(SEED_BYTES), JOINT_SEED, b"".join(parts))

    def _helper_share(self, aggregator: int, seed: bytes) -> tuple[list[int], list[int]]:
        entries = self._vector(seed, MEAS_SHARE, bytes([aggregator]), self.circuit.entries)
        return entries, self._vector(seed, PROOF_SHARE, ONE_PROOF + bytes([aggregator]), self.circuit.proof_length)

    def shard(self, bits: Sequence[int], nonce: bytes, randomness: bytes) -> tuple[list[bytes], list[bytes]]:
        """The public share, in parts, and the input share of every aggregator, leader first."""
        seeds = [randomness[at : at + SEED_BYTES] for at in range(0, len(randomness), SEED_BYTES)]
        *pairs, leader_blind, prover = seeds
        entries = self.circuit.encode(bits)
        helpers = [(number, pairs[2 * number - 2], pairs[2 * number - 1]) for number in range(1, self.shares)]
        leader = entries
        for number, seed, _ in helpers:
            leader = _difference(leader, self._helper_share(number, seed)[0])
        parts = [self._joint_part(0, leader_blind, leader, nonce)]
        parts += [
            self._joint_part(number, blind, self._helper_share(number, seed)[0], nonce)
            for number, seed, blind in helpers
        ]
        proof = self.circuit.prove(
            entries,
            self._vector(prover, PROVE_RANDOMNESS, ONE_PROOF, self.circuit.arity),
            self._joint_randomness(self.joint_seed(parts)),
        )
        for number, seed, _ in helpers:
            proof = _difference(proof, self._helper_share(number, seed)[1])
        return parts, [
            encode_vector(leader) + encode_vector(proof) + leader_blind,
            *(seed + blind for _, seed, blind in helpers),
        ]

    def verify_share(
        self, key: bytes, aggregator: int, nonce: bytes, parts: Sequence[bytes], share: bytes
    ) -> tuple[list[int], list[int], bytes]:
        """One aggregator's output share, its share of the verifier, and its part of the joint randomness."""
        entries, proof = self._opened(aggregator, share)
        part = self._joint_part(aggregator, share[-SEED_BYTES:], entries, nonce)
        corrected = [part if number == aggregator else given for number, given in enumerate(parts)]
        verifier = self.circuit.query(
            entries,
            proof,
            self._vector(key, QUERY_RANDOMNESS, ONE_PROOF + nonce, 3),
            self._joint_randomness(self.joint_seed(corrected)),
            self.shares,
        )
        return entries[: self.circuit.length], verifier, part

    def _opened(self, aggregator: int, share: bytes) -> tuple[list[int], list[int]]:
        if aggregator:
            return self._helper_share(aggregator, share[:SEED_BYTES])
        body = share[:-SEED_BYTES]
        elements = [
            int.from_bytes(body[at : at + ELEMENT_BYTES], "little") for at in range(0, len(body), ELEMENT_BYTES)
        ]
        return elements[: self.circuit.entries], elements[self.circuit.entries :]

    def verify(self, key: bytes, nonce: bytes, parts: Sequence[bytes], shares: Sequence[bytes]) -> list[list[int]]:
        """The output shares of one report; ValueError if it is invalid."""
        made = [self.verify_share(key, number, nonce, parts, share) for number, share in enumerate(shares)]
        if not self.circuit.decide(_sum([verifier for _, verifier, _ in made])):
            raise ValueError("the proof is wrong")
        if list(parts) != [part for _, _, part in made]:
            raise ValueError("the joint randomness is wrong")
        return [output for output, _, _ in made]

    def unshard(self, outputs: Sequence[Sequence[Sequence[int]]]) -> list[int]:
        """The sum of all reports, from the output shares of each."""
        return _sum([_sum(of_one_aggregator) for of_one_aggregator in zip(*outputs, strict=True)])
