/** What went wrong, as one sentence and one action. Pure. */
import { ApiProblem, ApiUnreachable } from "./api";
import type { Trouble } from "./face";

const SENTENCES: Readonly<Record<string, string>> = {
  queue_full: "Every seat is taken right now.",
  no_worker: "The world is still getting ready.",
  shutting_down: "The server is about to restart.",
  quota_exceeded: "Too many sessions were begun from your address.",
  key_required: "This server opens worlds only to those with a key.",
  unknown_session: "The server does not know this session any more. It may have been restarted.",
  unreachable: "The server does not answer.",
  unknown_start_point: "That place is not in this world.",
  no_media_server: "The media server of this world cannot be reached from this browser.",
  no_webrtc: "This browser blocks WebRTC. Allow it for this page or use another browser.",
};

export function troubleOf(error: unknown): Trouble {
  if (error instanceof ApiProblem || error instanceof ApiUnreachable) {
    return {
      sentence: SENTENCES[error.code] ?? "The server could not do that.",
      action: "retry",
      code: error.code,
      detail: error.message,
    };
  }
  return {
    sentence: "Something in this page went wrong.",
    action: "reload",
    code: "page_error",
    detail: error instanceof Error ? error.message : String(error),
  };
}

export const NO_MEDIA_SERVER: Trouble = {
  sentence: SENTENCES["no_media_server"] ?? "",
  action: "retry",
  code: "no_media_server",
  detail: "It does not answer: it may be down, or a firewall stands before it.",
};

export const NO_WEBRTC: Trouble = {
  sentence: SENTENCES["no_webrtc"] ?? "",
  action: "retry",
  code: "no_webrtc",
  detail: "RTCPeerConnection is missing or could not be made.",
};
