/** What is used of livekit-client: a chunk of its own, loaded only where players come through LiveKit. */
export { DefaultReconnectPolicy, DisconnectReason, Room, RoomEvent, setLogLevel, Track } from "livekit-client";
export { default as FrameMetadataWorker } from "livekit-client/frame-metadata-worker?worker";
