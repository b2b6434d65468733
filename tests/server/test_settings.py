from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from server.settings import BadSettings, Settings, settings_from, variable, variables

PAGE = Path(__file__).parents[2] / "docs" / "operations" / "settings.md"
KEY = "k" * 20


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    for name in list(os.environ):
        if name.startswith(("VELDT_", "LIVEKIT_")):
            monkeypatch.delenv(name)


def with_environment(monkeypatch, **values: str) -> Settings:
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    return settings_from(os.environ)


def test_every_setting_is_documented_with_its_default() -> None:
    rows = dict(
        re.findall(r"^\| `((?:VELDT|LIVEKIT)_[A-Z_]+)` \| (.*?) \|", PAGE.read_text(), re.MULTILINE)
    )
    assert sorted(rows) == sorted(variables())
    for name, field in Settings.model_fields.items():
        default = field.default
        if isinstance(default, bool | int | float | str) and not isinstance(default, Path):
            written = str(default).lower() if isinstance(default, bool) else f"{default}"
            assert rows[variable(name)].strip("`") == written.removesuffix(".0"), name


def test_defaults_are_safe() -> None:
    settings = Settings()
    assert settings.loopback
    assert not settings.public_play
    assert settings.admin_key is None
    assert settings.test_impair_media is None
    assert settings.ice_servers == ()
    assert settings.sessions_per_address is None
    assert settings.creates_per_minute is None
    assert settings.url == "http://127.0.0.1:8000/"


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        Settings().port = 1  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("VELDT_PROT", "VELDT_PORT"),
        ("VELDT_API_KEY", "VELDT_API_KEYS"),
        ("VELDT_MAX_SESSION_PER_WORKER", "VELDT_MAX_SESSIONS_PER_WORKER"),
        ("veldt_publicplay", "VELDT_PUBLIC_PLAY"),
    ],
)
def test_a_misspelt_variable_is_named_with_the_closest_real_one(monkeypatch, name, meant) -> None:
    with pytest.raises(BadSettings, match=f"{name} .*did you mean {meant}"):
        with_environment(monkeypatch, **{name: "1"})


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7"])
def test_a_wide_bind_needs_an_explicit_choice(monkeypatch, host) -> None:
    with pytest.raises(BadSettings, match=r"VELDT_API_KEYS .* VELDT_PUBLIC_PLAY"):
        with_environment(monkeypatch, VELDT_HOST=host)
    assert not with_environment(monkeypatch, VELDT_HOST=host, VELDT_API_KEYS=KEY).loopback
    monkeypatch.delenv("VELDT_API_KEYS")
    settings = with_environment(monkeypatch, VELDT_HOST=host, VELDT_PUBLIC_PLAY="true")
    assert settings.sessions_per_address == 2
    assert settings.creates_per_minute == 10


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost", "LOCALHOST"])
def test_every_loopback_spelling_is_loopback(monkeypatch, host) -> None:
    assert with_environment(monkeypatch, VELDT_HOST=host).loopback


def test_quotas_can_be_switched_off_by_zero(monkeypatch) -> None:
    settings = with_environment(
        monkeypatch,
        VELDT_HOST="0.0.0.0",
        VELDT_PUBLIC_PLAY="1",
        VELDT_MAX_SESSIONS_PER_ADDRESS="0",
        VELDT_MAX_CREATES_PER_MINUTE_PER_ADDRESS="0",
    )
    assert settings.sessions_per_address is None
    assert settings.creates_per_minute is None


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("VELDT_PORT", "eight thousand"),
        ("VELDT_PORT", "65536"),
        ("VELDT_TINY_FPS", "25"),
        ("VELDT_WORLD_OPTIONS", "{broken"),
        ("VELDT_WORLD_OPTIONS", "[1]"),
        ("VELDT_ICE_SERVERS", "stun:example.org"),
        ("VELDT_ALLOWED_HOSTS", '["half'),
        ("VELDT_MEDIA_ADDRESSES", "not-an-address"),
        ("VELDT_CLAIM_SECONDS", "0"),
        ("VELDT_IDLE_TIMEOUT_SECONDS", "nan"),
        ("VELDT_CONNECT_SECONDS", "inf"),
        ("VELDT_API_KEYS", "short"),
        ("VELDT_ADMIN_KEY", "short"),
        ("VELDT_TEST_IMPAIR_MEDIA", '{"loss": 2}'),
        ("LIVEKIT_URL", "livekit.example.org"),
        ("LIVEKIT_PUBLIC_URL", "wss://user@livekit.example.org"),
        ("LIVEKIT_API_SECRET", "short"),
    ],
)
def test_a_bad_value_is_one_sentence_that_names_the_variable(monkeypatch, variable, value) -> None:
    with pytest.raises(BadSettings) as caught:
        with_environment(monkeypatch, **{variable: value})
    message = str(caught.value)
    assert message.startswith(variable)
    assert "\n" not in message
    assert value not in message or not variable.endswith(("KEYS", "KEY"))


def test_lists_are_words_with_commas_or_json(monkeypatch) -> None:
    by_comma = with_environment(monkeypatch, VELDT_ALLOWED_HOSTS="a.example, b.example")
    by_json = with_environment(monkeypatch, VELDT_ALLOWED_HOSTS='["a.example", "b.example"]')
    assert by_comma.allowed_hosts == by_json.allowed_hosts == ("a.example", "b.example")


def test_tiny_fps_becomes_an_option_of_the_world(monkeypatch) -> None:
    settings = with_environment(monkeypatch, VELDT_TINY_FPS="24")
    assert settings.options == {"fps": 24}
    with pytest.raises(BadSettings, match="VELDT_TINY_FPS"):
        with_environment(monkeypatch, VELDT_WORLD="marker")


def test_what_is_given_wins_over_the_environment(monkeypatch) -> None:
    monkeypatch.setenv("VELDT_PORT", "1234")
    assert settings_from(os.environ, port=None).port == 1234
    assert settings_from(os.environ, port=4321).port == 4321


def test_secrets_do_not_show_in_their_representation(monkeypatch) -> None:
    settings = with_environment(monkeypatch, VELDT_API_KEYS=KEY, VELDT_ADMIN_KEY=KEY + "admin")
    assert KEY not in repr(settings)
    assert KEY not in str(settings.model_dump())


def test_livekit_is_chosen_by_its_url_and_needs_its_key(monkeypatch) -> None:
    assert Settings().transport == "webrtc"
    with pytest.raises(BadSettings, match="LIVEKIT_URL is set, LIVEKIT_API_KEY is not"):
        with_environment(monkeypatch, LIVEKIT_URL="https://livekit.example.org/")
    settings = with_environment(monkeypatch, LIVEKIT_API_KEY="key", LIVEKIT_API_SECRET="s" * 32)
    assert settings.transport == "livekit"
    assert settings.livekit_url == settings.browser_livekit_url == "wss://livekit.example.org"
    assert "s" * 32 not in repr(settings)


def test_rooms_are_named_alike_after_a_restart_and_unlike_those_of_another_port() -> None:
    assert Settings(port=1).rooms == Settings(port=1).rooms != Settings(port=2).rooms
