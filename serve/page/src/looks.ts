// What looks at processes say: stacks, where a thread is, and since when it is there.

export interface Frame {
  name: string | null;
  file: string | null;
  path?: string; // of the file, where that is told without a folder of sys.path
  line: number | null;
  module: string | null;
  kind: string; // python, native, broken, task
  library?: boolean; // not the user's own code
}

export interface Thread {
  id: number;
  name: string | null;
  state: string | null;
  stack: number;
  active: boolean;
  gil: string | null;
  unstable: boolean;
  since: number | null; // s, as the server saw it
}

export interface Stacks {
  time: number;
  frames: Frame[];
  stacks: number[][]; // innermost first
  threads: Thread[];
  warning: string | null;
}

/** The same stacks, met again at that time. */
export function metAgain(stacks: Stacks, time: number): Stacks {
  const later = Math.max(0, time - stacks.time);
  return { ...stacks, time, threads: stacks.threads.map((one) => ({ ...one, since: one.since === null ? null : one.since + later })) };
}

export interface Process {
  id: string;
  pid: number;
  ppid: number;
  uid: number;
  rank: number | null;
  job: number | null; // the first rank of its job here, by pid; null: it is no rank
  name: string | null;
  command: string | null;
  python: string | null;
  started: number;
  threads: number;
  rss: number;
  cpu: number; // s
  has_probe: boolean;
  since: number | null; // s, of the main thread, as the server saw it
  step: number | null;
}

export const framesOf = (stacks: Stacks, thread: Thread): Frame[] =>
  (stacks.stacks[thread.stack] ?? []).map((at) => stacks.frames[at]).filter((one) => one !== undefined);

export const mainThread = (stacks: Stacks, pid: number): Thread | undefined =>
  stacks.threads.find((one) => one.id === pid) ?? stacks.threads[0];

export const frameName = (frame: Frame): string => frame.name ?? (frame.kind === "broken" ? "(the stack breaks off here)" : "?");

/** The innermost frame of the user's own code, which tells more than the lock that it waits in; frames: innermost first. */
export const ownFrame = (frames: Frame[]): Frame | undefined => frames.find((frame) => frame.kind === "python" && frame.library === false) ?? frames[0];

export function framePlace(frame: Frame): string {
  if (frame.kind === "native") return frame.module ?? frame.file ?? "";
  return (frame.file ?? "") + (frame.line ? ":" + frame.line : "");
}

export function stackKey(stacks: Stacks, thread: Thread): string {
  return framesOf(stacks, thread)
    .map((one) => `${one.kind} ${one.name} ${one.file} ${one.line}`)
    .join("\n");
}

export function sameStack(stacks: Stacks, at: number): string {
  return (stacks.stacks[at] ?? []).join(" ");
}

interface Seen {
  key: string;
  at: number;
}

/** Since when threads stand where they stand: the server's own account, or what this page has seen. */
export class Since {
  private readonly seen = new Map<string, Seen>();

  note(target: string, stacks: Stacks): void {
    for (const thread of stacks.threads) {
      const name = `${target} ${thread.id}`;
      const key = stackKey(stacks, thread);
      if (this.seen.get(name)?.key !== key) this.seen.set(name, { key, at: stacks.time });
    }
  }

  of(target: string, stacks: Stacks, thread: Thread): number {
    const seen = this.seen.get(`${target} ${thread.id}`);
    const here = seen ? Math.max(0, stacks.time - seen.at) : 0;
    return Math.max(here, thread.since ?? 0);
  }
}

export const since = new Since();

export interface Group {
  stack: number;
  threads: Thread[];
  first: boolean; // the main thread's, or of who holds the GIL
}

/** Threads with equal stacks together: the main thread's and the GIL holder's first, the largest last. */
export function groups(stacks: Stacks, pid: number): Group[] {
  const byStack = new Map<number, Group>();
  for (const thread of stacks.threads) {
    const group = byStack.get(thread.stack) ?? { stack: thread.stack, threads: [], first: false };
    group.threads.push(thread);
    group.first ||= thread.id === pid || thread.gil === "holding";
    byStack.set(thread.stack, group);
  }
  return [...byStack.values()].sort((a, b) => Number(b.first) - Number(a.first) || a.threads.length - b.threads.length);
}

export function threadState(thread: Thread): string {
  if (thread.gil === "holding") return "holds the GIL";
  if (thread.gil === "waiting") return "waits for the GIL";
  const states: Record<string, string> = { R: "running", S: "waiting", D: "waiting for a device", T: "stopped", t: "stopped by a debugger", Z: "ended" };
  return thread.active && thread.state !== "R" ? "running" : (states[thread.state ?? ""] ?? thread.state ?? "");
}
