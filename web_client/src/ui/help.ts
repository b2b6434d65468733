import type { ControlView } from "../protocol/messages";
import { button, el } from "./dom";
import { labelOf } from "./labels";

const SHORTCUTS: readonly (readonly [string, string])[] = [
  ["R", "back to the start"],
  ["P", "pause"],
  ["F", "whole screen"],
  ["H", "figures"],
  ["?", "this sheet"],
  ["Esc", "close it"],
];

export interface HelpHandlers {
  readonly opened: () => void;
  readonly reset: () => void;
  readonly leave: () => void;
  readonly crisp: (crisp: boolean) => void;
}

/** The menu and the help sheet in one: which keys there are, and the few settings. */
export class Help {
  readonly element: HTMLDialogElement;
  readonly #handlers: HelpHandlers;
  readonly #keys = el("dl", { class: "key-list" });
  readonly #crisp: HTMLInputElement;
  readonly #session = el("div", { class: "actions" });
  readonly #inSession: readonly HTMLElement[];

  constructor(handlers: HelpHandlers) {
    this.#handlers = handlers;
    this.#crisp = el("input", { type: "checkbox", testid: "crisp" });
    this.#crisp.addEventListener("change", () => {
      handlers.crisp(this.#crisp.checked);
    });
    this.#session.append(
      button(
        "Close",
        "help-close",
        () => {
          this.element.close();
        },
        "main",
      ),
    );
    this.#inSession = [
      button("Back to the start", "menu-reset", () => {
        this.element.close();
        handlers.reset();
      }),
      button("Leave", "menu-leave", () => {
        this.element.close();
        handlers.leave();
      }),
    ];
    this.#session.append(...this.#inSession);
    this.element = el(
      "dialog",
      { class: "help glass", testid: "help", "aria-labelledby": "help-title" },
      el("h2", { id: "help-title" }, "How to play"),
      this.#keys,
      el("label", { class: "setting" }, this.#crisp, " Crisp pixels"),
      this.#session,
    );
    // A click beside the sheet closes it.
    this.element.addEventListener("click", (event) => {
      if (event.target === this.element) this.element.close();
    });
  }

  get open(): boolean {
    return this.element.open;
  }

  show(controls: readonly ControlView[], inSession: boolean, layout?: ReadonlyMap<string, string>): void {
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
    this.element.scrollTop = 0; // the focus is on what stands last
  }

  close(): void {
    this.element.close();
  }

  set crisp(crisp: boolean) {
    this.#crisp.checked = crisp;
  }
}
