import { describe, expect, it } from "vitest";
import { decode, encode, receiptOf } from "./codec";
import { NotInSchema } from "./guard";

describe("decode", () => {
  it("reads a status message of each kind", () => {
    const frames = { pts: 4294967295, frame_id: "9", receipt: "18446744073709551615" };
    expect(decode("StatusMessage", JSON.stringify({ type: "frames", frames: [frames] }))).toEqual({
      type: "frames",
      frames: [frames],
    });
    expect(decode("StatusMessage", '{"type":"ack","id":"a","epoch":2}')).toEqual({
      type: "ack",
      id: "a",
      epoch: 2,
    });
  });

  it("fills in what the server left out and ignores what a newer one adds", () => {
    expect(
      decode("StatusMessage", '{"type":"state","state":"running","mood":"good"}'),
    ).toEqual({ type: "state", state: "running", reason: null, paused: false, stage: null });
  });

  it.each([
    ["no JSON", "{"],
    ["no object", "[]"],
    ["an unknown type", '{"type":"surprise"}'],
    ["a missing field", '{"type":"ack","id":"a"}'],
    ["a number as text", '{"type":"ack","id":"a","epoch":"2"}'],
    ["half a number", '{"type":"ack","id":"a","epoch":0.5}'],
    ["a number out of range", '{"type":"ack","id":"a","epoch":-1}'],
    ["a state that there is not", '{"type":"state","state":"asleep"}'],
    ["an empty list", '{"type":"frames","frames":[]}'],
    ["u64 as a number", '{"type":"frames","frames":[{"pts":0,"frame_id":1,"receipt":"0"}]}'],
    ["u64 that is none", '{"type":"frames","frames":[{"pts":0,"frame_id":"x","receipt":"0"}]}'],
  ])("refuses %s", (_, text) => {
    expect(() => decode("StatusMessage", text)).toThrow(NotInSchema);
  });

  it("names the place that is wrong", () => {
    const text = '{"type":"frames","frames":[{"pts":-1,"frame_id":"1","receipt":"0"}]}';
    expect(() => decode("StatusMessage", text)).toThrow("frames[0].pts");
  });

  it("takes null where the schema has it, and nothing else", () => {
    const view = { session_id: "s", world: "tiny", start_point: null, status: "running" };
    expect(decode("SessionView", JSON.stringify(view)).start_point).toBeNull();
    expect(() => decode("SessionView", JSON.stringify({ ...view, start_point: 3 }))).toThrow(
      NotInSchema,
    );
  });
});

describe("receiptOf", () => {
  it("splits a u64 without losing digits", () => {
    expect(receiptOf("18446744073709551615")).toEqual({ nonce: 4294967295, seq: 4294967295 });
    expect(receiptOf(String((7n << 32n) | 41n))).toEqual({ nonce: 7, seq: 41 });
    expect(receiptOf("0")).toEqual({ nonce: 0, seq: 0 });
  });
});

describe("encode", () => {
  it("writes the words of the wire", () => {
    expect(encode({ type: "hello", id: "a", nonce: 1, version: 1 })).toBe(
      '{"type":"hello","id":"a","nonce":1,"version":1}',
    );
  });
});
