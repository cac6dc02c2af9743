"""A client of the minimal profile, written from docs/format.md alone, with nothing but the standard library.

It shows how small a client can be: one protocol family, two designs, labels in the plan, memoised noise and ids.
"""

import hashlib
import hmac
import ipaddress
import json
import re
from fractions import Fraction
from urllib.parse import urlsplit


class RefusedError(ValueError):
    pass


class PlanError(RefusedError):
    pass


class PrivacyError(PlanError):
    pass


class DomainError(RefusedError):
    pass


class ParameterError(RefusedError):
    pass


def require(condition, error=PlanError):
    if not condition:
        raise error


# --- the plan: sections 2, 3, 6.1, 6.4 and 11 -------------------------------------------------------------------------


def parse_json(data):
    def once(pairs):
        require(len(dict(pairs)) == len(pairs))
        return dict(pairs)

    def refuse(_):
        raise PlanError

    try:
        text = data.decode("utf-8")
        value = json.loads(text, object_pairs_hook=once, parse_float=refuse, parse_constant=refuse)
        check_values(value)
    except PlanError:
        raise
    except (ValueError, RecursionError):
        raise PlanError from None
    return value


def check_values(value):
    if isinstance(value, dict):
        for item in [*value, *value.values()]:
            check_values(item)
    elif isinstance(value, list):
        for item in value:
            check_values(item)
    elif isinstance(value, str):
        value.encode("utf-8")
    else:
        require(value is not None and abs(value) < 2**53)


def keys(value, required, optional=()):
    require(isinstance(value, dict) and set(required) <= set(value) <= {*required, *optional})
    return [value.get(key) for key in (*required, *optional)]


def integer(value, low, high):
    require(type(value) is int and low <= value <= high)
    return value


def parse_epsilon(text):
    require(isinstance(text, str) and re.fullmatch("[1-9][0-9]{0,18}(/[1-9][0-9]{0,18})?", text))
    epsilon = Fraction(text)
    require(str(epsilon) == text and epsilon <= 32 and max(epsilon.as_integer_ratio()) <= 10**18)
    return epsilon


def exponential_below(epsilon):
    term, total, index = 2**96, 0, 0
    while term:
        total, index = total + term, index + 1
        term = term * epsilon.numerator // (epsilon.denominator * index)
    return total


def prime_factors(number):
    found, divisor = [], 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            found.append(divisor)
            number //= divisor
        divisor += 1
    return found + [number] * (number > 1)


