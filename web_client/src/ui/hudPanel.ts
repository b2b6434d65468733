import { HEIGHT, lineOf, type Sample, WIDTH } from "../hud/sparkline";
import { type HudSnapshot, ROWS } from "../hud/snapshot";
import { button, el, setText, svg } from "./dom";

/** The figures, as rows for people and as `data-hud` for programs. */
export class HudPanel {
  readonly #root: HTMLElement;
  readonly #values = new Map<string, HTMLElement>();
  readonly #line = sparkline();
  #snapshot: HudSnapshot | null = null;

  constructor(root: HTMLElement, copied: (words: string) => void) {
    this.#root = root;
    const rows = ROWS.map(({ id, label }) => {
      const value = el("dd", { testid: `hud-${id}` });
      this.#values.set(id, value);
      const row = el("div", { class: `row row-${id}` }, el("dt", {}, label), value);
      if (id === "k2p-p95") row.append(this.#line.drawing);
      return row;
    });
    root.append(
      el("dl", {}, ...rows),
      button("Copy as JSON", "hud-copy", () => {
        copyText(JSON.stringify(this.#snapshot, null, 2)).then(
          () => {
            copied("Copied");
          },
          () => {
            copied("This browser does not let the page copy here.");
          },
        );
      }),
    );
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

/** Over plain http there is no clipboard API; then the old way is tried. */
export async function copyText(text: string): Promise<void> {
  if ("clipboard" in navigator) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const area = el("textarea", { class: "unseen", "aria-hidden": "true" });
  area.value = text;
  document.body.append(area);
  area.select();
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- the only way without https
  const done = document.execCommand("copy");
  area.remove();
  if (!done) throw new Error("copying is not allowed here");
}
