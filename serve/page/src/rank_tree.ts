// Stacks of several ranks in one tree, from the outermost frame inwards: where they part, the tree does.
import type { Frame } from "./looks.js";

export interface Walker {
  rank: number;
  frames: Frame[]; // outermost first
  since: number | null; // s, of the thread; null: not known
}

export interface Branch {
  frames: Frame[]; // that all of these share, outermost first
  lines: number[][]; // for each of them, the lines that they are at
  walkers: Walker[];
  below: Branch[]; // the smallest first: that is the odd one
}

/** Where ranks are now: those whose whole stacks are alike. */
export interface Place {
  walkers: Walker[];
  frames: Frame[]; // innermost first
  odd: boolean; // fewer ranks than elsewhere
  since: number | null; // s: the shortest of them
}

const key = (frame: Frame, lines: boolean): string => `${frame.kind} ${frame.name} ${frame.file}${lines ? ` ${frame.line}` : ""}`;

/** Since when all of them stand; null: not known. */
export function standing(walkers: Walker[]): number | null {
  const known = walkers.map((one) => one.since).filter((since) => since !== null);
  return known.length ? Math.min(...known) : null;
}

function grouped(walkers: Walker[], of: (one: Walker) => string | null): Walker[][] {
  const groups = new Map<string, Walker[]>();
  for (const one of walkers) {
    const key = of(one);
    if (key === null) continue;
    const group = groups.get(key);
    if (group) group.push(one);
    else groups.set(key, [one]);
  }
  return [...groups.values()];
}

function linesAt(walkers: Walker[], depth: number): number[] {
  const found = walkers.map((one) => one.frames[depth]?.line).filter((line): line is number => typeof line === "number");
  return [...new Set(found)].sort((a, b) => a - b);
}

export function merge(walkers: Walker[], lines: boolean, depth = 0): Branch[] {
  const byFrame = grouped(walkers, (one) => (one.frames[depth] ? key(one.frames[depth]!, lines) : null));
  const made = byFrame.map((here): Branch => {
    const first = here[0]!.frames;
    let end = depth + 1;
    while (first[end] && here.every((one) => one.frames[end] && key(one.frames[end]!, lines) === key(first[end]!, lines))) end++;
    const frames = first.slice(depth, end);
    return { frames, lines: frames.map((_, i) => linesAt(here, depth + i)), walkers: here, below: merge(here, lines, end) };
  });
  return made.sort((a, b) => a.walkers.length - b.walkers.length || a.walkers[0]!.rank - b.walkers[0]!.rank);
}

/** The odd ones first. */
export function places(walkers: Walker[], lines: boolean): Place[] {
  const all = grouped(walkers, (one) => one.frames.map((frame) => key(frame, lines)).join("\n")).sort((a, b) => a.length - b.length);
  const most = all.at(-1)?.length ?? 0;
  return all.map((here) => ({ walkers: here, frames: [...here[0]!.frames].reverse(), odd: here.length < most, since: standing(here) }));
}
