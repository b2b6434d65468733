/** Which state of the page follows from what is known. Pure: one function, no history. */
import type { Slow } from "../hud/slowness";
import type { EndReason, State } from "../protocol/messages";
import { terminal } from "./life";

/** The states of the page; `data-state` on the body carries them. */
export const FACES = [
  "arriving",
  "checking",
  "crossroads",
  "waiting",
  "turn",
  "connecting",
  "starting",
  "playing",
  "slow",
  "paused",
  "hidden",
  "reconnecting",
  "elsewhere",
  "ended",
  "error",
] as const;
export type Face = (typeof FACES)[number];

/** How the page stands with the media and data connection. */
export type Link = "none" | "dialing" | "up" | "lost" | "elsewhere";

/** What went wrong before or beside a session: one sentence, one action. */
export interface Trouble {
  readonly sentence: string;
  readonly action: "retry" | "reload";
  readonly code: string;
  readonly detail: string;
  readonly session?: string; // that was lost by it
}

/** What is known of the session that this page plays. */
export interface SessionFacts {
  readonly state: State | null; // null = there is none
  readonly reason: EndReason | null;
  readonly turn: boolean; // a seat came free after a wait, and the player has not stepped in
  readonly link: Link;
  readonly played: boolean; // this page has shown this session running
  readonly pausedByPlayer: boolean;
  readonly slow: Slow;
}

export const NO_SESSION: SessionFacts = {
  state: null,
  reason: null,
  turn: false,
  link: "none",
  played: false,
  pausedByPlayer: false,
  slow: null,
};

/** What is known of the page itself. */
export interface PageFacts {
  readonly checking: boolean; // Play was chosen, the answer is not there yet
  readonly crossroads: boolean; // a link leads elsewhere than the session that this tab plays
  readonly hidden: boolean;
  readonly trouble: Trouble | null;
}

export type Facts = SessionFacts & PageFacts;

export const NO_PAGE: PageFacts = {
  checking: false,
  crossroads: false,
  hidden: false,
  trouble: null,
};

export const NO_FACTS: Facts = { ...NO_SESSION, ...NO_PAGE };

export function faceOf(facts: Facts): Face {
  const { state, link } = facts;
  if (facts.trouble !== null) return "error";
  if (state === null) return facts.checking ? "checking" : "arriving";
  if (facts.reason !== null || terminal(state) || state === "draining") return "ended";
  if (facts.crossroads) return "crossroads";
  if (link === "elsewhere") return "elsewhere";
  if (state === "queued") return "waiting";
  if (state === "admitted" && facts.turn) return "turn";
  if (link !== "up") return facts.played ? "reconnecting" : "connecting";
  if (state === "admitted" || state === "connecting") return "connecting";
  if (state === "starting") return facts.pausedByPlayer ? "paused" : "starting";
  if (facts.hidden) return "hidden";
  if (facts.pausedByPlayer) return "paused";
  // Nothing holds it any more: the next frame is on its way.
  if (state === "suspended" && !facts.played) return "starting";
  return facts.slow === null ? "playing" : "slow";
}

/** Whether the world moves. */
export function plays(face: Face): boolean {
  return face === "playing" || face === "slow";
}

/** Whether keys go to the world. */
export function takesKeys(face: Face): boolean {
  return plays(face) || face === "paused";
}
