// What a process is called.
import type { Process } from "./looks.js";

/** The command line without the folders of the interpreter and the program: "train.py --steps 5". */
export function shortCommand(command: string): string {
  const words = command.split(" ");
  const base = (word: string): string => word.slice(word.lastIndexOf("/") + 1);
  if (words.length > 1 && /^python[\d.]*$/.test(base(words[0]!))) words.shift();
  const program = words.findIndex((one) => !one.startsWith("-"));
  return words.map((one, i) => (i === program ? base(one) || one : one)).join(" ");
}

const program = (process: Process): string => (process.command ? shortCommand(process.command) : (process.name ?? "?"));

/** A worker that a rank started has the rank's number, too, but is none. */
export const isRank = (process: Process): boolean => process.rank !== null && process.job !== null;

/** In lists: "4711 · rank 3 · train.py --steps 5". */
export function processName(process: Process): string {
  const rank = process.rank === null ? "" : isRank(process) ? `rank ${process.rank} · ` : `worker of rank ${process.rank} · `;
  return `${process.pid} · ${rank}${program(process)}`;
}

/** As a heading: what people call it, and what tells it from others. */
export function title(process: Process): { name: string; more: string } {
  return isRank(process) ? { name: `rank ${process.rank}`, more: `process ${process.pid} · ${program(process)}` } : { name: program(process), more: `process ${process.pid}` };
}

/** "0–2, 5" */
export function ranges(ranks: number[]): string {
  const sorted = [...new Set(ranks)].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let i = 0; i < sorted.length; ) {
    let end = i;
    while (sorted[end + 1] === sorted[end]! + 1) end++;
    parts.push(end === i ? `${sorted[i]}` : end === i + 1 ? `${sorted[i]}, ${sorted[end]}` : `${sorted[i]}–${sorted[end]}`);
    i = end + 1;
  }
  return parts.join(", ");
}
