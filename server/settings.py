"""What an operator may set: every `VELDT_…` variable, with a default that is safe.

Read once, by the command line; handed down as a value from there. `docs/operations/settings.md`
describes each of them, and a test compares the two.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib.util
import json
import re
import socket
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    JsonValue,
    NonNegativeInt,
    PositiveInt,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict, SettingsError

from server.protocol.http import IceServer
from server.protocol.worker import ImpairmentConfig

PREFIX: Final = "VELDT_"
_BUILT_PAGE: Final = Path(__file__).resolve().parent.parent / "web_client" / "dist"


def _listed(value: object) -> object:
    """A JSON list, or words with commas between them."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text.startswith("["):
        try:
            return json.loads(text)
        except ValueError:
            raise ValueError("neither a JSON list nor words with commas between them") from None
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _host(value: object) -> object:
    return "127.0.0.1" if isinstance(value, str) and value.lower() == "localhost" else value


Words = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_listed)]
Secrets = Annotated[tuple[SecretStr, ...], NoDecode, BeforeValidator(_listed)]
Seconds = Annotated[float, Field(gt=0, le=31_536_000, allow_inf_nan=False)]
Host = Annotated[IPv4Address | IPv6Address, BeforeValidator(_host)]


class BadSettings(ValueError):
    """The settings are wrong; the message is one sentence that names the variable."""


class Settings(BaseSettings):
    """What an operator may set (`VELDT_*`). Frozen; safe as it is."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, frozen=True, extra="forbid", populate_by_name=True
    )

    # Where it listens, and for whom
    host: Host = IPv4Address("127.0.0.1")
    port: int = Field(default=8000, ge=0, le=65535)
    allowed_hosts: Words = ()
    allowed_origins: Words = ()
    trusted_proxies: Words = ()
    api_keys: Secrets = ()
    admin_key: SecretStr | None = None
    public_play: bool = False
    max_sessions_per_address: NonNegativeInt | None = None
    max_creates_per_minute_per_address: NonNegativeInt | None = None
    max_body_bytes: PositiveInt = 1_000_000
    client_dir: Path = _BUILT_PAGE

    # The world and its worker
    world: str = Field(default="tiny", min_length=1, max_length=200)
    world_options: dict[str, JsonValue] = {}
    tiny_fps: Literal[16, 24, 32] | None = None
    max_sessions_per_worker: PositiveInt = 4
    torch_threads: PositiveInt = 1
    worker_start_seconds: Seconds = 900.0
    worker_hang_seconds: Seconds = 15.0
    worker_call_seconds: Seconds = 20.0
    worker_close_seconds: Seconds = 30.0
    stage_deadline_seconds: Seconds = 30.0

    # The life of a session
    claim_seconds: Seconds = 20.0
    connect_seconds: Seconds = 30.0
    max_session_seconds: Seconds = 1800.0
    idle_timeout_seconds: Seconds = 300.0
    paused_timeout_seconds: Seconds = 600.0
    disconnect_grace_seconds: Seconds = 30.0
    ended_session_seconds: Seconds = 600.0
    max_ended_sessions: PositiveInt = 1000
    shutdown_seconds: Seconds = 10.0

    # Media
    media_addresses: Words = ()
    ice_servers: tuple[IceServer, ...] = ()
    bitrate: PositiveInt = 3_000_000
    lost_seconds: Seconds = 8.0

    # LiveKit, where players are reached through it; its own programs read the same names
    livekit_url: str | None = Field(default=None, validation_alias="LIVEKIT_URL")
    livekit_public_url: str | None = Field(default=None, validation_alias="LIVEKIT_PUBLIC_URL")
    livekit_api_key: str | None = Field(default=None, validation_alias="LIVEKIT_API_KEY")
    livekit_api_secret: SecretStr | None = Field(
        default=None, validation_alias="LIVEKIT_API_SECRET"
    )
    room_prefix: str | None = Field(default=None, pattern=r"^[a-z0-9][a-z0-9-]{0,40}$")
    reconcile_seconds: Seconds = 30.0

    # What it says
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["auto", "console", "json"] = "auto"

    # For tests only
    test_impair_media: ImpairmentConfig | None = None

    @field_validator("tiny_fps", mode="before")
    @classmethod
    def _number(cls, value: object) -> object:
        return int(value) if isinstance(value, str) and value.isdecimal() else value

    @field_validator("media_addresses")
    @classmethod
    def _addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for address in value:
            ip_address(address)
        return value

    @field_validator("api_keys")
    @classmethod
    def _keys_are_hard_to_guess(cls, value: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        if any(len(key.get_secret_value()) < 16 for key in value):
            raise ValueError("a key has at least 16 characters")
        return value

    @field_validator("admin_key")
    @classmethod
    def _key_is_hard_to_guess(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and len(value.get_secret_value()) < 16:
            raise ValueError("a key has at least 16 characters")
        return value

    @field_validator("livekit_url", "livekit_public_url")
    @classmethod
    def _livekit_address(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"(ws|http)s?://[^\s/?#@]+/?", value):
            raise ValueError("not an address such as wss://livekit.example.org")
        return None if value is None else re.sub("^http", "ws", value.rstrip("/"))

    @field_validator("livekit_api_secret")
    @classmethod
    def _secret_is_hard_to_guess(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and len(value.get_secret_value()) < 32:
            raise ValueError("LiveKit wants at least 32 characters")
        return value

    @model_validator(mode="after")
    def _livekit_is_whole(self) -> Self:
        if self.livekit_url is None:
            return self  # the other names may be there for other programs
        if any(importlib.util.find_spec(name) is None for name in ("livekit", "jwt")):
            raise ValueError("LIVEKIT_URL needs more packages: pip install 'veldt[livekit]'")
        for name in ("livekit_api_key", "livekit_api_secret"):
            if not getattr(self, name):
                raise ValueError(
                    f"LIVEKIT_URL is set, {name.upper()} is not: set both, or neither to play "
                    "without LiveKit"
                )
        return self

    @model_validator(mode="after")
    def _wide_bind_is_a_choice(self) -> Self:
        if not (self.loopback or self.api_keys or self.public_play):
            raise ValueError(
                f"{self.host} is open to others: set VELDT_API_KEYS (programs create sessions) "
                "or VELDT_PUBLIC_PLAY=true (anyone may play)"
            )
        return self

    @model_validator(mode="after")
    def _tiny_fps_needs_tiny(self) -> Self:
        if self.tiny_fps is not None and self.world != "tiny":
            raise ValueError(f"VELDT_TINY_FPS is for the world tiny, not for {self.world}")
        return self

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host.is_loopback

    @property
    def transport(self) -> Literal["livekit", "webrtc"]:
        """How players are reached."""
        return "webrtc" if self.livekit_url is None else "livekit"

    @property
    def browser_livekit_url(self) -> str | None:
        """Where browsers reach LiveKit."""
        return self.livekit_public_url or self.livekit_url if self.livekit_url else None

    @property
    def rooms(self) -> str:
        """What the names of this service's rooms begin with: the same after every start."""
        if self.room_prefix is not None:
            return self.room_prefix
        where = f"{socket.gethostname()}:{self.host}:{self.port}"
        return "veldt-" + hashlib.sha256(where.encode()).hexdigest()[:10]

    @property
    def options(self) -> dict[str, JsonValue]:
        """What the world is loaded with."""
        return (
            self.world_options
            if self.tiny_fps is None
            else {**self.world_options, "fps": self.tiny_fps}
        )

    @property
    def sessions_per_address(self) -> int | None:
        """Live sessions of one address; None = no limit. Loopback has none unless set."""
        if self.max_sessions_per_address is None and not self.loopback and self.public_play:
            return 2
        return self.max_sessions_per_address or None

    @property
    def creates_per_minute(self) -> int | None:
        """New sessions a minute from one address; None = no limit. Loopback has none unless set."""
        if self.max_creates_per_minute_per_address is None and not self.loopback:
            return 10 if self.public_play else None
        return self.max_creates_per_minute_per_address or None

    @property
    def url(self) -> str:
        """Where a browser on this machine opens the page."""
        host = self.host
        if host.is_unspecified:
            host = IPv4Address("127.0.0.1") if host.version == 4 else IPv6Address("::1")
        return f"http://{f'[{host}]' if host.version == 6 else host}:{self.port}/"


