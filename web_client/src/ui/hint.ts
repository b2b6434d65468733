import { must, setText } from "./dom";

export type HintKind = "pad" | "touch";

export const TOUCH_WORDS = "Left half walks · right half looks";

/** Whether this page is mostly used by touch. */
export function fingersFirst(): boolean {
  return window.matchMedia("(pointer: coarse)").matches;
}

const WORDS: Readonly<Record<HintKind, string>> = {
  pad: "Left stick walks · right stick looks",
  touch: TOUCH_WORDS,
};

/** How a device is used, until it has been. */
export class Hint {
  readonly #element = must("#hint");
  readonly #used = new Set<HintKind>();

  /** @param kind what is at hand and could be used now; null for nothing but keys. */
  render(kind: HintKind | null): void {
    const shown = kind !== null && !this.#used.has(kind);
    this.#element.hidden = !shown;
    if (shown) setText(this.#element, WORDS[kind]);
  }

  used(kind: HintKind): void {
    this.#used.add(kind);
    this.render(null);
  }
}
