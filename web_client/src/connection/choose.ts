import type { Clock } from "../clock";
import { DirectConnection, type DirectHandlers } from "./direct";
import type { MediaConnection } from "./link";
import { framesAreReadable, LiveKitConnection } from "./livekit";

/** How a session's players are reached, as `POST /v1/sessions` says it. */
export type Transport = "webrtc" | "livekit";

export function transportOf(word: unknown): Transport {
  return word === "livekit" ? "livekit" : "webrtc";
}

export function makeConnection(
  clock: Clock,
  transport: Transport,
  handlers: DirectHandlers,
): MediaConnection {
  return transport === "livekit"
    ? new LiveKitConnection(clock, handlers, framesAreReadable())
    : new DirectConnection(clock, handlers);
}
