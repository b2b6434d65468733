import { AXES, type Axes, KEYS_OF_AXIS } from "../input/axes";
import type { ControlView } from "../protocol/messages";
import { el } from "./dom";
import { labelOf, placesOf } from "./labels";

export interface KeyCapHandlers {
  readonly press: (code: string, holder: string, atMs: number) => void;
  readonly release: (code: string, holder: string) => void;
}

type Look = "pressed" | "leaning" | "seen";

/** The keys on screen: they light when pressed, get a ring when the world shows it. */
export class KeyCaps {
  readonly #root: HTMLElement;
  readonly #shown: HTMLElement;
  readonly #handlers: KeyCapHandlers;
  readonly #caps = new Map<string, HTMLElement>(); // by code, aliases included
  readonly #marked = new Map<Look, string>();
  #controls: readonly ControlView[] = [];
  #layout: ReadonlyMap<string, string> | undefined;

  constructor(root: HTMLElement, shown: HTMLElement, handlers: KeyCapHandlers) {
    this.#root = root;
    this.#shown = shown;
    this.#handlers = handlers;
  }

  use(controls: readonly ControlView[], layout?: ReadonlyMap<string, string>): void {
    if (controls === this.#controls && layout === this.#layout) return;
    this.#controls = controls;
    this.#layout = layout;
    this.#caps.clear();
    this.#marked.clear();
    const clusters = new Map<string, HTMLElement>();
    const places = placesOf(controls.map(({ code }) => code));
    for (const control of controls) {
      const place = places.get(control.code);
      if (place === undefined) continue;
      const cluster =
        clusters.get(place.cluster) ?? el("div", { class: `cluster ${place.cluster}` });
      clusters.set(place.cluster, cluster);
      const cap = this.#cap(control);
      cap.classList.add(`row-${place.row}`, `column-${Math.min(place.column, 6)}`);
      cluster.append(cap);
      for (const code of [control.code, ...control.aliases]) this.#caps.set(code, cap);
    }
    this.#root.replaceChildren(...clusters.values());
  }

  /** These codes are held now. */
  held(codes: readonly string[]): void {
    this.#mark("pressed", codes);
  }

  /** A stick leans: the keys of that way glow. */
  leaning(axes: Axes): void {
    this.#mark(
      "leaning",
      AXES.flatMap((axis) => {
        const [less, more] = KEYS_OF_AXIS[axis];
        return axes[axis] < 0 ? [less] : axes[axis] > 0 ? [more] : [];
      }),
    );
  }

  /** The frame on screen shows these. */
  seen(codes: readonly string[]): void {
    this.#mark("seen", codes);
    const text = codes.join(" ");
    if (this.#shown.textContent !== text) this.#shown.textContent = text;
  }

  #mark(look: Look, codes: readonly string[]): void {
    const key = codes.join(" ");
    if (this.#marked.get(look) === key) return; // called for every frame
    this.#marked.set(look, key);
    const caps = new Set(codes.map((code) => this.#caps.get(code)));
    for (const cap of new Set(this.#caps.values())) cap.classList.toggle(look, caps.has(cap));
  }

  #cap({ code, label }: ControlView): HTMLElement {
    const cap = el(
      "button",
      {
        type: "button",
        class: "cap",
        tabindex: "-1",
        testid: `key-${code}`,
        "aria-label": label,
        title: label,
      },
      el("span", { class: "sign", "aria-hidden": "true" }, labelOf(code, this.#layout)),
    );
    cap.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return; // a right click is no press
      event.preventDefault(); // the focus stays with the game
      try {
        cap.setPointerCapture(event.pointerId);
      } catch {
        // The pointer is gone already: its up or cancel follows.
      }
      this.#handlers.press(code, holder(event), event.timeStamp);
    });
    for (const end of ["pointerup", "pointercancel", "lostpointercapture"] as const) {
      cap.addEventListener(end, (event) => {
        this.#handlers.release(code, holder(event));
      });
    }
    return cap;
  }
}

function holder(event: PointerEvent): string {
  return `pointer-${event.pointerId}`;
}
