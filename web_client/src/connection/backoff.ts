/** How long to wait before try number `attempt` (0 = the first): quickly at first, never rarely. */
const STEPS_MS = [0, 250, 500, 1000, 2000, 3000] as const;

/** @param random in 0..1, so that a crowd does not come back in step. */
export function backoffMs(attempt: number, random: number): number {
  const step = STEPS_MS[Math.min(attempt, STEPS_MS.length - 1)] ?? 3000;
  return step * (0.8 + 0.4 * random);
}
