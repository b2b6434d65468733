/** Every sentence that a player reads about a state. One table a kind; tests see that none lacks. */
import type { EndReason } from "../protocol/messages";
import type { Awaited } from "../play/comeback";
import type { Slow } from "../hud/slowness";
import type { Face } from "../session/face";
import type { Line } from "../session/line";

export const PILL: Readonly<Record<Face, string>> = {
  arriving: "Ready",
  checking: "Checking",
  crossroads: "Two ways",
  waiting: "Waiting",
  turn: "Your turn",
  connecting: "Connecting",
  starting: "Warming up",
  playing: "Playing",
  slow: "Slow",
  paused: "Paused",
  hidden: "Paused while hidden",
  reconnecting: "Reconnecting",
  elsewhere: "Playing in another tab",
  ended: "Ended",
  error: "Not playing",
};

export const ENDED: Readonly<Record<EndReason, { title: string; sentence: string }>> = {
  left: { title: "Until next time", sentence: "You left the world." },
  stopped: { title: "Until next time", sentence: "You stopped the world." },
  kicked: { title: "Ended by the operator", sentence: "An operator has ended this session." },
  shutdown: {
    title: "The server is stopping",
    sentence: "You can play again when it is back.",
  },
  claim_missed: {
    title: "Your seat was given on",
    sentence: "It was kept for you for a while, and nobody stepped in.",
  },
  queue_abandoned: {
    title: "You were away for too long",
    sentence: "Your place in the line was given up.",
  },
  connect_timeout: {
    title: "No way through",
    sentence:
      "The connection was not made in time. Something between this page and the server may block UDP.",
  },
  connect_failed: { title: "No way through", sentence: "The connection could not be made." },
  disconnected: {
    title: "The connection was lost",
    sentence: "This page and the server did not reach each other for a while, so the world was put away.",
  },
  idle: { title: "Nobody there?", sentence: "Nothing was pressed for a long time." },
  time_limit: { title: "Time is up", sentence: "A session has a time limit, and it was reached." },
  worker_died: {
    title: "The world was lost",
    sentence: "The worker that made your world has stopped.",
  },
  world_failed: {
    title: "The world was lost",
    sentence: "The world could not go on: its model reported a fault.",
  },
};

/** How it stands with a service that went away under the player. */
export function awaitedWords({ ready, stage }: Awaited, reason: EndReason | null): string {
  if (ready) return reason === "worker_died" ? "It is ready again." : "The server is ready.";
  const doing = stage === null || stage === "ready" ? "" : `: ${stage}`;
  if (reason === "worker_died") return `It is being restarted${doing}.`;
  return doing === "" ? "It does not answer yet." : `It is getting ready${doing}.`;
}

/** How many come first. */
export function aheadWords(ahead: number): string {
  return ahead === 0 ? "You are next" : `${ahead} ahead of you`;
}

/** A wait as a span: it is an estimate, and says so. */
export function etaWords(seconds: number | null): string {
  if (seconds === null) return "";
  if (seconds < 50) return "less than a minute";
  const least = Math.max(1, Math.floor((seconds * 0.85) / 60));
  const most = Math.max(1, Math.ceil((seconds * 1.15) / 60));
  return least === most ? `about ${most} min` : `about ${least}–${most} min`;
}

export function waitWords({ ahead, etaSeconds }: Pick<Line, "ahead" | "etaSeconds">): string {
  return [aheadWords(ahead), etaWords(etaSeconds)].filter((part) => part !== "").join(" · ");
}

/** Of the window or tab: whoever waits elsewhere sees how it stands. */
export function titleWords(face: Face, world: string, line: Line | null): string {
  if (face === "waiting" && line !== null) return `${aheadWords(line.ahead)} · ${world}`;
  if (face === "turn") return `Your seat is ready · ${world}`;
  return world;
}

export function slowWords(slow: Slow): string {
  if (slow === null) return PILL.playing;
  if (slow.side === "page") return "This computer is too slow to show every frame";
  const players = slow.players === 1 ? "1 player" : `${slow.players} players`;
  return `The server is at ${slow.percent} % speed (${players})`;
}

export function duration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const minutes = Math.floor(whole / 60);
  if (minutes === 0) return `${whole} s`;
  const rest = whole % 60;
  return rest === 0 ? `${minutes} min` : `${minutes} min ${rest} s`;
}

