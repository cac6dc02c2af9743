"""Tallies: merging is addition, damaged files are refused, and so are counts that no reports can produce."""

import errno
import hashlib
import json
import os
import pickle
import resource
import struct
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sunzi.client.errors import SunziError
from sunzi.errors import TallyError
from sunzi.numerics.counters import Counters
from sunzi.plan import make_plan
from sunzi.protocols.registry import catalogue
from sunzi.tally import Tally, TallyLayout, load_tally

PLANS = {name: make_plan(name, 12, 1) for name in catalogue()} | {
    "ss, subsets": make_plan("ss", 14, 1, block_size=4),
    "mss, few moduli": make_plan("mss", 14, 1, moduli=[5, 7, 11]),
    "ss-compact, sparse": make_plan("ss-compact", 5000, 1),
}


@pytest.fixture(scope="module", params=list(PLANS))
def plan(request):
    return PLANS[request.param]


def some_tally(plan, number=40, seed=0):
    values = np.random.default_rng(seed).integers(0, plan.domain.size, number)
    return plan.tally(plan.client(seed=seed).report_batch(values))


@settings(max_examples=15)
@given(data=st.data())
def test_the_merge_law(plan, data):
    """Merging is associative and commutative, has a zero, and equals the tally of all reports at once."""
    lists = data.draw(st.lists(st.lists(st.integers(0, plan.domain.size - 1), max_size=15), min_size=3, max_size=3))
    seed = data.draw(st.integers(0, 2**20))
    each = [plan.client(seed=[seed, index]).reports(values) for index, values in enumerate(lists)]
    first, second, third = (plan.tally(reports) for reports in each)
    whole = plan.tally([report for reports in each for report in reports])
    assert first + second == second + first
    assert (first + second) + third == first + (second + third) == whole
    assert plan.empty_tally() + first == first + plan.empty_tally() == first
    assert sum([third, first, second]) == whole
    assert whole.reports == sum(len(values) for values in lists)
    assert sum(whole.block_reports) in (whole.reports, whole.reports * len(whole.layout.blocks))


def test_sum_of_tallies_starts_from_zero(plan):
    parts = [some_tally(plan, 7, seed) for seed in range(5)]
    assert sum(parts).reports == 35
    with pytest.raises(TypeError):
        parts[0] + 1
    with pytest.raises(TypeError):
        sum(parts, start=1)


def test_merging_leaves_the_parts_alone(plan):
    first, second = some_tally(plan, 9, 1), some_tally(plan, 9, 2)
    before = first.to_bytes(), second.to_bytes()
    _ = first + second
    assert (first.to_bytes(), second.to_bytes()) == before


