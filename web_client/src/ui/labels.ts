/** What is written on a key. Pure but for the layout that is passed in. */

const SIGNS: Readonly<Record<string, string>> = {
  ArrowUp: "↑",
  ArrowDown: "↓",
  ArrowLeft: "←",
  ArrowRight: "→",
  Space: "space",
  ShiftLeft: "shift",
  ShiftRight: "shift",
  Enter: "enter",
};

/** @param layout of this keyboard, code → character, where the browser tells. */
export function labelOf(code: string, layout?: ReadonlyMap<string, string>): string {
  const sign = SIGNS[code];
  if (sign !== undefined) return sign;
  const own = layout?.get(code);
  if (own !== undefined && own !== "") return own.toUpperCase();
  return code.replace(/^(Key|Digit|Numpad)/, "");
}

/** Where a key stands among its neighbours: cluster, row, column. */
export interface Place {
  readonly cluster: "left" | "right" | "rest";
  readonly row: number;
  readonly column: number;
}

const PLACES: Readonly<Record<string, Place>> = {
  KeyQ: { cluster: "left", row: 1, column: 1 },
  KeyW: { cluster: "left", row: 1, column: 2 },
  KeyE: { cluster: "left", row: 1, column: 3 },
  KeyA: { cluster: "left", row: 2, column: 1 },
  KeyS: { cluster: "left", row: 2, column: 2 },
  KeyD: { cluster: "left", row: 2, column: 3 },
  KeyU: { cluster: "right", row: 1, column: 1 },
  KeyI: { cluster: "right", row: 1, column: 2 },
  KeyO: { cluster: "right", row: 1, column: 3 },
  KeyJ: { cluster: "right", row: 2, column: 1 },
  KeyK: { cluster: "right", row: 2, column: 2 },
  KeyL: { cluster: "right", row: 2, column: 3 },
  ArrowUp: { cluster: "right", row: 1, column: 2 },
  ArrowLeft: { cluster: "right", row: 2, column: 1 },
  ArrowDown: { cluster: "right", row: 2, column: 2 },
  ArrowRight: { cluster: "right", row: 2, column: 3 },
};

export function placesOf(codes: readonly string[]): Map<string, Place> {
  const places = new Map<string, Place>();
  const taken = new Set<string>();
  let rest = 0;
  for (const code of codes) {
    const known = PLACES[code];
    const spot = known === undefined ? "" : `${known.cluster} ${known.row} ${known.column}`;
    if (known !== undefined && !taken.has(spot)) {
      taken.add(spot);
      places.set(code, known);
    } else {
      rest += 1;
      places.set(code, { cluster: "rest", row: 1, column: rest });
    }
  }
  return places;
}
