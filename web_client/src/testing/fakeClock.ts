import type { Clock } from "../clock";

interface Due {
  at: number;
  action: () => void;
}

/** A clock that only moves when a test steps it. */
export class FakeClock implements Clock {
  #now: number;
  #due: Due[] = [];

  constructor(start = 0) {
    this.#now = start;
  }

  now(): number {
    return this.#now;
  }

  after(ms: number, action: () => void): () => void {
    const due = { at: this.#now + ms, action };
    this.#due.push(due);
    return () => {
      this.#due = this.#due.filter((other) => other !== due);
    };
  }

  /** How many timers are running. */
  get pending(): number {
    return this.#due.length;
  }

  /** Move on by `ms`, running what falls due on the way, in order. */
  step(ms: number): void {
    const end = this.#now + ms;
    for (;;) {
      const next = this.#due.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.#due = this.#due.filter((other) => other !== next);
      this.#now = Math.max(this.#now, next.at);
      next.action();
    }
    this.#now = end;
  }
}
