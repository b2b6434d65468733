/** What browsers do with pictures and pages of their own accord, and a game does not want. */

export interface GestureHandlers {
  /** Whether the world is being played. */
  readonly playing: () => boolean;
  /** The browser takes the keys for itself: what is held would never be heard to come up. */
  readonly releaseAll: () => void;
}

const GAME = "#stage, #sticks, #keys, .topbar, .card, .sheet";
const TEXT = "input, textarea, pre, a[href]";

/** Keep menus, dragging and zooming off the game. @returns the way out. */
export function guardGestures(document: EventTarget, handlers: GestureHandlers): () => void {
  const ending = new AbortController();
  const { signal } = ending;
  document.addEventListener(
    "contextmenu",
    (event) => {
      // A right click, a long touch, the menu key. Text keeps its menu.
      if (within(event, GAME) && !within(event, TEXT)) event.preventDefault();
      else handlers.releaseAll();
    },
    { signal },
  );
  document.addEventListener(
    "dragstart",
    (event) => {
      if (!within(event, TEXT)) event.preventDefault(); // key-ups are lost under a drag
    },
    { signal },
  );
  // Safari zooms with two fingers although `touch-action` says no.
  document.addEventListener(
    "gesturestart",
    (event) => {
      if (handlers.playing()) event.preventDefault();
    },
    { signal },
  );
  return () => {
    ending.abort();
  };
}

function within({ target }: Event, selector: string): boolean {
  const element = target as Partial<Element> | null;
  return element?.closest?.(selector) != null;
}