class Plan:
    def __init__(self, data, max_epsilon=None, pinned=None):
        value = parse_json(data)
        names = ("format", "version", "protocol", "epsilon", "domain", "parameters")
        form, version, protocol, epsilon, domain, parameters, lifetime = keys(value, names, ["lifetime"])
        require(form == "sunzi-plan" and type(version) is int and version == 1)
        require(protocol in ("grr", "ss-compact") if isinstance(protocol, str) else False)
        self.epsilon = parse_epsilon(epsilon)
        require(lifetime is None or parse_epsilon(lifetime) >= self.epsilon)
        self.size, self.labels, self.other = keys(domain, ["size"], ["labels", "other"])
        self.check_domain()
        (response,) = keys(parameters, ["response"])
        require(isinstance(response, dict))
        compact = response.get("design") == "cyclotomic" and protocol == "ss-compact"
        require(compact or response.get("design") == "singletons")
        (self.read_cyclotomic if compact else self.read_singletons)(response)
        require(self.points >= self.size)
        self.check_threshold(response["threshold"])
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
        self.digest = hashlib.sha256(text.encode()).digest()
        require(max_epsilon is None or self.epsilon <= Fraction(max_epsilon), PrivacyError)
        require(pinned is None or self.digest.hex() == pinned, PrivacyError)

    def check_domain(self):
        integer(self.size, 2, 2**30)
        labels = self.labels
        if labels is None:
            require(self.other is None)
            return
        require(isinstance(labels, list) and all(isinstance(label, str) for label in labels))
        require(len(set(labels)) == len(labels) == self.size)
        require(self.other is None or (isinstance(self.other, str) and self.other in labels))

    def read_singletons(self, response):
        _, points, _ = keys(response, ["design", "points", "threshold"])
        self.points, self.block_size = integer(points, 2, 2**31), 1
        self.bounds, self.limit, self.payload = [self.points - 1], self.points, self.singleton

    def read_cyclotomic(self, response):
        names = ("design", "threshold", "points", "classes", "generator", "union", "with_zero", "block_size")
        _, _, m, e, g, union, with_zero, size = keys(response, names)
        require(prime_factors(integer(m, 2, 2**26)) == [m])
        require((m - 1) % integer(e, 1, m) == 0)
        require(all(pow(integer(g, 1, m - 1), (m - 1) // factor, m) != 1 for factor in set(prime_factors(m - 1))))
        require(isinstance(union, list) and union and isinstance(with_zero, bool))
        require(len({integer(index, 0, e - 1) for index in union}) == len(union))
        require(integer(size, 1, m - 1) == len(union) * ((m - 1) // e) + with_zero)
        self.points, self.classes, self.generator, self.with_zero = m, e, g, with_zero
        self.order = [*union, *sorted(set(range(e)) - set(union))]
        self.block_size, self.zero_place = size, (size if with_zero else m) - 1
        self.bounds, self.limit, self.payload = [e, size, m - size], e * m, self.cyclotomic

    def check_threshold(self, text):
        require(isinstance(text, str) and re.fullmatch("0|[1-9][0-9]*", text) and len(text) <= 40)
        v, weight = self.points, self.block_size * exponential_below(self.epsilon)
        self.threshold = weight * 2**64 // (weight + (v - self.block_size) * 2**96)
        require(int(text) == self.threshold, PrivacyError)
        require(self.threshold * v > self.block_size * 2**64, PrivacyError)

    # --- a report: sections 2.3, 4 to 8 -------------------------------------------------------------------------------

    def index(self, value):
        if self.labels is None:
            require(type(value) is int and 0 <= value < self.size, DomainError)
            return value
        known = value in self.labels if isinstance(value, str) else False
        if not known and self.other is not None and (value is None or isinstance(value, str)):
            value, known = self.other, True
        require(known, DomainError)
        return self.labels.index(value)

    def report(self, index, take):
        truth, *words = [take() for _ in range(1 + len(self.bounds))]
        payload = self.payload(index, truth < self.threshold, uniform_integers(words, self.bounds, take))
        return payload.to_bytes(((self.limit - 1).bit_length() + 7) // 8, "little")

    def singleton(self, x, truth, variates):
        return x if truth else variates[0] + (variates[0] >= x)

    def cyclotomic(self, x, truth, variates):
        a, inside, outside = variates
        place, point = inside if truth else self.block_size + outside, 0
        if place != self.zero_place:
            which, within = divmod(place - (place > self.zero_place), (self.points - 1) // self.classes)
            point = pow(self.generator, a + self.order[which] + self.classes * within, self.points)
        return a * self.points + (x - point) % self.points


def uniform_integers(words, bounds, take):
    products = [word * bound for word, bound in zip(words, bounds, strict=True)]
    while True:
        rejected = [place for place, s in enumerate(bounds) if products[place] % 2**64 < 2**64 % s]
        if not rejected:
            return [product // 2**64 for product in products]
        for place in rejected:
            products[place] = take() * bounds[place]


# --- a device: section 12 ---------------------------------------------------------------------------------------------


def encoded(text):
    return len(text.encode()).to_bytes(4, "little") + text.encode()


def derived_words(seed):
    block = 0
    while True:
        digest = hmac.digest(seed, block.to_bytes(8, "little"), "sha256")
        yield from (int.from_bytes(digest[place : place + 8], "little") for place in range(0, 32, 8))
        block += 1


class Device:
    def __init__(self, plan, key, attribute):
        self.plan, self.key, self.attribute = plan, key, attribute

    def seed(self, value):
        """The seed of a report, and the index of the value; None if it is outside the domain."""
        try:
            index = self.plan.index(value)
            text = encoded(str(index) if self.plan.labels is None else self.plan.labels[index])
        except DomainError:
            index, text = None, b"\xff\xff\xff\xff"
        purpose = b"sunzi memoised report, version 1\0"
        message = purpose + self.plan.digest + encoded(self.attribute) + text
        return hmac.digest(self.key, message, "sha256"), index

    def report(self, value):
        seed, index = self.seed(value)
        take = derived_words(seed).__next__
        if index is None:
            (index,) = uniform_integers([take()], [self.plan.size], take)
        return self.plan.report(index, take)

    def report_id(self, epoch):
        message = b"sunzi report id, version 1\0" + encoded(self.attribute) + encoded(canonical_epoch(epoch))
        return hmac.digest(self.key, message, "sha256")[:16]


def canonical_epoch(text):
    try:
        parts = urlsplit(text)
        host, port = (parts.hostname or "").removesuffix("."), parts.port
        host = f"[{ipaddress.IPv6Address(host)}]" if ":" in host else host.encode("idna").decode().lower()
        if re.fullmatch("(.*[.])?[0-9][0-9a-fx]*", host):
            host = str(ipaddress.IPv4Address(host))
    except ValueError:
        raise ParameterError from None
    require(parts.scheme in ("http", "https") and port != 0 and "?" not in text and "#" not in text, ParameterError)
    require(re.fullmatch(r"[a-z0-9_.-]*[a-z0-9_-]|\[.*\]", host), ParameterError)
    steps = [step for step in parts.path.split("/") if step]
    for step in steps:
        require(re.fullmatch("[A-Za-z0-9._~!$&'()*+,;=:@%-]+", step), ParameterError)
        require(step.lower().replace("%2e", ".") not in (".", ".."), ParameterError)
    path = "".join(f"/{step}" for step in steps)
    known = re.search("/v1/collections/[a-z0-9][a-z0-9_-]{0,63}/epochs/[1-9][0-9]{0,9}$", path)
    require(known, ParameterError)
    default = {"http": 80, "https": 443}[parts.scheme]
    return f"{parts.scheme}://{host}{'' if port in (None, default) else f':{port}'}{path}"


def upload_body(identity, token, report):
    return " ".join([identity.hex(), *([token.hex()] if token else [])]).encode() + b"\n" + report
