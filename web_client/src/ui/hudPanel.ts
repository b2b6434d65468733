import { HEIGHT, lineOf, type Sample, WIDTH } from "../hud/sparkline";
import { type HudSnapshot, ROWS } from "../hud/snapshot";
import type { Copier } from "./copier";
import { button, el, setText, svg } from "./dom";

/** The figures, as rows for people and as `data-hud` for programs. */
export class HudPanel {
  readonly #root: HTMLElement;
  readonly #values = new Map<string, HTMLElement>();
  readonly #line = sparkline();
  #snapshot: HudSnapshot | null = null;

  constructor(root: HTMLElement, copier: Copier) {
    this.#root = root;
    const rows = ROWS.map(({ id, label, why }) => {
      const value = el("dd", { testid: `hud-${id}` });
      this.#values.set(id, value);
      const row = el("div", { class: `row row-${id}` }, el("dt", { title: why }, label), value);
      if (id === "k2p-p95") row.append(this.#line.drawing);
      row.append(el("dd", { class: "why" }, why));
      return row;
    });
    const explain = button("What is this?", "hud-explain", () => {
      const explained = root.classList.toggle("explained");
      explain.setAttribute("aria-expanded", String(explained));
      setText(explain, explained ? "Figures only" : "What is this?");
      root.scrollTop = 0;
    });
    explain.setAttribute("aria-expanded", "false");
    const copy =
 button("Copy as JSON", "hud-copy", () => {
        void copier.copy(JSON.stringify(this.#snapshot, null, 2), "Copied");
      });
    root.append(el("dl", {}, ...rows), el("div", { class: "hud-actions" }, explain, copy));
  }

  get open(): boolean {
    return !this.#root.hidden;
  }

  set open(open: boolean) {
    this.#root.hidden = !open;
  }

  /** @param latencies key-to-photon of the last half minute. */
  render(snapshot: HudSnapshot, latencies: readonly Sample[], nowMs: number): void {
    this.#snapshot = snapshot;
    this.#root.dataset["hud"] = JSON.stringify(snapshot);
    this.#root.dataset["epoch"] = snapshot.epoch === null ? "" : String(snapshot.epoch);
    if (this.open) this.#line.path.setAttribute("d", lineOf(latencies, nowMs));
    for (const { id, text } of ROWS) {
      const value = this.#values.get(id);
      if (value !== undefined) setText(value, text(snapshot));
    }
  }
}

/** The line that key-to-photon draws in half a minute. */
function sparkline(): { drawing: SVGSVGElement; path: SVGPathElement } {
  const path = svg("path", {});
  const drawing = svg("svg", {
    class: "sparkline",
    viewBox: `0 -2 ${WIDTH} ${HEIGHT + 4}`,
    preserveAspectRatio: "none",
    "aria-hidden": "true",
    "data-testid": "hud-sparkline",
  });
  drawing.append(path);
  return { drawing, path };
}
