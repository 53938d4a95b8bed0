// What a note shows beside its text: formulas and images of the vault. Each is drawn when it comes into sight, so that a long note
// opens as fast as a short one.
import DOMPurify from "dompurify";
import { image } from "./api";

const AHEAD = "600px";

/** Draws formulas and images as they come into sight. Gives what ends that. */
export function drawLater(root: HTMLElement, note: string): () => void {
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { isIntersecting, target } of entries) {
        if (!isIntersecting) continue;
        observer.unobserve(target);
        const place = target as HTMLElement;
        if (place.dataset.math) drawFormula(place);
        else drawImage(place, note);
      }
    },
    { rootMargin: AHEAD },
  );
  for (const place of root.querySelectorAll("[data-math], [data-vault-image]")) observer.observe(place);
  return () => observer.disconnect();
}

async function drawFormula(place: HTMLElement) {
  const { default: temml } = await import("temml");
  const isBlock = place.dataset.math === "block";
  const drawn = document.createElement(isBlock ? "div" : "span");
  drawn.className = "math";
  try {
    const html = temml.renderToString(place.textContent ?? "", { displayMode: isBlock, throwOnError: true });
    drawn.append(
      DOMPurify.sanitize(html.replace(/ style="[^"]*"/g, ""), {
        USE_PROFILES: { mathMl: true },
        FORBID_ATTR: ["style", "href"],
        RETURN_DOM_FRAGMENT: true,
      }),
    );
    place.replaceWith(drawn);
  } catch {
    place.title = "This formula cannot be drawn";
  }
}

/** In an `img` element, where an SVG runs no script and loads nothing. */
async function drawImage(place: HTMLElement, note: string) {
  const target = place.dataset.vaultImage!;
  const failed = (why: string) => {
    place.classList.add("missing");
    place.title = why;
  };
  const blob = await image(note, target).catch((error: Error) => error);
  if (blob instanceof Error) return failed(blob.message);
  const drawn = new Image();
  drawn.alt = place.textContent ?? "";
  if (place.dataset.width) drawn.width = Number(place.dataset.width);
  drawn.src = URL.createObjectURL(blob);
  try {
    await drawn.decode();
    place.replaceWith(drawn);
  } catch {
    failed(`${target} is not an image that can be drawn`);
  }
  URL.revokeObjectURL(drawn.src);
}
