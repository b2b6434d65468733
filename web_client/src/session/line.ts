/** A place in the line for a seat, and the seat at its end. Pure. */
import type { AdmittedEvent, QueuedEvent } from "../protocol/messages";

export interface Line {
  /** How many players come first. */
  readonly ahead: number;
  readonly etaSeconds: number | null;
  /** Until when the seat is kept, on this page's clock; null while there is none. */
  readonly claimUntilMs: number | null;
}

/** `queue_position` counts from 1: who has it is next. */
export function inLine({ queue_position, eta_seconds }: Omit<QueuedEvent, "event">): Line {
  return {
    ahead: Math.max(0, queue_position - 1),
    etaSeconds: eta_seconds,
    claimUntilMs: null,
  };
}

export function seatReady({ claim_seconds }: Omit<AdmittedEvent, "event">, nowMs: number): Line {
  return { ahead: 0, etaSeconds: 0, claimUntilMs: nowMs + claim_seconds * 1000 };
}

/** Whole seconds that the seat is still kept. */
export function claimSeconds(line: Line | null, nowMs: number): number {
  const until = line?.claimUntilMs ?? null;
  return until === null ? 0 : Math.max(0, Math.ceil((until - nowMs) / 1000));
}
