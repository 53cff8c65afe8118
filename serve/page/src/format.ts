// Values as people read them.

export function bytes(count: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let unit = 0;
  let value = Math.abs(count);
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${count < 0 ? "−" : ""}${unit && value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

export function duration(seconds: number): string {
  if (seconds < 0.01 && seconds > 0) return `${Number((seconds * 1000).toPrecision(2))} ms`;
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.floor(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 120) return `${minutes} min`;
  return minutes < 2880 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : `${Math.floor(minutes / 1440)} days`;
}

export function number(value: number): string {
  if (Number.isInteger(value)) return Math.abs(value) < 1e15 ? value.toLocaleString("en") : String(value);
  const size = Math.abs(value);
  return size >= 1e-3 && size < 1e6 ? String(Number(value.toPrecision(5))) : value.toExponential(3);
}

export const percent = (share: number): string => `${share < 0.1 ? (share * 100).toFixed(1) : Math.round(share * 100)} %`;

export function clock(seconds: number): string {
  return new Date(seconds * 1000).toLocaleTimeString();
}

export function count(n: number, what: string, many = what + "s"): string {
  return `${n.toLocaleString("en")} ${n === 1 ? what : many}`;
}

/** Text of a target on one line: control and direction characters are shown, not obeyed. */
export function plain(text: string, most = 300): string {
  const shown = text.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g, (one) =>
    one === "\n" ? "↵" : `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return shown.length > most ? shown.slice(0, most) + "…" : shown;
}

/** The same of a place, whose end says most: "…/train.py:12 in train_step". */
export function plainPlace(text: string, most = 160): string {
  const shown = plain(text, Infinity);
  return shown.length > most ? "…" + shown.slice(-most) : shown;
}
