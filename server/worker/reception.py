"""Everybody who is connected to one session, and what becomes of what they send.

One of them controls: whoever joined last, once it has said `hello`. Bad input is answered to its
sender, counted, and changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Protocol

from server.protocol.base import PROTOCOL_VERSION
from server.protocol.command import (
    Command,
    Grant,
    Hello,
    Pause,
    Prompt,
    Reset,
    Resume,
    Stop,
)
from server.protocol.keys import Keys
from server.protocol.status import Ack, StatusMessage
from server.transports.base import Identity, Topic
from server.worker.inbound import Refusal, parse
from server.worker.intake import ControlIntake, Received
from server.worker.player import Player

Say = Callable[[StatusMessage, Identity], bool]


class Playable(Protocol):
    """What a player can do to a session. Each takes effect at once, or is refused by a value."""

    @property
    def epoch(self) -> int:
        """Of the incarnation that a command has led to."""
        ...

    def reset(self) -> None:
        """Begin again."""
        ...

    def pause(self, paused: bool) -> None:
        """Stop generating, or go on."""
        ...

    def set_prompt(self, text: str) -> Refusal | None:
        """Change the prompt from the next chunk on."""
        ...

    def stop(self) -> None:
        """End it."""
        ...

    def hand_over(self, by: Identity, to: Identity) -> bool:
        """Give the controls to somebody who watches, or take them back; whether that can be."""
        ...

    def input_changed(self) -> None:
        """The control state is another one."""
        ...

    def input_given(self) -> None:
        """The player does something, or goes on doing it."""
        ...


class Reception:
    """The players of one session, and its control intake."""

    def __init__(
        self, playable: Playable, intake: ControlIntake, say: Say, clock: Callable[[], float]
    ) -> None:
        """Nobody is here; `say` sends a message to one player."""
        self.counters: Counter[str] = Counter()
        self.controller: Identity | None = None
        self._playable = playable
        self._intake = intake
        self._say = say
        self._clock = clock
        self._players: dict[Identity, Player] = {}

    def joined(self, who: Identity) -> None:
        """Somebody is up, and controls from its `hello` on."""
        self._players[who] = Player(who, self._say, self._clock)
        self.controller = who

    def left(self, who: Identity) -> bool:
        """Somebody is gone; returns whether that was known as a player."""
        player = self._players.pop(who, None)
        if player is None:
            return False
        player.close()
        if who == self.controller:
            self.controller = None
            self._intake.gone()
        return True

    def close(self) -> None:
        """Say nothing more."""
        for player in self._players.values():
            player.close()

    def received(self, who: Identity, topic: Topic, payload: bytes) -> None:
        """Take bytes from somebody; never raises, whatever they are."""
        player = self._players.get(who)
        if player is None:
            self.counters["messages_of_strangers"] += 1
            return
        if not player.admits():
            self.counters["messages_dropped"] += 1
            player.refuse("too_many_messages", "messages come faster than they may")
            return
        message = parse(topic, payload)
        if isinstance(message, Refusal):
            self.counters["messages_refused"] += 1
            player.refuse(message.code, message.message)
        elif isinstance(message, Keys):
            self._take_keys(player, message)
        else:
            self._take_command(player, message)

    def _take_keys(self, player: Player, keys: Keys) -> None:
        if player.who != self.controller:
            self.counters["keys_of_others"] += 1
            return
        if not player.greeted:
            self.counters["keys_before_hello"] += 1
            return
        outcome = self._intake.receive(keys, self._clock())
        newer = outcome is Received.NEWER
        if newer:
            self._playable.input_changed()
        if (newer and keys.presses) or (
            outcome in (Received.NEWER, Received.REPEATED) and (keys.held or keys.axes)
        ):
            self._playable.input_given()

    def _take_command(self, player: Player, command: Command) -> None:
        refusal = self._obey(player, command)
        if refusal is not None:
            player.refuse(refusal.code, refusal.message, command.id)
            return
        self._say(Ack(id=command.id, epoch=self._playable.epoch), player.who)
        if isinstance(command, Stop):  # its acknowledgement is on the way
            self._playable.stop()

    def _obey(self, player: Player, command: Command) -> Refusal | None:
        if player.who != self.controller and not isinstance(command, Grant):
            return Refusal("not_controller", "another player has the controls")
        if not player.greeted and not isinstance(command, Hello):
            return Refusal("hello_first", "say hello before anything else")
        match command:
            case Hello():
                return self._hello(player, command)
            case Reset():
                self._playable.reset()
            case Pause():
                self._playable.pause(True)
            case Resume():
                self._playable.pause(False)
            case Prompt():
                return self._playable.set_prompt(command.text)
            case Stop():
                return None
            case Grant():
                if not self._playable.hand_over(player.who, Identity(command.to)):
                    return Refusal("not_granted", "the controls cannot be given to that one")
        return None

    def _hello(self, player: Player, command: Hello) -> Refusal | None:
        if command.version != PROTOCOL_VERSION:
            return Refusal("unsupported_version", f"this service speaks version {PROTOCOL_VERSION}")
        if self._intake.hello(command.nonce):
            self._playable.pause(False)  # a pause is its connection's: a reloaded page plays
        player.greeted = True
        return None
