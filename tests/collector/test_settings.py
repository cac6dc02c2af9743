"""Settings, secrets and upload keys: valid and invalid ones."""

import json

import pytest

from sunzi.client.errors import ParameterError
from sunzi.collector.settings import LiveSettings, Settings, UploadKey, read_secret, read_upload_keys


def test_only_loopback_without_an_admin_token():
    for host in ("0.0.0.0", "::", "192.0.2.7"):
        with pytest.raises(ParameterError, match="admin token"):
            Settings(host=host)
        Settings(host=host, admin_token="long-enough-to-be-one")
    with pytest.raises(ParameterError, match="16 characters"):
        Settings(admin_token="short")
    assert "long-enough" not in repr(Settings(admin_token="long-enough-to-be-one"))


@pytest.mark.parametrize(
    "name", ["body_bytes", "header_bytes", "header_seconds", "body_seconds", "batch_reports", "minimum_reports"]
)
def test_limits_are_positive(name):
    with pytest.raises(ParameterError, match=name):
        Settings(**{name: 0})


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"port": 99999}, "port"),
        ({"port": -1}, "port"),
        ({"allow_origins": ("example.org/",)}, "origin"),
        ({"allow_origins": ("https://example.org/",)}, "origin"),
        ({"allow_origins": ("https://Example.org",)}, "origin"),
        ({"trusted_proxies": ("nonsense",)}, "proxy"),
        ({"publish_delta": 1e-8}, "publish_delta needs honest"),
        ({"honest": 0.9}, "about publish_delta"),
        ({"fresh_noise": True}, "about publish_delta"),
        ({"cohort": 500}, "about publish_delta"),
        ({"publish_delta": 1e-16, "honest": 1}, "delta must lie"),
        ({"publish_delta": 1e-8, "honest": 1.1}, "honest must be a share"),
        ({"publish_delta": 1e-8, "honest": 1, "fresh_noise": True, "cohort": 500}, "not both"),
        ({"publish_delta": 1e-8, "honest": 1, "cohort": 99}, "smaller than minimum_reports"),
        ({"trusted_proxies": ("10.0.0.1/8",)}, "proxy"),
        ({"upload_keys": (UploadKey("a", b"1", 1), UploadKey("a", b"2", 1))}, "distinct names and secrets"),
        ({"upload_keys": (UploadKey("a", b"1", 1), UploadKey("b", b"1", 1))}, "distinct names and secrets"),
    ],
)
def test_settings_that_could_not_work_are_refused(wrong, complaint):
    with pytest.raises(ParameterError, match=complaint):
        Settings(**wrong)


def test_settings_that_work():
    origins = ("https://example.org", "http://localhost:3000", "http://[::1]:80", "*")
    proxies = ("127.0.0.1", "::1", "10.0.0.0/8", "*")
    made = Settings(allow_origins=origins, trusted_proxies=proxies, port=65535)
    assert (made.allow_origins, made.trusted_proxies, made.port) == (origins, proxies, 65535)


def test_secrets_and_keys_from_files(tmp_path):
    (tmp_path / "token").write_text("  a-secret-of-mine\n")
    assert read_secret(tmp_path / "token") == "a-secret-of-mine"
    for text in ("two words", "naïve", "a\x00b"):
        (tmp_path / "token").write_text(text)
        with pytest.raises(ParameterError, match="printable"):
            read_secret(tmp_path / "token")
    digits = "0" * 64
    wrong = [{"name": "a", "sha256": "00", "reports_per_minute": 5}]
    wrong += [{"name": "a", "sha256": digits, "reports_per_minute": quota} for quota in (0, 1.9, True, "5")]
    for text in ("{}", "[]", "nonsense", *(json.dumps([key]) for key in wrong)):
        (tmp_path / "keys").write_text(text)
        with pytest.raises(ParameterError, match="keys"):
            read_upload_keys(tmp_path / "keys")


def test_an_admin_token_is_replaced_without_a_restart(tmp_path):
    file = tmp_path / "token"
    file.write_text("the-first-admin-token")
    live = LiveSettings(Settings(admin_token=read_secret(file), admin_token_file=file))
    assert live.current.is_admin("the-first-admin-token")
    file.write_text("a-second-admin-token!")
    assert live.current.is_admin("a-second-admin-token!")
    assert not live.current.is_admin("the-first-admin-token")
    for broken in ("short", "two words of a token", ""):
        file.write_text(broken)
        assert live.current.is_admin("a-second-admin-token!")
        assert not live.current.is_admin(broken)
