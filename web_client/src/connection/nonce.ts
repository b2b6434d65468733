/** Random numbers where a page over plain http has no `crypto.randomUUID`. */

/** A connection's nonce: 32 random bits, never 0 (0 = no receipt). */
export function newNonce(random: (into: Uint32Array<ArrayBuffer>) => unknown): number {
  const [value] = drawn(random);
  return value === undefined || value === 0 ? 1 : value;
}

function drawn(random: (into: Uint32Array<ArrayBuffer>) => unknown): Uint32Array {
  const into = new Uint32Array(1);
  random(into);
  return into;
}
