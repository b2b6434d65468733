/* Generated from schema.json by `npm run types` (`make types` renews both). Do not edit. */

export type Command = Hello | Reset | Pause | Resume | Prompt | Stop | Grant;
/**
 * Where a session is.
 */
export type State =
  | "queued"
  | "admitted"
  | "connecting"
  | "starting"
  | "running"
  | "suspended"
  | "draining"
  | "closed"
  | "failed"
  | "expired";
/**
 * Why a session ended; a closed list, part of the protocol.
 */
export type EndReason =
  | "left"
  | "stopped"
  | "kicked"
  | "shutdown"
  | "claim_missed"
  | "queue_abandoned"
  | "connect_timeout"
  | "connect_failed"
  | "disconnected"
  | "idle"
  | "time_limit"
  | "worker_died"
  | "world_failed";
export type SessionEvent = QueuedEvent | AdmittedEvent | StateEvent | EndedEvent;
export type StatusMessage = HelloStatus | Ack | StateStatus | Lease | Chunk | Frames | Error;

/**
 * A command has taken effect.
 */
export interface Ack {
  type: "ack";
  id: string;
  epoch: number;
}
/**
 * A seat is ready, for this long.
 */
export interface AdmittedEvent {
  event: "admitted";
  claim_seconds: number;
}
/**
 * One chunk has been decoded.
 */
export interface Chunk {
  type: "chunk";
  epoch: number;
  index: number;
  receipt: string;
  frame_count: number;
  compute_ms: number;
  real_time_factor: number;
}
/**
 * First of a connection, repeated until acknowledged; only then controls count.
 */
export interface Hello {
  type: "hello";
  id: string;
  nonce: number;
  version: number;
}
/**
 * Begin again from the session's start; bumps the epoch.
 */
export interface Reset {
  type: "reset";
  id: string;
}
/**
 * Stop generating; the last frame stands.
 */
export interface Pause {
  type: "pause";
  id: string;
}
/**
 * Go on after `pause`.
 */
export interface Resume {
  type: "resume";
  id: string;
}
/**
 * Change the prompt, from the next chunk on. Worlds without prompts refuse it.
 */
export interface Prompt {
  type: "prompt";
  id: string;
  text: string;
}
/**
 * End the session.
 */
export interface Stop {
  type: "stop";
  id: string;
}
/**
 * Hand the controls to a spectator.
 */
export interface Grant {
  type: "grant";
  id: string;
  to: string;
}
/**
 * Body of `POST /v1/sessions/{id}/connect`.
 */
export interface Connect {
  sdp?: string | null;
  take_over?: boolean;
  frame_metadata?: boolean;
}
/**
 * Answer of `connect`: what the page needs to join.
 */
export interface Connection {
  transport: "webrtc" | "livekit" | "memory";
  sdp: string | null;
  url: string | null;
  token: string | null;
  ice_servers: IceServer[];
  connect_seconds: number;
}
/**
 * One entry of `RTCConfiguration.iceServers`.
 */
export interface IceServer {
  urls: string[];
  username: string | null;
  credential: string | null;
}
/**
 * One key of the world's legend.
 */
export interface ControlView {
  code: string;
  label: string;
  aliases: string[];
}
/**
 * Body of `POST /v1/sessions`.
 */
export interface CreateSession {
  world?: string | null;
  start_point?: string | null;
  image_id?: string | null;
  prompt?: string | null;
}
/**
 * Answer of `POST /v1/sessions`.
 */
export interface Created {
  session_id: string;
  session_token: string;
  status: State;
  transport: string;
  world: string;
  claim_seconds: number | null;
  queue_position: number | null;
  eta_seconds: number | null;
}
/**
 * The last event of a session.
 */
export interface EndedEvent {
  event: "ended";
  reason: EndReason;
  played_seconds: number;
}
/**
 * Something the receiver sent was refused; nothing has changed.
 */
export interface Error {
  type: "error";
  code: string;
  message: string;
  id: string | null;
  count: number;
}
/**
 * Which control state a published frame shows.
 */
export interface FrameReceipt {
  pts: number;
  frame_id: string;
  receipt: string;
}
/**
 * Receipts of frames just published, where the transport cannot carry them itself.
 */
export interface Frames {
  type: "frames";
  /**
   * @minItems 1
   * @maxItems 64
   */
  frames: FrameReceipt[];
}
/**
 * Sent to everybody who joins.
 */
export interface HelloStatus {
  type: "hello";
  version: number;
  world: string;
  session: string;
  epoch: number;
  fps: number;
  frames_per_chunk: number;
}
/**
 * What a player holds. Newest `seq` of the live `nonce` wins; stale ones are dropped.
 */
export interface Keys {
  epoch: number;
  nonce: number;
  seq: number;
  /**
   * @maxItems 16
   */
  held: string[];
  presses?: {
    [k: string]: number;
  };
  axes?: {
    [k: string]: number;
  };
}
/**
 * Where this session stands among those that share the worker; sent when it changes.
 */
export interface Lease {
  type: "lease";
  position: number;
  players: number;
}
/**
 * RFC 9457 `application/problem+json`.
 */
export interface Problem {
  type: string;
  title: string;
  status: number;
  code: string;
  detail: string;
  field: string | null;
  session_id: string | null;
}
/**
 * Waiting; sent whenever one of the numbers changes.
 */
export interface QueuedEvent {
  event: "queued";
  queue_position: number;
  eta_seconds: number | null;
}
/**
 * Answer of `/readyz`: 200 when ready, else 503 with the cold-start stage.
 */
export interface Readiness {
  ready: boolean;
  stage: string;
  progress: number | null;
}
/**
 * The session moved.
 */
export interface StateEvent {
  event: "state";
  state: State;
  stage: string | null;
}
/**
 * Answer of `GET /v1/sessions/{id}`.
 */
export interface SessionView {
  session_id: string;
  world: string;
  start_point: string | null;
  status: State;
  reason: EndReason | null;
  stage: string | null;
  queue_position: number | null;
  eta_seconds: number | null;
  claim_seconds: number | null;
  played_seconds: number;
}
/**
 * Answer of `POST /v1/sessions/{id}/tokens`: what a spectator's page needs besides the id.
 */
export interface SpectatorLink {
  session_id: string;
  watch_token: string;
}
/**
 * A place to begin; its picture is a PNG behind `picture`.
 */
export interface StartPointView {
  name: string;
  title: string;
  picture: string;
}
/**
 * The session's state has changed, or its picture stands for a reason.
 */
export interface StateStatus {
  type: "state";
  state: State;
  reason: EndReason | null;
  paused: boolean;
  stage: string | null;
}
/**
 * One world of `GET /v1/worlds`.
 */
export interface WorldView {
  name: string;
  title: string;
  about: string;
  width: number;
  height: number;
  fps: number;
  frames_per_chunk: number;
  start_points: StartPointView[];
  controls: ControlView[];
  axes: string[];
  prompt: boolean;
  image: boolean;
}
/**
 * Answer of `GET /v1/worlds`, and where browsers go for media if not to this service.
 */
export interface Worlds {
  worlds: WorldView[];
  media_server: string | null;
}
