import type { Game } from "../play/game";
import { type Face, takesKeys } from "../session/face";
import { el, icon, must, setText } from "./dom";
import { labelOf } from "./labels";
import { PILL, slowWords, titleWords } from "./words";

export interface Tools {
  readonly clip: () => void;
  readonly picture: () => void;
  readonly share: () => void;
  readonly pause: () => void;
  readonly fullscreen: () => void;
  readonly hud: () => void;
  readonly help: () => void;
  readonly leave: () => void;
}

const IN_SESSION = new Set<Face>([
  "waiting",
  "turn",
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
  readonly #named: readonly (readonly [button: HTMLElement, words: string, code: string])[];

  constructor(tools: Tools) {
    const root = must("#topbar .tools");
    const clip = tool(
      "clip",
      "Save the last 15 s",
      "M4 7h10v10H4zM14 11l6-3v8l-6-3",
      tools.clip,
    );
    const picture = tool(
      "picture",
      "Grab the picture",
      "M4 8h4l1.500-2h5L16 8h4v11H4zM12 10.500a3 3 0 1 0 0 6 3 3 0 0 0 0-6",
      tools.picture,
    );
    const share = tool(
      "share",
      "Copy a link to this place",
      "M10 14a4 4 0 0 0 6 .5l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6-.5l-3 3a4 4 0 0 0 6 6l1-1",
      tools.share,
    );
    for (const extra of [clip, picture, share]) extra.classList.add("extra");
    const pause = tool("pause", "Pause", "M8 5v14M16 5v14", tools.pause);
    const fullscreen = tool(
      "fullscreen",
      "Whole screen",
      "M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5",
      tools.fullscreen,
    );
    const hud = tool("hud-toggle", "Figures", "M5 20v-7M12 20V4M19 20v-10", tools.hud);
    const help = tool(
      "help-open",
      "Help (?)",
      "M9 9a3 3 0 1 1 4.500 2.600c-1 .6-1.500 1.100-1.500 2.400M12 18v.01",
      tools.help,
    );
    const leave = tool("leave", "Leave", "M10 5H5v14h5M14 8l4 4-4 4M18 12H9", tools.leave);
    this.#named = [
      [clip, "Save the last 15 s", "KeyC"],
      [picture, "Grab the picture", "KeyG"],
      [pause, "Pause", "KeyP"],
      [fullscreen, "Whole screen", "KeyF"],
      [hud, "Figures", "KeyH"],
    ];
    this.layout = undefined;
    this.#session = [hud, leave];
    this.#playing = [clip, picture, pause];
    root.append(clip, picture, share, pause, ...(document.fullscreenEnabled ? [fullscreen] : []), hud, help, leave);
  }

  /** Name the keys as this keyboard is labelled. */
  set layout(layout: ReadonlyMap<string, string> | undefined) {
    for (const [button, words, code] of this.#named) {
      const label = `${words} (${labelOf(code, layout)})`;
      button.setAttribute("aria-label", label);
      button.title = label;
    }
  }

  render(game: Game): void {
    const { face } = game;
    const world = game.world?.title ?? "veldt";
    setText(this.#world, world);
    const title = titleWords(face, world, game.line);
    if (document.title !== title) document.title = title;
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
