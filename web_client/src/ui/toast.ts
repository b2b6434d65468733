import type { Clock } from "../clock";

const SHOWN_MS = 2500;

/** One line that passes. */
export class Toast {
  readonly #element: HTMLElement;
  readonly #clock: Clock;
  #cancel: (() => void) | null = null;

  constructor(element: HTMLElement, clock: Clock) {
    this.#element = element;
    this.#clock = clock;
  }

  say(words: string): void {
    this.#cancel?.();
    this.#element.textContent = words;
    this.#element.classList.add("there");
    this.#cancel = this.#clock.after(SHOWN_MS, () => {
      this.#element.classList.remove("there");
      this.#element.textContent = "";
    });
  }
}
