/** The part of `RTCPeerConnection.getStats()` that the HUD shows. Pure. */

export interface RtcFigures {
  readonly atMs: number;
  readonly codec: string | null;
  readonly width: number | null;
  readonly height: number | null;
  readonly rttMs: number | null;
  readonly bytes: number | null;
  readonly bitrateKbps: number | null;
  readonly decoded: number | null;
  readonly decodedFps: number | null;
  readonly dropped: number | null;
  readonly freezes: number | null;
  readonly freezeSeconds: number | null;
  readonly jitterBufferMs: number | null;
}

type Stat = Readonly<Record<string, unknown>>;

/** @param before the figures of an earlier reading: rates are what has changed since. */
export function readRtcStats(report: Iterable<Stat>, before: RtcFigures | null): RtcFigures {
  const stats = [...report];
  const video = stats.find((stat) => stat["type"] === "inbound-rtp" && stat["kind"] === "video");
  const codecs = stats.find((stat) => stat["type"] === "codec" && stat["id"] === video?.["codecId"]);
  const transport = stats.find((stat) => stat["type"] === "transport");
  const pair =
    stats.find((stat) => stat["id"] === transport?.["selectedCandidatePairId"]) ??
    stats.find((stat) => stat["type"] === "candidate-pair" && stat["nominated"] === true);
  const atMs = number(video?.["timestamp"]) ?? 0;
  const bytes = number(video?.["bytesReceived"]);
  const decoded = number(video?.["framesDecoded"]);
  const rtt = number(pair?.["currentRoundTripTime"]);
  const mime = codecs?.["mimeType"];
  const seconds = before === null ? 0 : (atMs - before.atMs) / 1000;
  const delay = number(video?.["jitterBufferDelay"]);
  const emitted = number(video?.["jitterBufferEmittedCount"]);
  return {
    atMs,
    codec: typeof mime === "string" ? mime.replace(/^video\//i, "") : null,
    width: number(video?.["frameWidth"]),
    height: number(video?.["frameHeight"]),
    rttMs: rtt === null ? null : rtt * 1000,
    bytes,
    bitrateKbps: rate(bytes, before?.bytes, seconds, 8 / 1000),
    decoded,
    decodedFps: rate(decoded, before?.decoded, seconds, 1),
    dropped: number(video?.["framesDropped"]),
    freezes: number(video?.["freezeCount"]),
    freezeSeconds: number(video?.["totalFreezesDuration"]),
    jitterBufferMs:
      delay === null || emitted === null || emitted === 0 ? null : (delay / emitted) * 1000,
  };
}

function number(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

function rate(
  now: number | null,
  before: number | null | undefined,
  seconds: number,
  unit: number,
): number | null {
  if (now === null || before === null || before === undefined || seconds <= 0) return null;
  return now < before ? null : ((now - before) / seconds) * unit;
}
