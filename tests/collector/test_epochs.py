"""Shards, names and ids: the values that every store accepts or refuses."""

import dataclasses
import secrets

import pytest

from sunzi.client.device.addresses import check_name
from sunzi.client.errors import ParameterError
from sunzi.collector.epochs import Epoch, Shard, check_identities


@pytest.mark.parametrize("shards", [1, 2, 3, 7, 1024])
def test_every_id_belongs_to_one_shard(shards):
    for _ in range(50):
        identity = secrets.token_bytes(16)
        takers = [index for index in range(shards) if Shard(index, shards).takes(identity)]
        assert takers == [int.from_bytes(identity[:2], "big") % shards]


def test_a_shard_reads_what_it_writes():
    for shard in (Shard(), Shard(0, 4), Shard(1023, 1024)):
        assert Shard.parse(str(shard)) == shard


@pytest.mark.parametrize("text", ["", "4/4", "1", "0/0", "-1/4", "0/1025", "0/4 ", "a/b", "00001/4", "\u0661/4"])
def test_other_texts_are_no_shards(text):
    with pytest.raises(ParameterError, match="a shard must be INDEX/OF"):
        Shard.parse(text)


@pytest.mark.parametrize("name", ["a", "0", "web-2_x", "a" * 64])
def test_names_that_fit_into_a_url(name):
    assert check_name(name) == name


@pytest.mark.parametrize("name", ["", "Web", "-web", "_web", "a" * 65, "a/b", "a b", "a.b", "é", "a\n"])
def test_names_that_do_not(name):
    with pytest.raises(ParameterError, match="a collection's name must be 1 to 64 of a-z, 0-9"):
        check_name(name)


def test_an_id_has_sixteen_bytes():
    check_identities([])
    check_identities([bytes(16), b"x" * 16])
    with pytest.raises(ParameterError, match="an id must have 16 bytes, got 15"):
        check_identities([bytes(16), bytes(15)])


def test_an_epoch_is_open_until_it_has_an_end():
    epoch = Epoch(1, "web", 1, 10, 0, 0.0, None)
    assert epoch.is_open
    assert not dataclasses.replace(epoch, closed_at=1.0).is_open
