/** Moving about the page with four directions, as a pad does. The choice itself is pure. */

export type Direction = "up" | "down" | "left" | "right";

export interface Box {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

const WAY: Readonly<Record<Direction, readonly [x: number, y: number]>> = {
  up: [0, -1],
  down: [0, 1],
  left: [-1, 0],
  right: [1, 0],
};
const SIDEWAYS = 2.5; // what lies beside counts as this much further away

/**
 * Which of the boxes is next from here: sideways within the row, up and down wherever it is.
 *
 * @returns its index; null where there is none.
 */
export function nearest(from: Box, boxes: readonly Box[], direction: Direction): number | null {
  const [x, y] = WAY[direction];
  const here = middle(from);
  let best: number | null = null;
  let bestCost = Infinity;
  boxes.forEach((box, index) => {
    const there = middle(box);
    const along = (there.x - here.x) * x + (there.y - here.y) * y;
    const beside = Math.abs((there.x - here.x) * y) + Math.abs((there.y - here.y) * x);
    const sameRow = box.top < from.top + from.height && from.top < box.top + box.height;
    if (along < 2 || (x !== 0 && !sameRow)) return;
    const cost = along + SIDEWAYS * beside;
    if (cost < bestCost) {
      bestCost = cost;
      best = index;
    }
  });
  return best;
}

function middle(box: Box): { x: number; y: number } {
  return { x: box.left + box.width / 2, y: box.top + box.height / 2 };
}

const FOCUSABLE = "button:not([disabled]):not(.cap), a[href], input:not([disabled]), summary";

/** What can have the focus now: in the open dialog if there is one. */
function candidates(): HTMLElement[] {
  const scope: ParentNode = document.querySelector("dialog[open]") ?? document;
  return [...scope.querySelectorAll<HTMLElement>(FOCUSABLE)].filter(
    (element) => element.getClientRects().length > 0,
  );
}

/** Move the focus in a direction; where nothing has it, to what matters most. */
export function moveFocus(direction: Direction): void {
  const all = candidates();
  const now = document.activeElement;
  const others = all.filter((element) => element !== now);
  const next =
    now instanceof HTMLElement && all.includes(now)
      ? nearest(now.getBoundingClientRect(), others.map((one) => one.getBoundingClientRect()), direction)
      : Math.max(0, others.findIndex((element) => element.matches(".main, [aria-checked=true]")));
  if (next === null) return;
  others[next]?.focus({ preventScroll: false });
}

/** Do what Enter would do. */
export function confirmFocus(): void {
  const all = candidates();
  const now = document.activeElement;
  const target =
    now instanceof HTMLElement && all.includes(now)
      ? now
      : (all.find((element) => element.matches(".main")) ?? null);
  if (target === null) return;
  if (target.matches("[role=radio]")) {
    // A card: Enter plays, a click only chooses.
    target.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  } else target.click();
}
