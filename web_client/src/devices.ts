/** Keyboard, pads and fingers of this page, led to the game or to what lies over it. */
import { browserClock } from "./clock";
import { type Axes, isStill, STILL } from "./input/axes";
import { guardGestures } from "./input/gestures";
import type { Shortcut } from "./input/keyboard";
import { listenToKeyboard } from "./input/listen";
import type { PadButton, PadLike } from "./input/padLayout";
import { Pads } from "./input/pads";
import type { Game } from "./play/game";
import { plays, takesKeys } from "./session/face";
import { dialogOpen, must } from "./ui/dom";
import { confirmFocus, moveFocus } from "./ui/focus";
import { fingersFirst, Hint, type HintKind } from "./ui/hint";
import type { KeyCaps } from "./ui/keyCaps";
import { Touch } from "./ui/touch";

const KEYBOARD = "keyboard";

export interface DeviceHandlers {
  /** @returns whether it did anything. */
  readonly shortcut: (shortcut: Shortcut) => boolean;
  readonly say: (words: string) => void;
  /** Somebody is there. */
  readonly stir: () => void;
}

export class Devices {
  readonly #game: Game;
  readonly #handlers: DeviceHandlers;
  readonly #pads: Pads;
  readonly #touch: Touch;
  readonly #hint = new Hint();

  constructor(game: Game, caps: KeyCaps, handlers: DeviceHandlers) {
    this.#game = game;
    this.#handlers = handlers;
    this.#pads = new Pads(browserClock, readPads, {
      steer: (axes) => {
        this.#steer("pad", axes);
      },
      pressed: (button) => {
        this.#padPressed(button);
      },
      found: () => {
        handlers.say("Gamepad found");
      },
      lost: () => {
        handlers.say("Gamepad gone. Keys still work.");
      },
    });
    this.#touch = new Touch(must("#stage"), must("#sticks"), {
      playing: () => this.#playing(),
      steer: (axes) => {
        this.#steer("touch", axes);
      },
    });
    game.controls.onHeld = (held) => {
      caps.held(held);
    };
    game.controls.onAxes = (axes) => {
      caps.leaning(axes);
    };
    game.controls.onReleaseAll = () => {
      this.#pads.releaseAll();
      this.#touch.releaseAll();
    };
  }

  listen(): void {
    const { controls } = this.#game;
    listenToKeyboard(window, {
      legend: (code) => controls.knows(code),
      playing: () => takesKeys(this.#game.face) && !dialogOpen(),
      pressed: (code, atMs) => {
        this.pressed(code, KEYBOARD, atMs);
      },
      released: (code) => {
        controls.release(code, KEYBOARD);
      },
      releaseAll: () => {
        controls.releaseAll();
      },
      shortcut: (shortcut) => this.#handlers.shortcut(shortcut),
      other: () => {
        if (this.#game.face === "paused" && !dialogOpen()) this.#game.pause(false);
      },
    });
    guardGestures(document, {
      playing: () => this.#playing(),
      releaseAll: () => {
        controls.releaseAll();
      },
    });
    for (const kind of ["gamepadconnected", "gamepaddisconnected"] as const) {
      window.addEventListener(kind, () => {
        this.#pads.look();
      });
    }
  }

  /** Once a second: a pad may have come without a word. */
  look(): void {
    if (this.#pads.count === 0) this.#pads.look();
    this.renderHint();
  }

  /** Say how a pad or fingers are used, where there are some and they have not been yet. */
  renderHint(): void {
    const kind = this.#pads.count > 0 ? "pad" : fingersFirst() ? "touch" : null;
    this.#hint.render(this.#playing() ? kind : null);
  }

  /** Whether anybody sees the page. */
  set awake(awake: boolean) {
    this.#pads.awake = awake;
  }

  /** A key of the legend goes down, wherever it is. */
  pressed(code: string, holder: string, atMs: number): void {
    if (this.#game.face === "paused") this.#game.pause(false);
    if (takesKeys(this.#game.face)) this.#game.controls.press(code, holder, atMs);
  }

  #playing(): boolean {
    const { face } = this.#game;
    return plays(face) && !dialogOpen();
  }

  #steer(device: HintKind, axes: Axes): void {
    if (this.#playing() && !isStill(axes)) this.#hint.used(device);
    this.#game.controls.steer(device, this.#playing() ? axes : STILL);
  }

  #padPressed(button: PadButton): void {
    this.#handlers.stir();
    if (button === "pause" && !dialogOpen()) {
      if (this.#handlers.shortcut("pause")) return;
    }
    if (button === "help") {
      if (dialogOpen()) closeDialog();
      else this.#handlers.shortcut("help");
      return;
    }
    if (this.#playing()) {
      if (button === "reset") this.#handlers.shortcut("reset");
      return;
    }
    switch (button) {
      case "back":
        if (dialogOpen()) closeDialog();
        return;
      case "confirm":
      case "pause":
        if (this.#game.face === "paused" && !dialogOpen()) this.#game.pause(false);
        else confirmFocus();
        return;
      case "up":
      case "down":
      case "left":
      case "right":
        moveFocus(button);
        return;
      case "reset":
        return;
    }
  }
}

function closeDialog(): void {
  document.querySelector<HTMLDialogElement>("dialog[open]")?.close();
}

/** Whether this browser offers gamepads to this page at all; over plain http some do not. */
export function padsAreOffered(): boolean {
  return "getGamepads" in navigator;
}

function readPads(): readonly (PadLike | null)[] {
  if (!padsAreOffered()) return [];
  try {
    return navigator.getGamepads();
  } catch {
    return []; // a policy of the page around this one forbids them
  }
}
