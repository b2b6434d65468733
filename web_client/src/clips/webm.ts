/**
 * The end of a WebM stream as a file of its own. Pure.
 *
 * A live WebM is a header and then clusters, each of which begins with a key frame: header plus the
 * last clusters, their clocks set back, is a complete video. It says how long it is and where its key
 * frames are, so that players can go to any place in it. Element numbers are those of RFC 9559
 * (Matroska).
 */

import { element, type Element, joined, number, readNumber, writeNumber, written } from "./ebml";

const CLUSTER = 0x1f43b675;
const CUES = 0x1c53bb6b;
const SEGMENT = 0x18538067;
const INFO = 0x1549a966;
const TIMESTAMP = 0xe7;
const SIMPLE_BLOCK = 0xa3;
const BLOCK_GROUP = 0xa0;
const DURATION = 0x4489;
const TRACKS = 0x1654ae6b;
const CUE_POINT = 0xbb;
const CUE_TIME = 0xb3;
const CUE_TRACK_POSITIONS = 0xb7;
const CUE_TRACK = 0xf7;
const CUE_CLUSTER_POSITION = 0xf1;
const VIDEO_TRACK = 1; // the only one

interface Cluster {
  readonly start: number; // where its id begins
  readonly end: number;
  readonly stamp: { readonly at: number; readonly length: number }; // the timestamp's bytes
  readonly ms: number; // of its first block
  readonly lastMs: number; // of its last one
}

/** A video, and how long it is. */
export interface Clip {
  readonly file: Uint8Array<ArrayBuffer>;
  readonly ms: number;
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
  clip(ms: number): Clip | null {
    const bytes = joined(this.#pieces.map((piece) => piece.bytes));
    const clusters = clustersOf(bytes);
    const last = clusters.at(-1);
    if (last === undefined) return null;
    const wanted = last.lastMs - ms;
    const from = clusters.findLast((cluster) => cluster.ms <= wanted) ?? clusters[0];
    if (from === undefined) return null;
    const shown = clusters.filter((cluster) => cluster.start >= from.start);
    const body = bytes.slice(from.start, last.end);
    for (const { start, stamp, ms: at } of shown) {
      writeNumber(body, stamp.at - from.start, stamp.length, at - from.ms);
      sayLength(body, start - from.start, shown.find((next) => next.start > start)?.start ?? last.end, from.start);
    }
    const keys = shown.map(({ start, ms: at }) => ({ at: start - from.start, ms: at - from.ms }));
    const file = fileOf(this.#header, last.lastMs - from.ms, keys, body);
    return { file, ms: last.lastMs - from.ms };
  }

  /** Bytes that are kept. */
  get size(): number {
    return this.#pieces.reduce((sum, { bytes }) => sum + bytes.length, this.#header.length);
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

/** Header, key frames and clusters as one file that says how long it is. */
function fileOf(
  header: Uint8Array,
  ms: number,
  keys: readonly { at: number; ms: number }[],
  body: Uint8Array,
): Uint8Array<ArrayBuffer> {
  const segment = partOf(header, SEGMENT);
  const info = partOf(header, INFO);
  const tracks = partOf(header, TRACKS);
  if (segment === null || info?.size == null || tracks?.size == null) return joined([header, body]);
  const duration = new Uint8Array(8);
  new DataView(duration.buffer).setFloat64(0, ms); // in the stream's unit, a millisecond
  const about = joined([
    written(INFO, joined([header.slice(info.body, info.body + info.size), written(DURATION, duration)])),
    written(TRACKS, header.slice(tracks.body, tracks.body + tracks.size)),
  ]);
  // How long the cues are does not depend on what they say, so they can stand before what they name.
  const before = about.length + cuesOf(keys, 0).length;
  const content = joined([about, cuesOf(keys, before), body]);
  return joined([header.slice(0, segment.start), written(SEGMENT, content)]);
}

/** Where the key frames are. @param before bytes of the segment before the first cluster. */
function cuesOf(keys: readonly { at: number; ms: number }[], before: number): Uint8Array {
  const points = keys.map(({ at, ms }) =>
    written(
      CUE_POINT,
      joined([
        number(CUE_TIME, ms),
        written(
          CUE_TRACK_POSITIONS,
          joined([number(CUE_TRACK, VIDEO_TRACK), number(CUE_CLUSTER_POSITION, before + at)]),
        ),
      ]),
    ),
  );
  return written(CUES, joined(points));
}

/** A cluster of unknown length that has eight bytes for it, as Chromium writes them, says it. */
function sayLength(body: Uint8Array, start: number, end: number, from: number): void {
  const cluster = element(body, start);
  if (cluster?.size !== null || cluster.body - start !== 12) return;
  writeNumber(body, start + 4, 8, end - from - cluster.body);
  body[start + 4] = 0x01;
}

/** An element of the header, at whatever level. */
function partOf(header: Uint8Array, id: number): (Element & { start: number }) | null {
  for (let at = 0; at < header.length; ) {
    const one = element(header, at);
    if (one === null) return null;
    if (one.id === id) return { ...one, start: at };
    if (one.id === SEGMENT) at = one.body;
    else if (one.size === null) return null;
    else at = one.body + one.size;
  }
  return null;
}
