from __future__ import annotations

import pytest
from pydantic import TypeAdapter

from server.protocol.http import IceServer
from server.transports.impairment import Fate, Impairment
from server.transports.settings import TransportSettings


def test_settings_survive_the_way_to_a_worker() -> None:
    settings = TransportSettings(
        bind_host="0.0.0.0",
        media_addresses=("10.0.0.1",),
        ice_servers=(IceServer(urls=("stun:stun.test",), username="u", credential="c"),),
        impair=Impairment(script=(Fate.LOSE,), seed=7, loss=0.2),
    )
    adapter = TypeAdapter(TransportSettings)
    assert adapter.validate_json(adapter.dump_json(settings)) == settings


@pytest.mark.parametrize("url", ["", "stun", "http://a", "stun:", "stun:a b", "turn:a:port"])
def test_server_address_that_is_none_is_refused_at_the_start(url: str) -> None:
    with pytest.raises(ValueError, match="STUN or TURN"):
        TransportSettings(ice_servers=(IceServer(urls=(url,)),))


@pytest.mark.parametrize("url", ["stun:a", "stuns:a:1", "turn:a:3478?transport=tcp", "turns:a"])
def test_server_address_is_taken(url: str) -> None:
    assert TransportSettings(ice_servers=(IceServer(urls=(url,)),)).ice_servers[0].urls == (url,)
