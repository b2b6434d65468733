/** The last half minute of a figure as a line. Pure. */

export const SPAN_MS = 30_000;
export const WIDTH = 300;
export const HEIGHT = 36;

export interface Sample {
  readonly atMs: number;
  readonly value: number;
}

/** Samples of the last 30 s, oldest first. */
export class Trace {
  #samples: Sample[] = [];

  add(atMs: number, value: number): void {
    this.#samples.push({ atMs, value });
    this.#samples = this.#samples.filter((sample) => sample.atMs > atMs - SPAN_MS);
  }

  /** What is still within the span. */
  since(nowMs: number): readonly Sample[] {
    return this.#samples.filter((sample) => sample.atMs > nowMs - SPAN_MS);
  }
}

/** @returns an SVG path through the samples, now at the right edge; empty for none. */
export function lineOf(samples: readonly Sample[], nowMs: number): string {
  const top = Math.max(...samples.map(({ value }) => value), 1) * 1.1;
  const points = samples.map(({ atMs, value }) => {
    const x = WIDTH * (1 - (nowMs - atMs) / SPAN_MS);
    const y = HEIGHT * (1 - Math.max(0, value) / top);
    return `${x.toFixed(1)} ${y.toFixed(1)}`;
  });
  const [first] = points;
  if (first === undefined) return "";
  // A single sample is a point: a line of no length with round ends.
  return `M${points.length === 1 ? `${first} L${first}` : points.join(" L")}`;
}
