import type { Shelf } from "../session/store";

/** Small settings that outlive a visit, where the browser keeps such things. */
export class Preferences {
  readonly #shelf: () => Shelf;

  constructor(shelf: () => Shelf) {
    this.#shelf = shelf;
  }

  get(name: string): string | null {
    try {
      return this.#shelf().getItem(`veldt.${name}`);
    } catch {
      return null; // forbidden: defaults
    }
  }

  set(name: string, value: string): void {
    try {
      this.#shelf().setItem(`veldt.${name}`, value);
    } catch {
      return; // it holds for this visit
    }
  }
}
