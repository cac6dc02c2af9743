"""A real service on loopback, in a thread of the test process, and requests to it."""

import http.client
import json
import secrets
from contextlib import contextmanager
from urllib.parse import urlsplit

from sunzi.collector import Settings, serve


class Answer:
    """The response to a request."""

    def __init__(self, response, body):
        self.status, self.headers, self.body = response.status, response.headers, body

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"Answer({self.status}, {self.body[:200]!r})"


class Running:
    """A running service; every request uses its own connection."""

    def __init__(self, address, collector):
        self.address, self.collector = address, collector
        self.host, self.port = urlsplit(address).hostname, urlsplit(address).port

    def request(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=30)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return Answer(response, response.read())
        finally:
            connection.close()

    def get(self, path, **headers):
        return self.request("GET", path, None, headers)

    def post(self, path, body=b"", headers=None):
        return self.request("POST", path, body, headers)

    def post_json(self, path, value, headers=None):
        return self.request("POST", path, json.dumps(value), {"Content-Type": "application/json", **(headers or {})})

    def send_batch(self, body, identity=None, epoch=1, collection="default", token=None, headers=None, groups=None):
        path = f"/v1/collections/{collection}/epochs/{epoch}/batches"
        return self.post(path, framed(body, identity, token, groups), headers)

    def send_report(
        self, plan, body, identity=None, epoch=1, collection="default", token=None, headers=None, groups=None
    ):
        path = f"/v1/collections/{collection}/epochs/{epoch}/reports?plan={plan.fingerprint}"
        return self.post(path, framed(body, identity, token, groups), headers)

    def tally(self, collection="default", epoch=1, group=""):
        return self.collector.tally(self.collector.find(collection, epoch), group)


def fresh_id():
    return secrets.token_hex(16)


def framed(body, identity=None, token=None, groups=None):
    """The body of an upload: a line of its id, token and groups, then a report or batch."""
    return " ".join(part for part in (identity or fresh_id(), token, groups) if part).encode() + b"\n" + body


@contextmanager
def running(path, plans, **settings):
    """Serve these plans, {collection: plan}, from a store at this path, on any free port, from one report on."""
    settings.setdefault("minimum_reports", 1)
    with serve(plans, store=path, settings=Settings(port=0, **settings)) as started:
        yield Running(started.url, started.collector)
