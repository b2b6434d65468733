from __future__ import annotations

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
