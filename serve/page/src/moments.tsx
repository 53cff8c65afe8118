// Moments of the past: a slider over the looks that were kept, and the difference of two.
import { h, Fragment } from "./preact.js";
import { useEffect, useState } from "./hooks.js";
import { askJson, at } from "./net.js";
import { clock, count, duration } from "./format.js";
import { framesOf, type Frame, type Stacks, type Thread } from "./looks.js";
import { FrameLine } from "./parts.js";

export interface Look {
  time: number;
  stacks: Stacks;
}

// ---- what the server has kept ----

interface History {
  frames: Frame[];
  stacks: number[][];
  threads: { id: number; name: string | null }[];
  moments: { time: number; stacks: [number, number][] }[];
}

/** Each moment has only what differs from the one before. */
export function unroll(kept: History): Look[] {
  const now = new Map<number, number>();
  return kept.moments.map((moment) => {
    for (const [thread, stack] of moment.stacks) if (stack < 0) now.delete(thread);
    for (const [thread, stack] of moment.stacks) if (stack >= 0) now.set(thread, stack);
    const threads = [...now].map(([thread, stack]): Thread => {
      const known = kept.threads[thread] ?? { id: 0, name: null };
      return { id: known.id, name: known.name, state: null, stack, active: false, gil: null, unstable: false, since: null };
    });
    const stacks = { time: moment.time, frames: kept.frames, stacks: kept.stacks, threads, warning: null };
    return { time: moment.time, stacks };
  });
}

// ---- the slider ----

interface Marks {
  a: Look | null;
  b: Look | null;
}

interface MomentsProps {
  target: string; // "": the server keeps none; then those that this page has seen
  looks: Look[];
  now: Look | null;
  then: Look | null;
  setThen: (look: Look | null) => void;
  marks: Marks;
  setMarks: (marks: Marks) => void;
}

export function Moments({ target, looks, now, then, setThen, marks, setMarks }: MomentsProps) {
  const [kept, setKept] = useState<Look[]>([]);
  useEffect(() => {
    if (!target) return;
    const abort = new AbortController();
    askJson<History>(at(target, "history", { after: "-600" }), { signal: abort.signal }).then(
      (history) => setKept(unroll(history)),
      () => setKept([]),
    );
    return () => abort.abort();
  }, [target, then === null]);
  const begun = kept.at(-1)?.time ?? 0;
  const all = [...kept, ...looks.filter((one) => one.time > begun)];
  const shown = then ?? now;
  const position = then ? Math.max(0, all.findIndex((one) => one.time >= then.time)) : all.length - 1;
  const choose = (index: number): void => setThen(index >= all.length - 1 ? null : (all[index] ?? null));
  const span = all.length > 1 ? all.at(-1)!.time - all[0]!.time : 0;
  return (
    <div class="tools moments">
      <label class="slider">
        <span>{then ? clock(then.time) : "now"}</span>
        <input
          type="range"
          min={0}
          max={Math.max(0, all.length - 1)}
          value={position}
          aria-label={`Moment, of the last ${duration(span)}`}
          onInput={(event: { currentTarget: HTMLInputElement }) => choose(Number(event.currentTarget.value))}
        />
        <span class="quiet">last {duration(span)}</span>
      </label>
      <button type="button" disabled={!shown} onClick={() => setMarks({ a: shown, b: null })}>
        Mark A{marks.a && " " + clock(marks.a.time)}
      </button>
      <button type="button" disabled={!shown || !marks.a} onClick={() => setMarks({ ...marks, b: shown })}>
        Compare with A
      </button>
      {(then || marks.b) && (
        <button type="button" onClick={() => (setThen(null), setMarks({ a: null, b: null }))}>
          Back to now
        </button>
      )}
    </div>
  );
}

// ---- the difference ----

export interface Change {
  what: string;
  threads: number;
  frames: { frame: Frame; same: boolean }[];
}

function sizes(stacks: Stacks): Map<string, { frames: Frame[]; ids: Set<number> }> {
  const out = new Map<string, { frames: Frame[]; ids: Set<number> }>();
  for (const thread of stacks.threads) {
    const frames = framesOf(stacks, thread);
    const key = frames.map((one) => `${one.name} ${one.file} ${one.line}`).join("\n");
    const group = out.get(key) ?? { frames, ids: new Set() };
    group.ids.add(thread.id);
    out.set(key, group);
  }
  return out;
}

const text = (frame: Frame | undefined): string => (frame ? `${frame.name} ${frame.file} ${frame.line}` : "");

/** From the outermost frame on: as long as both have the same, they are the same. */
function against(frames: Frame[], other: Frame[]): { frame: Frame; same: boolean }[] {
  let same = 0;
  while (same < frames.length && text(frames.at(-1 - same)) === text(other.at(-1 - same))) same++;
  return frames.map((frame, i) => ({ frame, same: i >= frames.length - same }));
}

export function compare(a: Stacks, b: Stacks): Change[] {
  const before = sizes(a);
  const after = sizes(b);
  const changes: Change[] = [];
  const where = (ids: Set<number>, all: typeof before): Frame[] => [...all.values()].find((one) => [...one.ids].some((id) => ids.has(id)))?.frames ?? [];
  for (const [key, group] of after) {
    const old = before.get(key)?.ids.size ?? 0;
    if (!old) changes.push({ what: "appeared", threads: group.ids.size, frames: against(group.frames, where(group.ids, before)) });
    else if (old !== group.ids.size)
      changes.push({ what: `${old} → ${group.ids.size}`, threads: group.ids.size, frames: group.frames.map((frame) => ({ frame, same: true })) });
  }
  for (const [key, group] of before)
    if (!after.has(key)) changes.push({ what: "vanished", threads: group.ids.size, frames: against(group.frames, where(group.ids, after)) });
  return changes;
}

export function Difference({ changes }: { changes: Change[] }) {
  if (!changes.length) return <p class="banner">Between A and B no stack has changed.</p>;
  return (
    <>
      {changes.map((one) => (
        <details class={"group " + (one.what === "appeared" ? "appeared" : one.what === "vanished" ? "vanished" : "")} open>
          <summary>
            <b>{one.what}</b> {count(one.threads, "thread")}
          </summary>
          <ol class="frames">
            {one.frames.map(({ frame, same }) => (
              <li class={same ? "same" : "differs"}>
                <span class="bare">
                  <FrameLine frame={frame} />
                </span>
              </li>
            ))}
          </ol>
        </details>
      ))}
    </>
  );
}
