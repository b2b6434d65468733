/** Reading and writing EBML, of which WebM is made (RFC 8794). Pure. */

export interface Element {
  readonly id: number;
  readonly body: number; // where its content begins
  readonly size: number | null; // null = unknown: until something of its level follows
}

/** The element that begins at `at`; null where none does, or not all of its head is there. */
export function element(bytes: Uint8Array, at: number): Element | null {
  const first = bytes[at];
  if (first === undefined || first === 0) return null;
  const idLength = Math.clz32(first) - 23;
  if (idLength > 4) return null;
  const marker = bytes[at + idLength];
  if (marker === undefined || marker === 0) return null;
  const length = Math.clz32(marker) - 23;
  if (at + idLength + length > bytes.length) return null;
  const id = readNumber(bytes, at, idLength);
  const raw = readNumber(bytes, at + idLength + 1, length - 1) + (marker & (0xff >> length)) * 256 ** (length - 1);
  const unknown = raw === 2 ** (7 * length) - 1;
  return { id, body: at + idLength + length, size: unknown ? null : raw };
}

export function readNumber(bytes: Uint8Array, at: number, length: number): number {
  let value = 0;
  for (let index = 0; index < length; index += 1) value = value * 256 + (bytes[at + index] ?? 0);
  return value;
}

export function writeNumber(bytes: Uint8Array, at: number, length: number, value: number): void {
  let rest = value;
  for (let index = length - 1; index >= 0; index -= 1) {
    bytes[at + index] = rest % 256;
    rest = Math.floor(rest / 256);
  }
}

export function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** A whole element. @param id its bytes, marker included. */
export function written(id: number, content: Uint8Array): Uint8Array<ArrayBuffer> {
  const idLength = id > 0xffffff ? 4 : id > 0xffff ? 3 : id > 0xff ? 2 : 1;
  const head = new Uint8Array(idLength + 8);
  writeNumber(head, 0, idLength, id);
  writeNumber(head, idLength, 8, content.length);
  head[idLength] = 0x01; // eight bytes of size
  return joined([head, content]);
}

/** An element that holds a number. */
export function number(id: number, value: number): Uint8Array<ArrayBuffer> {
  const content = new Uint8Array(6);
  writeNumber(content, 0, content.length, value);
  return written(id, content);
}
