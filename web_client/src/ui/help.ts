import type { ControlView } from "../protocol/messages";
import { button, el } from "./dom";
import { labelOf } from "./labels";

const SHORTCUTS: readonly (readonly [string, string])[] = [
  ["R", "back to the start"],
  ["P", "pause"],
  ["F", "whole screen"],
  ["H", "figures"],
  ["C", "save the last 15 s"],
  ["G", "grab the picture"],
  ["?", "this sheet"],
  ["Esc", "close it"],
];

/** What this browser lets a player do; what it does not is said in words. */
export interface Abilities {
  readonly pads: boolean;
  readonly clips: boolean;
  readonly fullscreen: boolean;
}

export interface HelpHandlers {
  readonly opened: () => void;
  readonly reset: () => void;
  readonly leave: () => void;
  readonly saveClip: () => void;
  readonly savePicture: () => void;
  readonly share: () => void;
  readonly figures: () => void;
  readonly crisp: (crisp: boolean) => void;
  readonly clips: (clips: boolean) => void;
}

export interface HelpContent {
  readonly controls: readonly ControlView[];
  readonly inSession: boolean;
  readonly layout: ReadonlyMap<string, string> | undefined;
}

/** The menu and the help sheet in one: which keys there are, and the few settings. */
export class Help {
  readonly element: HTMLDialogElement;
  readonly #handlers: HelpHandlers;
  readonly #keys = el("dl", { class: "key-list" });
  readonly #crisp: HTMLInputElement;
  readonly #clips: HTMLInputElement;
  readonly #inSession: readonly HTMLElement[];

  constructor(handlers: HelpHandlers, abilities: Abilities) {
    this.#handlers = handlers;
    this.#crisp = checkbox("crisp", handlers.crisp);
    this.#clips = checkbox("clips", handlers.clips);
    const closing = (text: string, testid: string, action: () => void): HTMLButtonElement =>
      button(text, testid, () => {
        this.element.close();
        action();
      });
    const close = button("Close", "help-close", () => { this.close(); }, "main");
    close.autofocus = true;
    const clip = closing("Save the last 15 s", "menu-clip", handlers.saveClip);
    const picture = closing("Save the picture", "menu-picture", handlers.savePicture);
    const reset = closing("Back to the start", "menu-reset", handlers.reset);
    const leave = closing("Leave", "menu-leave", handlers.leave);
    const figures = closing("Figures", "menu-hud", handlers.figures);
    this.#inSession = [clip, picture, figures, reset, leave];
    this.element = el(
      "dialog",
      { class: "help glass", testid: "help", "aria-labelledby": "help-title" },
      el("h2", { id: "help-title" }, "How to play"),
      this.#keys,
      el("p", { class: "devices" }, deviceWords(abilities)),
      el("label", { class: "setting" }, this.#crisp, " Crisp pixels"),
      abilities.clips
        ? el("label", { class: "setting" }, this.#clips, " Keep the last 15 s, to save them")
        : el("p", { class: "lacking" }, "This browser cannot record the world as a video."),
      abilities.fullscreen
        ? null
        : el("p", { class: "lacking" }, "This browser does not let the page fill the screen."),
      el(
        "div",
        { class: "actions" },
        close,
        closing("Copy link", "menu-share", handlers.share),
        ...this.#inSession,
      ),
    );
    // A click beside the sheet closes it.
    this.element.addEventListener("click", (event) => {
      if (event.target === this.element) this.close();
    });
  }

  get open(): boolean {
    return this.element.open;
  }

  show({ controls, inSession, layout }: HelpContent): void {
    if (this.element.open) return;
    const rows = controls.map(({ code, aliases, label }) => {
      const keys = [code, ...aliases].map((one) => labelOf(one, layout));
      return [keys, label] as const;
    });
    const all = [...rows, ...SHORTCUTS.map(([key, label]) => [[key], label] as const)];
    this.#keys.replaceChildren(
      ...all.map(([keys, label]) =>
        el(
          "div",
          {},
          el("dt", {}, ...keys.map((key) => el("kbd", {}, key))),
          el("dd", {}, label),
        ),
      ),
    );
    for (const action of this.#inSession) action.hidden = !inSession;
    this.#handlers.opened();
    this.element.showModal();
    this.element.scrollTop = 0; // the focus may be on what stands last
  }

  close(): void {
    this.element.close();
  }

  set crisp(crisp: boolean) {
    this.#crisp.checked = crisp;
  }

  set clips(clips: boolean) {
    this.#clips.checked = clips;
  }
}

function checkbox(testid: string, changed: (on: boolean) => void): HTMLInputElement {
  const box = el("input", { type: "checkbox", testid });
  box.addEventListener("change", () => {
    changed(box.checked);
  });
  return box;
}

function deviceWords({ pads }: Abilities): string {
  const pad = pads
    ? "Gamepad: left stick walks, right stick looks, A chooses, Start pauses."
    : "This browser offers no gamepads to this page.";
  return `${pad} Touch: left half walks, right half looks.`;
}
