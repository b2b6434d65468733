/** What is asked of the browser itself. */

/** Keys go to the game again, not to the button that was used last. */
export function focusGame(): void {
  if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
}

export function canConnect(): boolean {
  try {
    new RTCPeerConnection().close();
    return true;
  } catch {
    return false;
  }
}

export function wasReloaded(): boolean {
  const [entry] = performance.getEntriesByType("navigation");
  return entry instanceof PerformanceNavigationTiming && entry.type === "reload";
}

/** The start point that the page's address names. */
export function startInAddress(): string | null {
  return new URLSearchParams(location.search).get("start");
}

/** The address names the place one plays in: whoever copies or reloads it comes back there. */
export function nameInAddress(start: string | null): void {
  if (startInAddress() === start) return;
  const address = new URL(location.href);
  if (start === null) address.searchParams.delete("start");
  else address.searchParams.set("start", start);
  history.replaceState(history.state, "", address);
}

/** @returns whether the browser did it. */
export async function toggleFullscreen(): Promise<boolean> {
  try {
    if (document.fullscreenElement === null) {
      await document.documentElement.requestFullscreen({ navigationUI: "hide" });
    } else {
      await document.exitFullscreen();
    }
    return true;
  } catch (error) {
    console.warn("no whole screen here:", error);
    return false;
  }
}

/** The characters of this keyboard, code → character, where the browser tells. */
export async function keyboardLayout(): Promise<ReadonlyMap<string, string> | undefined> {
  const { keyboard } = navigator as Navigator & {
    keyboard?: { getLayoutMap?: () => Promise<ReadonlyMap<string, string>> };
  };
  try {
    return await keyboard?.getLayoutMap?.();
  } catch {
    return undefined; // not allowed here: keys are labelled by their code
  }
}
