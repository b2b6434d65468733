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
  readonly text: (hud: HudSnapshot) => string;
}

/** The rows of the HUD, in their order. */
export const ROWS: readonly Row[] = [
  { id: "fps", label: "frames a second", text: (hud) => plain(hud.delivered_fps, 1) },
  { id: "target", label: "target", text: (hud) => plain(hud.target_fps) },
  { id: "k2p-now", label: "key to photon, now", text: (hud) => ms(hud.key_to_photon_now_ms) },
  { id: "k2p-p50", label: "median", text: (hud) => ms(hud.key_to_photon_p50_ms) },
  { id: "k2p-p95", label: "95 %", text: (hud) => ms(hud.key_to_photon_p95_ms) },
  { id: "chunk", label: "chunk computed in", text: (hud) => ms(hud.chunk_compute_ms) },
  { id: "compute", label: "compute factor", text: (hud) => factor(hud.compute_factor) },
  { id: "realtime", label: "real-time factor", text: (hud) => factor(hud.real_time_factor) },
  {
    id: "lease",
    label: "place in the ring",
    text: (hud) =>
      hud.lease_position === null || hud.players === null
        ? NOT_MEASURED
        : `${hud.lease_position + 1} of ${hud.players}`,
  },
  { id: "interval", label: "frame interval, 99 %", text: (hud) => ms(hud.frame_interval_p99_ms) },
  { id: "freezes", label: "freezes", text: (hud) => plain(hud.freezes) },
  { id: "dropped", label: "dropped", text: (hud) => plain(hud.frames_dropped) },
  { id: "repeated", label: "repeated", text: (hud) => plain(hud.frames_repeated) },
  {
    id: "link",
    label: "transport",
    text: (hud) => [hud.transport, hud.codec].filter((part) => part !== null).join(" · ") || NOT_MEASURED,
  },
  {
    id: "size",
    label: "picture",
    text: (hud) => (hud.width === null ? NOT_MEASURED : `${hud.width} × ${plain(hud.height)}`),
  },
  { id: "rtt", label: "round trip", text: (hud) => ms(hud.rtt_ms) },
  {
    id: "bitrate",
    label: "bit rate",
    text: (hud) =>
      hud.bitrate_kbps === null ? NOT_MEASURED : `${Math.round(hud.bitrate_kbps)} kbit/s`,
  },
  { id: "epoch", label: "epoch", text: (hud) => plain(hud.epoch) },
  { id: "session", label: "session", text: (hud) => plain(hud.session) },
];