def test_a_tally_is_immutable(plan):
    tally = some_tally(plan, 9)
    for name in ("reports", "counters", "layout", "fingerprint", "block_reports", "another"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(tally, name, 5)
    assert pickle.loads(pickle.dumps(tally)) == tally


def test_counts_cannot_be_written_to():
    for array in (some_tally(PLANS["grr"]).counts, *some_tally(PLANS["ss-compact, sparse"]).counters.nonzero()):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7


def test_tallies_of_different_plans_do_not_add():
    tallies = [some_tally(plan, 3) for plan in PLANS.values()]
    for index, first in enumerate(tallies):
        for second in tallies[index + 1 :]:
            with pytest.raises(TallyError, match="different plans"):
                first + second
            assert first != second


@pytest.mark.parametrize("number", [0, 1, 40, 3000])
def test_files_round_trip(plan, number, tmp_path):
    tally = some_tally(plan, number)
    path = tmp_path / "some.tally"
    tally.save(path)
    loaded = load_tally(path)
    assert loaded == tally
    assert loaded.to_bytes() == tally.to_bytes() == path.read_bytes()
    assert loaded.block_reports == tally.block_reports
    assert np.array_equal(loaded.counts, tally.counts)
    if number == 40:
        estimates = [plan.estimate(each).frequencies for each in (tally, loaded)]
        assert np.array_equal(*estimates)


def test_both_forms_are_saved_as_they_are():
    sparse = some_tally(PLANS["ss-compact, sparse"], 100)
    assert sparse.counters.is_sparse
    assert len(sparse.to_bytes()) < 100 * 16 + 400
    dense = some_tally(PLANS["grr"], 100)
    assert not dense.counters.is_sparse
    assert dense.to_bytes().count(b'"stored":null') == 1


def test_a_thousand_reports_on_millions_of_counters_store_a_thousand_cells():
    plan = make_plan("ss-compact", 1_000_000, 2)
    assert plan.protocol.tally_layout.length > 7_000_000
    tally = plan.tally(plan.client(seed=1).report_batch(np.arange(1000)))
    assert tally.counters.stored <= 1000
    merged = tally + plan.tally(plan.client(seed=2).report_batch(np.arange(500)))
    assert merged.counters.stored <= 1500
    assert len(merged.to_bytes()) < 1500 * 16 + 400
    assert Tally.from_bytes(merged.to_bytes()) == merged


@pytest.mark.parametrize("name", ["grr", "ss, subsets", "rappor"])
def test_every_flipped_byte_of_a_file_is_refused(name, tmp_path):
    data = some_tally(PLANS[name], 30).to_bytes()
    path = tmp_path / "damaged"
    for position in range(len(data)):
        for flip in (1, 0x80, 0xFF):
            damaged = bytearray(data)
            damaged[position] ^= flip
            with pytest.raises(TallyError):
                Tally.from_bytes(bytes(damaged))
    path.write_bytes(data[:-40] + b"?" + data[-39:])
    with pytest.raises(TallyError, match="damaged"):  # and the message names the file
        load_tally(path)


def test_every_cut_of_a_file_is_refused():
    data = some_tally(PLANS["grr"], 30).to_bytes()
    for cut in range(len(data)):
        with pytest.raises(TallyError):
            Tally.from_bytes(data[:cut])
    with pytest.raises(TallyError):
        Tally.from_bytes(data + b"\0")


def test_a_file_that_is_something_else_is_refused(tmp_path):
    path = tmp_path / "plan.json"
    PLANS["grr"].save(path)
    with pytest.raises(TallyError, match="not a tally"):
        load_tally(path)


def forge(header, numbers):
    """A tally file with a valid digest and any content."""
    encoded = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    body = b"SUNZITL\x01" + struct.pack("<I", len(encoded)) + encoded + np.array(numbers, dtype="<i8").tobytes()
    return body + hashlib.sha256(body).digest()


def header_of(**changes):
    return {"fingerprint": "ab" * 32, "reports": "6", "blocks": [[4, 2], [3, 1]], "stored": None} | changes


GOOD = [2, 2, 1, 1, 3, 0, 0]


def test_a_forged_tally_that_is_consistent_is_read():
    """The forgery is valid, so the tests below are refused for the change they make and not for the forgery."""
    tally = Tally.from_bytes(forge(header_of(), GOOD))
    assert tally.reports == 6
    assert tally.block_reports == (3, 3)
    assert tally.counts.tolist() == GOOD
    sparse = forge(header_of(stored=5), [0, 1, 2, 3, 4, 2, 2, 1, 1, 3])
    assert Tally.from_bytes(sparse) == tally


@pytest.mark.parametrize(
    ("numbers", "reason"),
    [
        ([2, 2, 1, 0, 3, 0, 0], "multiple of 2"),
        ([2, 2, 2, 2, 3, 0, 0], "those of 7 reports"),
        ([2, 2, 1, 1, 2, 0, 0], "those of 5 reports"),
        ([4, 2, 0, 0, 3, 0, 0], "exceeds"),
        ([3, 3, 1, -1, 3, 0, 0], "negative"),
        ([2, 2, 1, 1, 4, -1, 0], "negative"),
        ([2, 2, 1, 1, 3, 0], "should hold 7"),
        ([2, 2, 1, 1, 3, 0, 0, 0], "should hold 7"),
        ([], "should hold 7"),
    ],
)
def test_counts_that_no_reports_could_give_are_refused(numbers, reason):
    """Every report adds 1 to w_j counters of one block, so a block's counts add up to w_j·n_j, each at most n_j."""
    with pytest.raises(TallyError, match=reason):
        Tally.from_bytes(forge(header_of(), numbers))


def test_counts_that_overflow_are_refused():
    """Five counts of 2^62 would sum to 2^62 if sums wrapped around."""
    header = {"fingerprint": "ab" * 32, "reports": str(2**62), "blocks": [[5, 1]], "stored": None}
    with pytest.raises(TallyError):
        Tally.from_bytes(forge(header, [2**62] * 5))


def test_merging_beyond_63_bits_is_refused():
    header = {"fingerprint": "ab" * 32, "reports": str(2**62), "blocks": [[5, 1]], "stored": None}
    half = Tally.from_bytes(forge(header, [2**62, 0, 0, 0, 0]))
    with pytest.raises(TallyError):
        half + half


@pytest.mark.parametrize(
    ("stored", "numbers"),
    [
        (2, [1, 0, 5, 5]),
        (2, [1, 1, 5, 5]),
        (2, [-1, 1, 5, 5]),
        (2, [1, 7, 5, 5]),
        (1, [1, 0, 5, 5]),
        (-1, []),
        (1 << 62, [1, 1]),
        (1.5, [1, 1, 1]),
        ("2", [1, 2, 5, 5]),
        (True, [4, 6]),
        ([], [1, 1]),
    ],
)
def test_sparse_tallies_that_are_malformed_are_refused(stored, numbers):
    with pytest.raises(TallyError):
        Tally.from_bytes(forge(header_of(stored=stored, blocks=[[7, 1]]), numbers))


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        b"null",
        b"7",
        b"[" * 100_000,
        b'{"fingerprint":' + b"9" * 5000 + b"}",
        header_of(fingerprint=5),
        header_of(fingerprint="zz" * 32),
        header_of(reports="-6"),
        header_of(reports="six"),
        header_of(reports=[6]),
        header_of(blocks=7),
        header_of(blocks=[7]),
        header_of(blocks=[[7]]),
        header_of(blocks=[[7, 1, 1]]),
        header_of(blocks=[["x", 1]]),
        header_of(blocks=[[10, 1], [-3, 1]]),
        header_of(blocks=[[-3, 1], [10, 1]]),
        header_of(blocks=[[7, -1]]),
        header_of(blocks=[[1 << 70, 1]]),
        header_of(blocks={"a": 1}),
        {"fingerprint": "ab" * 32},
    ],
)
def test_malformed_headers_are_refused(header):
    with pytest.raises(TallyError):
        Tally.from_bytes(forge(header, GOOD))


