// Numbers and times as people read them.
const whole = new Intl.NumberFormat("en-US");
const relative = new Intl.RelativeTimeFormat("en-US", { numeric: "auto", style: "short" });
const day = new Intl.DateTimeFormat("en-US", { day: "numeric", month: "short", year: "numeric" });
const exact = new Intl.DateTimeFormat("en-US", { dateStyle: "medium", timeStyle: "medium" });

export const count = (value: number) => whole.format(value);
export const plural = (value: number, one: string, many = `${one}s`) => `${count(value)} ${value === 1 ? one : many}`;

const STEPS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["minute", 60],
  ["hour", 3600],
  ["day", 86400],
  ["week", 604800],
];

/** `at` in milliseconds. Beyond a month the date says more. */
export function ago(at: number, now = Date.now()): string {
  const seconds = (now - at) / 1000;
  if (seconds < 45) return "just now";
  if (seconds > 30 * 86400) return day.format(at);
  let [unit, length] = STEPS[0]!;
  for (const step of STEPS) if (seconds >= step[1]) [unit, length] = step;
  return relative.format(-Math.round(seconds / length), unit);
}
export const when = (at: number) => exact.format(at);
export const clock = (at: number) => new Date(at).toTimeString().slice(0, 8);
export const folderOf = (path: string) => path.slice(0, Math.max(0, path.lastIndexOf("/")));
export const nameOf = (path: string) => path.slice(path.lastIndexOf("/") + 1);
export const duration = (ms: number) => (ms < 1 ? "<1 ms" : ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);

/** The author of a note or a change, as the history has it. */
export const author = (by: string) => (by === "outside" ? "another program" : by || "an unnamed client");
