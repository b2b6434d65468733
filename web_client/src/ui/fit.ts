/** How a picture fills a window. Pure. */
const MOST_CROPPED = 0.12; // of the picture's area

/** @returns "cover" where that hides at most 12 % of the picture, else "contain". */
export function fitOf(
  picture: { readonly width: number; readonly height: number },
  window: { readonly width: number; readonly height: number },
): "cover" | "contain" {
  if (picture.width <= 0 || picture.height <= 0 || window.width <= 0 || window.height <= 0) {
    return "cover";
  }
  const a = picture.width / picture.height;
  const b = window.width / window.height;
  return 1 - Math.min(a / b, b / a) <= MOST_CROPPED ? "cover" : "contain";
}