@settings(max_examples=200)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-3, 9) | st.floats() | st.text(max_size=3) | st.just("ab" * 32),
        lambda inner: st.lists(inner, max_size=3),
        max_leaves=6,
    ),
    st.sampled_from(["fingerprint", "reports", "blocks", "stored"]),
)
def test_any_header_is_read_or_refused(value, key):
    try:
        tally = Tally.from_bytes(forge(header_of(**{key: value}), GOOD))
    except TallyError:
        return
    assert Tally.from_bytes(tally.to_bytes()) == tally


def test_a_tally_checks_its_invariants_however_it_is_made():
    layout = TallyLayout(((4, 2), (3, 1)))
    counters = Counters(7, None, np.array(GOOD))
    assert Tally(bytes(32), layout, 6, counters).reports == 6
    for reports in (5, 7, -1, 0):
        with pytest.raises(TallyError):
            Tally(bytes(32), layout, reports, counters)
    with pytest.raises(TallyError):
        Tally(bytes(32), layout, 6, Counters(8, None, np.array([*GOOD, 0])))


def test_unary_counts_are_at_most_the_reports():
    layout = TallyLayout(((3, 0),))
    assert Tally(bytes(32), layout, 5, Counters(3, None, np.array([5, 0, 5]))).block_reports == (5,)
    with pytest.raises(TallyError, match="exceeds"):
        Tally(bytes(32), layout, 5, Counters(3, None, np.array([6, 0, 5])))


def test_a_plan_estimates_only_its_own_tallies():
    plan, other = PLANS["grr"], PLANS["rappor"]
    with pytest.raises(TallyError, match="belongs to the plan"):
        plan.estimate(some_tally(other))
    mine = some_tally(plan)
    relabelled = Tally(mine.fingerprint, TallyLayout(((12, 0),)), mine.reports, mine.counters)
    with pytest.raises(TallyError, match="do not have this plan's layout"):
        plan.estimate(relabelled)


def test_same_plan_but_another_layout_does_not_add():
    mine = some_tally(PLANS["grr"])
    longer = Tally(mine.fingerprint, TallyLayout(((13, 1),)), 0, Counters.zeros(13))
    relabelled = Tally(mine.fingerprint, TallyLayout(((12, 0),)), mine.reports, mine.counters)
    for other in (longer, relabelled):
        with pytest.raises(TallyError):
            mine + other


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failing_save_leaves_the_old_file_and_no_other(step, tmp_path):
    path = tmp_path / "kept.tally"
    old = some_tally(PLANS["grr"], 5)
    old.save(path)
    failure = OSError(errno.ENOSPC, "no space left on device")
    with mock.patch.object(os, step, side_effect=failure), pytest.raises(OSError, match="no space left"):
        some_tally(PLANS["grr"], 50).save(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["kept.tally"]
    assert load_tally(path) == old


def test_a_disk_that_fills_up_leaves_the_old_file_and_no_other(tmp_path):
    """The system refuses every byte after the hundredth, in a child process so that only that process is limited."""
    path = tmp_path / "kept.tally"
    old, new = some_tally(PLANS["grr"], 5), some_tally(PLANS["grr"], 50)
    old.save(path)
    assert len(new.to_bytes()) > 100
    child = os.fork()
    if child == 0:
        code = 1
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
            new.save(path)
        except OSError as error:
            code = 0 if error.errno == errno.EFBIG else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert [entry.name for entry in tmp_path.iterdir()] == ["kept.tally"]
    assert load_tally(path) == old


def test_a_save_over_a_file_replaces_it_and_leaves_nothing_else(tmp_path):
    path = tmp_path / "some.tally"
    for number in (5, 500, 1):
        some_tally(PLANS["grr"], number).save(path)
        assert load_tally(path).reports == number
    assert [entry.name for entry in tmp_path.iterdir()] == ["some.tally"]
    assert path.stat().st_mode & 0o777 == 0o666 & ~current_umask()


def current_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_saving_into_no_directory_fails_as_files_do(tmp_path):
    with pytest.raises(FileNotFoundError):
        some_tally(PLANS["grr"]).save(tmp_path / "missing" / "some.tally")


def test_the_representation_names_size_and_plan(plan):
    text = repr(some_tally(plan, 3))
    assert text.startswith("Tally(3 reports")
    assert plan.fingerprint[:16] in text


def test_tally_errors_are_sunzi_errors():
    assert issubclass(TallyError, SunziError)
    with pytest.raises(TypeError):
        hash(some_tally(PLANS["grr"]))
