/** The value below which `share` of the sample lies (nearest rank); null where there is none. */
export function percentile(values: readonly number[], share: number): number | null {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  const rank = Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1));
  return sorted[rank] ?? null;
}

/** The last `most` values, oldest first. */
export class Recent {
  readonly #most: number;
  #values: number[] = [];

  constructor(most: number) {
    this.#most = most;
  }

  add(value: number): void {
    this.#values.push(value);
    if (this.#values.length > this.#most) this.#values.shift();
  }

  get values(): readonly number[] {
    return this.#values;
  }

  get last(): number | null {
    return this.#values.at(-1) ?? null;
  }

  clear(): void {
    this.#values = [];
  }
}