def variables() -> tuple[str, ...]:
    """Every variable that is read, in the order of the documentation."""
    return tuple(variable(name) for name in Settings.model_fields)


def variable(field: str) -> str:
    """The environment's name for a field."""
    alias = Settings.model_fields[field].validation_alias
    return alias if isinstance(alias, str) else PREFIX + field.upper()


def settings_from(environ: Mapping[str, str], **given: Any) -> Settings:
    """Settings from the environment, with `given` (those that are not None) over them.

    Args:
        environ: The process environment; it is only searched for misspelt names here, the values
            are read by pydantic-settings from `os.environ`.
        given: Fields by name, from the command line.

    Raises:
        BadSettings: One sentence that names the variable and the cure.
    """
    _refuse_misspelt(environ)
    chosen = {name: value for name, value in given.items() if value is not None}
    try:
        return Settings(**chosen)
    except ValidationError as error:
        raise BadSettings(_sentence(error)) from None
    except SettingsError as error:
        raise BadSettings(_unreadable(str(error))) from None


def _refuse_misspelt(environ: Mapping[str, str]) -> None:
    known = variables()
    for name in sorted(environ):
        if not name.upper().startswith(PREFIX) or name.upper() in known:
            continue
        close = difflib.get_close_matches(name.upper(), known, n=1, cutoff=0.0)
        raise BadSettings(f"{name} is not a setting; did you mean {close[0]}?")


def _sentence(error: ValidationError) -> str:
    """The first fault, without the value: it may be a secret."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    message = first["msg"].removeprefix("Value error, ")
    if not first["loc"]:
        return message
    name = str(first["loc"][0])
    if name not in Settings.model_fields and name not in variables():
        return f"there is no setting {name}"
    named = variable(name) if name in Settings.model_fields else name
    return f"{named}: {message[:1].lower()}{message[1:]}"


def _unreadable(message: str) -> str:
    """pydantic-settings: error parsing value for field "x" from source "…"."""
    for name in Settings.model_fields:
        if f'"{name}"' in message:
            return f"{variable(name)} is not valid JSON"
    return message
