"""``sunzi inspect``: every kind of file, intact or damaged."""

import json
import struct
import zlib

import pytest

import sunzi
from sunzi.client.reports import BATCH_MAGIC


@pytest.fixture(autouse=True)
def a_wide_terminal(monkeypatch):
    """Tables instead of CSV, with each fact on one line."""
    monkeypatch.setattr("sunzi.cli.results.chosen_format", lambda arguments: arguments.format or "table")
    monkeypatch.setenv("COLUMNS", "250")


def facts(capsys) -> dict[str, str]:
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    return {line[2:14].strip(): line[14:].strip() for line in lines}


def test_a_plan(counted, capsys):
    assert counted.run("inspect", "plan.json") == 0
    found = facts(capsys)
    assert (found["kind"], found["protocol"]) == ("plan", "ss-compact")
    assert found["fingerprint"] == counted.plan.fingerprint
    assert "20.1 times as likely" in found["privacy"]
    assert found["values"].startswith("5: labels Chrome, Firefox")
    assert found["report"] == f"{counted.plan.report_bits:g} bits"
    assert "10,000 users" in found["error"]


@pytest.mark.parametrize("name", sunzi.catalogue())
def test_plans_of_every_protocol(tmp_path, capsys, name):
    from sunzi.cli.main import main

    sunzi.make_plan(name, 30, 1).save(tmp_path / "plan.json")
    assert main(["inspect", str(tmp_path / "plan.json")]) == 0
    assert facts(capsys)["protocol"] == name


def test_reports_are_counted_without_their_plan(counted, capsys):
    batch = counted.plan.client().report_batch(["Chrome"] * 500)
    with (counted.directory / "reports.bin").open("ab") as stream:
        stream.write(batch)
    assert counted.run("inspect", "reports.bin") == 0
    found = facts(capsys)
    assert (found["kind"], found["reports"]) == ("reports", "4,500 in 2 batches")
    assert found["plan"] == counted.plan.fingerprint
    assert "give its plan as well" in found["state"]
    assert counted.run("inspect", "plan.json", "reports.bin") == 0
    assert "each value is valid under its plan" in facts(capsys)["state"]


def test_a_tally(counted, capsys):
    assert counted.run("inspect", "tally.bin") == 0
    found = facts(capsys)
    assert (found["kind"], found["reports"], found["plan"]) == ("tally", "4,000", counted.plan.fingerprint)


def with_checksum(body: bytes) -> bytes:
    return body + struct.pack("<I", zlib.crc32(body))


def test_a_batch_that_holds_the_opening_of_another(tmp_path, capsys):
    """The eight bytes may occur inside a batch; only a checksum ends it."""
    from sunzi.cli.main import main

    header = struct.pack("<8s32sQ", BATCH_MAGIC, bytes(32), 9)
    tricky = with_checksum(header + b"abc" + BATCH_MAGIC + bytes(50) + BATCH_MAGIC + b"d")
    (tmp_path / "reports.bin").write_bytes(tricky + with_checksum(header))
    assert main(["inspect", str(tmp_path / "reports.bin")]) == 0
    assert facts(capsys)["reports"] == "18 in 2 batches"


def broken(counted) -> dict[str, tuple[bytes, str]]:
    plan, reports, tally = (
        (counted.directory / name).read_bytes() for name in ("plan.json", "reports.bin", "tally.bin")
    )
    return {
        "cut reports": (reports[:-5], "the batch at byte 0 is truncated or altered"),
        "cut in the second batch": (reports + reports[:70], f"the batch at byte {len(reports):,} is truncated"),
        "cut in a header": (reports + reports[:20], f"no complete batch header at byte {len(reports):,}"),
        "altered reports": (reports[:80] + bytes([reports[80] ^ 4]) + reports[81:], "checksum does not match"),
        "cut tally": (tally[:-1], "digest does not match"),
        "cut plan": (plan[: len(plan) // 2], "not JSON"),
        "altered plan": (plan.replace(b'"epsilon": "3"', b'"epsilon": "4"'), "threshold"),
        "other JSON": (b'{"a": 1}', "this is not a plan"),
        "empty": (b"", "the file is empty"),
        "a few bytes": (BATCH_MAGIC[:5], "truncated after 5 bytes"),
        "something else": (b"id,browser\n", "not a plan, reports or a tally"),
    }


@pytest.mark.parametrize("case", range(11))
def test_damage_is_reported_with_its_reason(counted, capsys, case):
    name, (data, reason) = list(broken(counted).items())[case]
    (counted.directory / "bad.bin").write_bytes(data)
    assert counted.run("inspect", "bad.bin", "tally.bin") == 2
    printed = capsys.readouterr().out
    assert "damaged" in printed, name
    assert reason in printed
    assert "kind          tally" in printed, "the other files are still described"


def test_values_that_no_client_sends_are_found_with_the_plan(counted, capsys):
    data = (counted.directory / "reports.bin").read_bytes()
    body = data[:48] + b"\xff" * (len(data) - 52)
    (counted.directory / "bad.bin").write_bytes(with_checksum(body))
    assert counted.run("inspect", "bad.bin") == 0
    assert counted.run("inspect", "plan.json", "bad.bin") == 2
    assert "a report's value must be below" in capsys.readouterr().out


def test_a_missing_file_is_code_1(counted, capsys):
    assert counted.run("inspect", "gone.bin", "tally.bin") == 1
    printed = capsys.readouterr().out
    assert "unreadable" in printed
    assert "kind          tally" in printed


def test_labels_cannot_steer_the_terminal(tmp_path, capsys):
    from sunzi.cli.main import main

    sunzi.make_plan("grr", ["\x1b[31mred", "b\u202e"], 1).save(tmp_path / "plan.json")
    assert main(["inspect", str(tmp_path / "plan.json")]) == 0
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert "\u202e" not in printed
    assert r"\x1b[31mred" in printed


def test_an_unknown_protocol_is_named_and_not_called_damage(counted, capsys):
    text = (counted.directory / "plan.json").read_text().replace('"ss-compact"', '"theirs"')
    (counted.directory / "plan.json").write_text(text)
    assert counted.run("inspect", "plan.json", "tally.bin") == 2
    printed = capsys.readouterr().out
    assert "  unknown       protocol must be one of grr, " in printed
    assert "got 'theirs'" in printed
    assert "damaged" not in printed
    assert "kind          tally" in printed


def test_data_for_programs(counted, capsys):
    assert counted.run("inspect", "plan.json", "reports.bin", "tally.bin", "--format", "json") == 0
    plan, reports, tally = json.loads(capsys.readouterr().out)
    assert (plan["kind"], plan["state"], plan["epsilon"], plan["domain_size"]) == ("plan", "intact", "3", 5)
    assert (reports["reports"], reports["batches"], reports["plan"]) == (4000, 1, counted.plan.fingerprint)
    assert (tally["reports"], tally["counters"]) == (4000, 5)
    (counted.directory / "bad.bin").write_bytes(b"nothing")
    assert counted.run("inspect", "bad.bin", "--format", "csv") == 2
    assert "bad.bin,state,damaged" in capsys.readouterr().out
