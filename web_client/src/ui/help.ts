import type { ControlView } from "../protocol/messages";
import { type Shortcut, SHORTCUTS } from "../input/keyboard";
import { button, el } from "./dom";
import { fingersFirst } from "./hint";
import { labelOf } from "./labels";

const WHAT: Readonly<Record<Exclude<Shortcut, "help" | "menu">, string>> = {
  reset: "back to the start",
  pause: "pause",
  fullscreen: "whole screen",
  hud: "figures",
  clip: "save the last 15 s",
  picture: "grab the picture",
};

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
  readonly #parts = el("div", { class: "help-parts" });
  readonly #byTouch: readonly HTMLElement[]; // the same parts, in the order in which they are needed
  readonly #byKeys: readonly HTMLElement[];

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
      this.#parts,
    );
    const touch = el("p", { class: "devices", testid: "help-touch" }, TOUCH);
    const pads = el("p", { class: "devices" }, padWords(abilities));
    const settings = el(
      "div",
      { class: "settings" },
      el("label", { class: "setting" }, this.#crisp, " Crisp pixels"),
      abilities.clips
        ? el("label", { class: "setting" }, this.#clips, " Keep the last 15 s, to save them")
        : el("p", { class: "lacking" }, "This browser cannot record the world as a video."),
      abilities.fullscreen
        ? null
        : el("p", { class: "lacking" }, "This browser does not let the page fill the screen."),
    );
    const actions = el(
      "div",
      { class: "actions" },
      close,
      closing("Copy link", "menu-share", handlers.share),
      ...this.#inSession,
    );
    this.#byTouch = [touch, actions, settings, pads, this.#keys];
    this.#byKeys = [this.#keys, pads, touch, settings, actions];
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
    const shortcuts = Object.entries(SHORTCUTS).flatMap(([code, shortcut]) =>
      shortcut === "help" || shortcut === "menu"
        ? []
        : [[[labelOf(code, layout)], WHAT[shortcut]] as const],
    );
    const fixed = [[["?"], "this sheet"], [["Esc"], "close it"]] as const;
    const all = [...rows, ...shortcuts, ...fixed];
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
    this.#parts.replaceChildren(...(fingersFirst() ? this.#byTouch : this.#byKeys));
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

const TOUCH =
  "Touch: put a thumb anywhere on the left half and lean it to walk; the right half looks around.";

function padWords({ pads }: Abilities): string {
  return pads
    ? "Gamepad: left stick walks, right stick looks, A chooses, Start pauses."
    : "This browser offers no gamepads to this page.";
}
