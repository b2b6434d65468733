/** Time as an argument: what runs on a clock is tested by stepping one. */
export interface Clock {
  /** Monotonic milliseconds, on the scale of `performance.now()`. */
  now(): number;
  /** Call `action` once in `ms`; the result takes that back. */
  after(ms: number, action: () => void): () => void;
}

export const browserClock: Clock = {
  now: () => performance.now(),
  after: (ms, action) => {
    const timer = setTimeout(action, ms);
    return () => {
      clearTimeout(timer);
    };
  },
};
