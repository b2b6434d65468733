/**
 * The end of a WebM stream as a file of its own. Pure.
 *
 * A live WebM is a header and then clusters, each of which begins with a key frame: header plus the
 * last clusters, their clocks set back, is a complete video. Element numbers are those of RFC 8794
 * (EBML) and RFC 9559 (Matroska).
 */

const CLUSTER = 0x1f43b675;
const CUES = 0x1c53bb6b;
const SEGMENT = 0x18538067;
const INFO = 0x1549a966;
const TIMESTAMP = 0xe7;
const SIMPLE_BLOCK = 0xa3;
const BLOCK_GROUP = 0xa0;
const DURATION = 0x4489;

interface Cluster {
  readonly start: number; // where its id begins
  readonly end: number;
  readonly stamp: { readonly at: number; readonly length: number }; // the timestamp's bytes
  readonly ms: number; // of its first block
  readonly lastMs: number; // of its last one
}

interface Element {
  readonly id: number;
  readonly body: number; // where its content begins
  readonly size: number | null; // null = unknown: until something of its level follows
}

export class WebmTail {
  readonly #keptMs: number;
  #header: Uint8Array = new Uint8Array(0);
  #complete = false; // the header is
  #pieces: { readonly atMs: number; readonly bytes: Uint8Array }[] = [];

  /** @param keptMs how much is kept: the clip and the time between two key frames. */
  constructor(keptMs: number) {
    this.#keptMs = keptMs;
  }

  /** The next bytes of the stream, in whatever pieces they come. */
  push(bytes: Uint8Array, atMs: number): void {
    let rest = bytes;
    if (!this.#complete) {
      const all = joined([this.#header, bytes]);
      const first = nextCluster(all, 0);
      this.#header = first === null ? all : all.slice(0, first);
      if (first === null) return;
      this.#complete = true;
      rest = all.slice(first);
    }
    this.#pieces.push({ atMs, bytes: rest });
    this.#pieces = this.#pieces.filter((piece) => piece.atMs > atMs - this.#keptMs);
  }

  /** @returns a video of the last `ms` (and up to the key frame before), or null for none yet. */
  clip(ms: number): Uint8Array<ArrayBuffer> | null {
    const bytes = joined(this.#pieces.map((piece) => piece.bytes));
    const clusters = clustersOf(bytes);
    const last = clusters.at(-1);
    if (last === undefined) return null;
    const wanted = last.lastMs - ms;
    const from = clusters.findLast((cluster) => cluster.ms <= wanted) ?? clusters[0];
    if (from === undefined) return null;
    const body = bytes.slice(from.start, last.end);
    for (const cluster of clusters) {
      if (cluster.start < from.start) continue;
      const { at, length } = cluster.stamp;
      writeNumber(body, at - from.start, length, cluster.ms - from.ms);
    }
    return joined([withDuration(this.#header, last.lastMs - from.ms), body]);
  }
}

function clustersOf(bytes: Uint8Array): Cluster[] {
  const clusters: Cluster[] = [];
  for (let at = nextCluster(bytes, 0); at !== null; ) {
    const cluster = readCluster(bytes, at);
    if (cluster !== null) clusters.push(cluster);
    at = nextCluster(bytes, cluster?.end ?? at + 4);
  }
  return clusters;
}

/** A cluster's id, its size, and then a timestamp: picture data does not look like that. */
function nextCluster(bytes: Uint8Array, from: number): number | null {
  for (let at = from; at + 4 <= bytes.length; at += 1) {
    if (bytes[at] !== 0x1f || bytes[at + 1] !== 0x43) continue;
    if (bytes[at + 2] !== 0xb6 || bytes[at + 3] !== 0x75) continue;
    const cluster = element(bytes, at);
    if (cluster !== null && element(bytes, cluster.body)?.id === TIMESTAMP) return at;
  }
  return null;
}

function readCluster(bytes: Uint8Array, start: number): Cluster | null {
  const cluster = element(bytes, start);
  if (cluster === null) return null;
  const limit = cluster.size === null ? bytes.length : Math.min(bytes.length, cluster.body + cluster.size);
  let stamp: Cluster["stamp"] | null = null;
  let ms = 0;
  let lastMs = 0;
  let end = cluster.body;
  while (end < limit) {
    const child = element(bytes, end);
    if (child?.size == null || child.id === CLUSTER || child.id === CUES) break;
    const next = child.body + child.size;
    if (next > limit) break; // the rest has not come yet
    if (child.id === TIMESTAMP) {
      stamp = { at: child.body, length: child.size };
      ms = lastMs = readNumber(bytes, child.body, child.size);
    } else if (child.id === SIMPLE_BLOCK || child.id === BLOCK_GROUP) {
      lastMs = Math.max(lastMs, ms + blockMs(bytes, child));
    }
    end = next;
  }
  return stamp === null ? null : { start, end, stamp, ms, lastMs };
}

function blockMs(bytes: Uint8Array, child: Element): number {
  const block = child.id === BLOCK_GROUP ? element(bytes, child.body) : child;
  if (block === null) return 0;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return view.getInt16(block.body + 1); // after the track's number, one byte for any sane track
}

/** Say in the header how long it is; players then know where one can go. */
function withDuration(header: Uint8Array, ms: number): Uint8Array {
  const info = infoOf(header);
  if (info?.size == null) return header;
  const duration = new Uint8Array(11);
  const view = new DataView(duration.buffer);
  view.setUint16(0, DURATION);
  view.setUint8(2, 0x88);
  view.setFloat64(3, ms); // in the stream's unit, a millisecond unless it says otherwise
  const size = new Uint8Array(8);
  writeNumber(size, 0, 8, info.size + duration.length);
  size[0] = 0x01;
  const body = header.slice(info.body, info.body + info.size);
  return joined([header.slice(0, info.idEnd), size, body, duration, header.slice(info.body + info.size)]);
}

function infoOf(header: Uint8Array): (Element & { idEnd: number }) | null {
  for (let at = 0; at < header.length; ) {
    const one = element(header, at);
    if (one === null) return null;
    if (one.id === INFO) return { ...one, idEnd: at + 4 };
    if (one.id === SEGMENT) at = one.body;
    else if (one.size === null) return null;
    else at = one.body + one.size;
  }
  return null;
}

function element(bytes: Uint8Array, at: number): Element | null {
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

function readNumber(bytes: Uint8Array, at: number, length: number): number {
  let value = 0;
  for (let index = 0; index < length; index += 1) value = value * 256 + (bytes[at + index] ?? 0);
  return value;
}

function writeNumber(bytes: Uint8Array, at: number, length: number, value: number): void {
  let rest = value;
  for (let index = length - 1; index >= 0; index -= 1) {
    bytes[at + index] = rest % 256;
    rest = Math.floor(rest / 256);
  }
}

function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
