/** What the HUD knows, as its copy button gives it. `null` = not measured, never 0. */
export interface HudSnapshot {
  state: string;
  world: string | null;
  session: string | null;
  epoch: number | null;
  delivered_fps: number | null;
  target_fps: number | null;
  key_to_photon_now_ms: number | null;
  key_to_photon_p50_ms: number | null;
  key_to_photon_p95_ms: number | null;
  key_to_photon_samples: number;
  chunk_compute_ms: number | null;
  compute_factor: number | null;
  real_time_factor: number | null;
  chunk_index: number | null;
  lease_position: number | null; // 0 = holds the lease
  players: number | null;
  frame_interval_p50_ms: number | null;
  frame_interval_p99_ms: number | null;
  freezes: number | null;
  freeze_seconds: number | null;
  frames_dropped: number | null;
  frames_repeated: number | null;
  frame_id: string | null;
  nonce: number | null;
  sent_seq: number | null;
  shown_seq: number | null;
  transport: string | null;
  codec: string | null;
  width: number | null;
  height: number | null;
  rtt_ms: number | null;
  jitter_buffer_ms: number | null;
  bitrate_kbps: number | null;
}

const NOT_MEASURED = "not measured";

function ms(value: number | null): string {
  return value === null ? NOT_MEASURED : `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
}

function plain(value: number | string | null, digits = 0): string {
  if (value === null) return NOT_MEASURED;
  return typeof value === "string" ? value : value.toFixed(digits);
}

function factor(value: number | null): string {
  return value === null ? NOT_MEASURED : `${value.toFixed(2)} ×`;
}

export interface Row {
  readonly id: string; // data-testid is hud-<id>
  readonly label: string;
  /** What it means, for who asks. */
  readonly why: string;
  readonly text: (hud: HudSnapshot) => string;
}

/** The rows of the HUD, in their order. */
export const ROWS: readonly Row[] = [
  {
    id: "fps",
    label: "frames a second",
    why: "New pictures on your screen in each second.",
    text: (hud) => plain(hud.delivered_fps, 1),
  },
  {
    id: "target",
    label: "target",
    why: "As many as the world is made for.",
    text: (hud) => plain(hud.target_fps),
  },
  {
    id: "k2p-now",
    label: "key to photon, now",
    why: "From your last press to the first picture that shows it.",
    text: (hud) => ms(hud.key_to_photon_now_ms),
  },
  {
    id: "k2p-p50",
    label: "median",
    why: "Half of your presses show sooner than this.",
    text: (hud) => ms(hud.key_to_photon_p50_ms),
  },
  {
    id: "k2p-p95",
    label: "95 %",
    why: "Nineteen of twenty presses show sooner. The line is the last half minute.",
    text: (hud) => ms(hud.key_to_photon_p95_ms),
  },
  {
    id: "chunk",
    label: "chunk computed in",
    why: "The world is made in pieces of a few pictures, called chunks: how long the newest one took to make.",
    text: (hud) => ms(hud.chunk_compute_ms),
  },
  {
    id: "compute",
    label: "compute factor",
    why: "That time, as a share of the time the chunk plays. Below 1 the server makes it faster than you see it.",
    text: (hud) => factor(hud.compute_factor),
  },
  {
    id: "realtime",
    label: "real-time factor",
    why: "How far apart chunks come, as a share of the time one plays. About 1 is right; 2 is half speed.",
    text: (hud) => factor(hud.real_time_factor),
  },
  {
    id: "lease",
    label: "place in the round",
    why: "All players of this server get their chunks in turn: your place in that round.",
    text: (hud) =>
      hud.lease_position === null || hud.players === null
        ? NOT_MEASURED
        : `${hud.lease_position + 1} of ${hud.players}`,
  },
  {
    id: "interval",
    label: "frame interval, 99 %",
    why: "Between two pictures; only one of a hundred took longer. High: it stutters.",
    text: (hud) => ms(hud.frame_interval_p99_ms),
  },
  {
    id: "freezes",
    label: "freezes",
    why: "How often the picture stood still, as this browser counts it.",
    text: (hud) => plain(hud.freezes),
  },
  {
    id: "dropped",
    label: "dropped",
    why: "Pictures that came, and that this computer was too slow to show.",
    text: (hud) => plain(hud.frames_dropped),
  },
  {
    id: "repeated",
    label: "repeated",
    why: "Pictures that were shown again, as no new one was there.",
    text: (hud) => plain(hud.frames_repeated),
  },
  {
    id: "link",
    label: "transport",
    why: "How pictures reach you, and how they are packed.",
    text: (hud) => [hud.transport, hud.codec].filter((part) => part !== null).join(" · ") || NOT_MEASURED,
  },
  {
    id: "size",
    label: "picture",
    why: "The world's own pixels; your screen enlarges them.",
    text: (hud) => (hud.width === null ? NOT_MEASURED : `${hud.width} × ${plain(hud.height)}`),
  },
  {
    id: "rtt",
    label: "round trip",
    why: "From here to the server and back.",
    text: (hud) => ms(hud.rtt_ms),
  },
  {
    id: "bitrate",
    label: "bit rate",
    why: "How much data comes.",
    text: (hud) =>
      hud.bitrate_kbps === null ? NOT_MEASURED : `${Math.round(hud.bitrate_kbps)} kbit/s`,
  },
  {
    id: "epoch",
    label: "epoch",
    why: "How often this world has begun again.",
    text: (hud) => plain(hud.epoch),
  },
  {
    id: "session",
    label: "session",
    why: "The name of this session, for whoever runs the server.",
    text: (hud) => plain(hud.session),
  },
];
