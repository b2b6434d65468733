import type { Axes } from "../input/axes";
import { REACH, type Side, TouchSticks } from "../input/touchSticks";
import { el } from "./dom";

export interface TouchHandlers {
  /** Whether fingers steer the world now. */
  readonly playing: () => boolean;
  readonly steer: (axes: Axes) => void;
}

/** Draws and feeds the two sticks under a player's thumbs. */
export class Touch {
  readonly #sticks = new TouchSticks();
  readonly #handlers: TouchHandlers;
  readonly #drawn: Readonly<Record<Side, HTMLElement>>;

  constructor(stage: HTMLElement, layer: HTMLElement, handlers: TouchHandlers) {
    this.#handlers = handlers;
    this.#drawn = { walk: drawing("walk"), look: drawing("look") };
    layer.append(this.#drawn.walk, this.#drawn.look);
    stage.addEventListener("pointerdown", (event) => {
      this.#down(stage, event);
    });
    stage.addEventListener("pointermove", (event) => {
      if (this.#sticks.move(event.pointerId, at(event))) this.#changed();
    });
    for (const end of ["pointerup", "pointercancel", "lostpointercapture"] as const) {
      stage.addEventListener(end, (event) => {
        if (this.#sticks.up(event.pointerId)) this.#changed();
      });
    }
    document.addEventListener("pointerdown", ({ pointerType }) => {
      if (pointerType === "mouse") document.body.classList.remove("by-touch");
    });
    // Older Safari scrolls and zooms although `touch-action` says no.
    stage.addEventListener("touchstart", (event) => {
      if (handlers.playing() && event.cancelable) event.preventDefault();
    }, { passive: false });
  }

  /** Let go of everything that fingers hold. */
  releaseAll(): void {
    this.#sticks.releaseAll();
    this.#draw();
  }

  #down(stage: HTMLElement, event: PointerEvent): void {
    if (event.pointerType === "mouse" || !this.#handlers.playing()) return;
    if (!this.#sticks.down(event.pointerId, at(event), window.innerWidth)) return;
    event.preventDefault();
    document.body.classList.add("by-touch");
    try {
      stage.setPointerCapture(event.pointerId);
    } catch {
      // The finger is gone already: its up or cancel follows.
    }
    this.#changed();
  }

  #changed(): void {
    this.#handlers.steer(this.#sticks.axes);
    this.#draw();
  }

  #draw(): void {
    for (const side of ["walk", "look"] as const) {
      const drawn = this.#drawn[side];
      const stick = this.#sticks.stick(side);
      drawn.classList.toggle("there", stick !== null);
      if (stick === null) continue;
      const { middle, finger } = stick;
      drawn.style.transform = `translate(${middle.x}px, ${middle.y}px)`;
      const knob = drawn.firstElementChild as HTMLElement;
      knob.style.transform = `translate(${finger.x - middle.x}px, ${finger.y - middle.y}px)`;
    }
  }
}

function at(event: PointerEvent): { x: number; y: number } {
  return { x: event.clientX, y: event.clientY };
}

function drawing(side: Side): HTMLElement {
  const stick = el(
    "div",
    { class: `stick stick-${side}`, "aria-hidden": "true", testid: `stick-${side}` },
    el("div", { class: "knob" }),
  );
  stick.style.setProperty("--reach", `${REACH}px`);
  return stick;
}
