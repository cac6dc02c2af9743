"""Connections of threads to both kinds of database."""

import threading

import pytest
from deposits import a_deposit, an_epoch, total

from sunzi.client.errors import StoreError


def test_threads_that_end_leave_no_connection(store):
    epoch = an_epoch(store)
    for number in range(20):
        thread = threading.Thread(target=store.commit, args=([a_deposit(epoch, number)],))
        thread.start()
        thread.join()
    assert total(store, epoch) == 20
    assert len(store._connections._open) <= 2


def test_a_closed_store_says_so(store):
    an_epoch(store)
    store.check()
    store.close()
    store.close()
    for use in (store.epochs, store.check, store.settle):
        with pytest.raises(StoreError, match="closed"):
            use()


def test_the_size_grows_with_the_ids(store):
    epoch = an_epoch(store)
    before = store.size()
    store.commit([a_deposit(epoch, number) for number in range(4000)])
    assert before > 0
    assert 16 * 4000 < store.size() - before < 200 * 4000
