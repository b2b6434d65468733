/** The page of a spectator: the picture, a word about it, and keys for whoever is handed them. */
import { browserClock } from "../clock";
import { LiveKitConnection } from "../connection/livekit";
import { withoutBuffer } from "../connection/direct";
import { newNonce } from "../connection/nonce";
import { listenToKeyboard } from "../input/listen";
import { Api, type Credentials } from "../session/api";
import { el, must, setText } from "../ui/dom";
import { Stage, watchFrames } from "../ui/stage";
import { ENDED } from "../ui/words";
import { type Seat, Spectating } from "./spectating";

const KEYBOARD = "keyboard";
const PILL: Readonly<Record<Seat, string>> = {
  connecting: "Connecting",
  watching: "Watching",
  playing: "You have the controls",
  reconnecting: "Connection lost. Trying again",
  ended: "Ended",
};

export async function watch(ticket: Credentials): Promise<void> {
  const stage = new Stage();
  const pill = must("[data-testid=pill]");
  const api = new Api((url, init) => fetch(url, init), browserClock);
  const render = (seat: Seat): void => {
    document.body.dataset["state"] = seat;
    setText(pill, PILL[seat]);
    if (seat === "ended") showEnd(spectating);
  };
  const spectating = new Spectating(
    browserClock,
    api,
    ticket,
    (handlers) => new LiveKitConnection(browserClock, handlers, true),
    () => newNonce((into) => crypto.getRandomValues(into)),
    {
      changed: render,
      track: (stream, receiver) => {
        withoutBuffer(receiver);
        stage.show(stream);
      },
      cut: () => {
        stage.freeze();
      },
      shownKeys: (codes) => {
        must("#shown-keys").textContent = codes.join(" ");
      },
    },
  );
  render("connecting");
  watchFrames(stage.video, (rtp, atMs) => {
    stage.thaw();
    spectating.displayed(rtp, atMs);
  });
  listenToKeyboard(window, {
    legend: (code) => spectating.controls.knows(code),
    playing: () => spectating.seat === "playing",
    pressed: (code, atMs) => {
      if (spectating.seat === "playing") spectating.controls.press(code, KEYBOARD, atMs);
    },
    released: (code) => {
      spectating.controls.release(code, KEYBOARD);
    },
    releaseAll: () => {
      spectating.controls.releaseAll();
    },
    shortcut: () => false,
    other: () => undefined,
  });
  window.addEventListener("pagehide", () => {
    spectating.close();
  });
  const [world] = await api.worlds().catch(() => []);
  if (world !== undefined) {
    setText(must("[data-testid=world]"), world.title);
    spectating.controls.useLegend(world.controls, world.axes);
  }
  await spectating.start();
}

function showEnd({ reason }: Spectating): void {
  const words = reason === null ? null : ENDED[reason];
  must("#front").replaceChildren(
    el(
      "section",
      { class: "sheet" },
      el(
        "div",
        { class: "glass panel panel-ended" },
        el("h2", { testid: "sheet-title" }, words?.title ?? "Nothing to watch"),
        el(
          "p",
          { class: "sentence", testid: "reason" },
          words === null ? "This session is over, or the link is not whole." : "This session is over.",
        ),
        el("div", { class: "actions" }, el("a", { class: "button main", href: "./" }, "Play yourself")),
      ),
    ),
  );
}
