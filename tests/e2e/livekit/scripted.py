"""Players without a browser who come through LiveKit."""

from __future__ import annotations

from typing import Any

import httpx

from tests.fakes.livekit_player import LiveKitPlayer
from tests.fakes.waiting import until


class Session:
    """One session over HTTP, and the player that is in its room."""

    def __init__(self, http: httpx.AsyncClient, created: dict[str, Any]) -> None:
        assert created["transport"] == "livekit"
        self._http = http
        self.id = str(created["session_id"])
        self.headers = {"Authorization": f"Bearer {created['session_token']}"}
        self.path = f"/v1/sessions/{self.id}"
        self.player = LiveKitPlayer()
        self._players = [self.player]

    async def connect(self, *, take_over: bool = False) -> dict[str, Any]:
        """What `connect` answers; raises with the problem's text where it is refused."""
        body = {"take_over": take_over}
        answer = await self._http.post(f"{self.path}/connect", json=body, headers=self.headers)
        if answer.status_code != 200:
            raise ConnectionError(f"{answer.status_code} {answer.text}")
        return dict(answer.json())

    async def play(self, *, take_over: bool = False) -> LiveKitPlayer:
        """Join, say hello, and wait until the world runs and the service knows."""
        if self.player.gone is not None or self.player.room.isconnected():
            self.player = LiveKitPlayer()
            self._players.append(self.player)
        await self.player.join(await self.connect(take_over=take_over))
        await self.player.hello()
        await self.player.until(lambda: self.state == "running", 30)
        await self.becomes("running")
        return self.player

    @property
    def state(self) -> str | None:
        """What the worker says of the session."""
        states = self.player.of("state")
        return states[-1]["state"] if states else None

    async def view(self) -> dict[str, Any]:
        """What `GET /v1/sessions/{id}` says."""
        return dict((await self._http.get(self.path, headers=self.headers)).json())

    async def becomes(self, status: str, seconds: float = 15.0) -> dict[str, Any]:
        """Wait until the service says so: it hears of its worker's sessions a little later."""

        async def there() -> bool:
            return str((await self.view())["status"]) == status

        await until(there, seconds)
        return await self.view()

    async def leave(self) -> int:
        """DELETE; returns the status code."""
        answer = await self._http.delete(self.path, headers=self.headers)
        for player in self._players:
            await player.aclose()
        return answer.status_code


class Players:
    """Opens sessions on one server."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http
        self._opened: list[Session] = []

    async def open(self, **start: str) -> Session:
        """POST /v1/sessions."""
        answer = await self.http.post("/v1/sessions", json=start)
        if answer.status_code != 201:
            raise ConnectionError(f"{answer.status_code} {answer.text}")
        self._opened.append(Session(self.http, answer.json()))
        return self._opened[-1]

    async def playing(self, **start: str) -> Session:
        """Open a session and play it."""
        session = await self.open(**start)
        await session.play()
        return session

    async def aclose(self) -> None:
        """End whatever is still open."""
        for session in self._opened:
            try:
                await session.leave()
            except httpx.HTTPError:
                continue  # the server is gone already: that was the test
        await self.http.aclose()
