import { afterEach, describe, expect, it, vi } from "vitest";
import { framesAreReadable } from "./livekit";

/** A browser with or without each of the two ways to read encoded frames. */
function browser({ transform, streams }: { transform: boolean; streams: boolean }): void {
  if (transform) vi.stubGlobal("RTCRtpScriptTransform", () => undefined);
  const receiver = (): void => undefined;
  receiver.prototype = streams ? { createEncodedStreams: () => undefined } : {};
  vi.stubGlobal("RTCRtpReceiver", receiver);
  vi.stubGlobal("navigator", {});
}

describe("framesAreReadable", () => {
  afterEach(() => {
    vi.unstubAllGlobals();
  });

  it("is so in Safari and Firefox", () => {
    browser({ transform: true, streams: false });
    expect(framesAreReadable()).toBe(true);
  });

  it("is not so in Chromium, which would show each picture later for it", () => {
    browser({ transform: true, streams: true });
    expect(framesAreReadable()).toBe(false);
    browser({ transform: true, streams: false });
    vi.stubGlobal("navigator", { userAgentData: {} });
    expect(framesAreReadable()).toBe(false);
  });

  it("is not so where there is no way at all", () => {
    browser({ transform: false, streams: false });
    expect(framesAreReadable()).toBe(false);
  });
});
