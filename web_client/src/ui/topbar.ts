import type { Game } from "../play/game";
import { type Face, takesKeys } from "../session/face";
import { el, icon, must, setText } from "./dom";
import { PILL, slowWords } from "./words";

export interface Tools {
  readonly pause: () => void;
  readonly fullscreen: () => void;
  readonly hud: () => void;
  readonly help: () => void;
  readonly leave: () => void;
}

const IN_SESSION = new Set<Face>([
  "waiting",
  "connecting",
  "starting",
  "playing",
  "slow",
  "paused",
  "hidden",
  "reconnecting",
]);

/** Which world this is, how it goes, and the few tools. */
export class Topbar {
  readonly #world: HTMLElement = must("#topbar .world");
  readonly #pill: HTMLElement = must("#topbar .pill");
  readonly #session: HTMLElement[];
  readonly #playing: HTMLElement[];

  constructor(tools: Tools) {
    const root = must("#topbar .tools");
    const pause = tool("pause", "Pause (P)", "M8 5v14M16 5v14", tools.pause);
    const fullscreen = tool(
      "fullscreen",
      "Whole screen (F)",
      "M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5",
      tools.fullscreen,
    );
    const hud = tool("hud-toggle", "Figures (H)", "M5 20v-7M12 20V4M19 20v-10", tools.hud);
    const help = tool(
      "help-open",
      "Help (?)",
      "M9 9a3 3 0 1 1 4.500 2.600c-1 .6-1.500 1.100-1.500 2.400M12 18v.01",
      tools.help,
    );
    const leave = tool("leave", "Leave", "M10 5H5v14h5M14 8l4 4-4 4M18 12H9", tools.leave);
    this.#session = [hud, leave];
    this.#playing = [pause];
    root.append(pause, ...(document.fullscreenEnabled ? [fullscreen] : []), hud, help, leave);
  }

  render(game: Game): void {
    const { face } = game;
    setText(this.#world, game.world?.title ?? "veldt");
    setText(this.#pill, pillWords(game));
    for (const button of this.#session) button.hidden = !IN_SESSION.has(face);
    for (const button of this.#playing) button.hidden = !takesKeys(face);
  }
}

function pillWords(game: Game): string {
  const { face, stage } = game;
  if (face === "slow") return slowWords(game.facts.slow);
  const waits = face === "checking" || (face === "arriving" && game.world === null);
  return waits && stage !== null ? `Getting ready: ${stage}` : PILL[face];
}

function tool(testid: string, label: string, path: string, onclick: () => void): HTMLButtonElement {
  return el(
    "button",
    { type: "button", class: "tool glass", testid, "aria-label": label, title: label, onclick },
    icon(path),
  );
}
