// Where a live flame graph comes from: the server's increments, or, from one without them, profiles of two seconds, added up.
import { useEffect, useRef, useState } from "./hooks.js";
import { ask, askJson, at, has } from "./net.js";
import { Flame, type FlameFrame } from "./flame.js";
import { hasLive, subscribe } from "./live.js";
import { state } from "./watch.js";
import { hidden } from "./editor.js";

const SECONDS = 300;

export interface Sampling {
  flame: Flame;
  samples: number;
  seconds: number;
  error: Error | null;
  paused: boolean;
  live: boolean;
  native: boolean;
  id: string; // of the server's profile; "": it keeps none
  pause: () => void;
  restart: () => void;
}

interface Increment {
  seconds: number;
  samples: number;
  first_frame: number;
  frames: FlameFrame[];
  first_node: number;
  nodes: [number, number][];
  first_thread?: number;
  threads: { id: number; name: string | null; rank?: number | null }[];
  weights: [number, number, number, number][];
  done: boolean;
}

export function add(flame: Flame, told: Increment): void {
  flame.frames.length = told.first_frame;
  flame.frames.push(...told.frames);
  flame.threads.length = told.first_thread ?? flame.threads.length;
  flame.threads.push(...told.threads);
  told.nodes.forEach(([parent, frame], i) => {
    if (told.first_node + i === flame.count) flame.addNode(parent, frame);
  });
  for (const [thread, node, samples] of told.weights) if (node < flame.count) flame.setWeight(thread, node, samples);
}

/** One line of the collapsed format: frames from the outermost, a space, how often. */
export function addCollapsed(flame: Flame, known: Map<string, number>, text: string): number {
  let all = 0;
  for (const line of text.split("\n")) {
    const cut = line.lastIndexOf(" ");
    const weight = Number(line.slice(cut + 1));
    if (cut < 1 || !Number.isFinite(weight)) continue;
    let node = 0;
    for (const name of line.slice(0, cut).split(";")) {
      const key = `${node};${name}`;
      let next = known.get(key);
      if (next === undefined) {
        const [, func = name, file = "", line = ""] = /^(.*) \(([^()]*?)(?::(\d+))?\)$/.exec(name) ?? [];
        next = flame.addNode(node, flame.frames.push({ name: func, file, line: Number(line) || null, kind: line ? "python" : "native" }) - 1);
        known.set(key, next);
      }
      node = next;
    }
    flame.setWeight(0, node, flame.weightOf(0, node) + weight);
    all += weight;
  }
  return all;
}

interface Change {
  samples: number;
  seconds: number;
  error?: Error | null;
  id?: string;
}

/** As long as stop is not called: tell of each change. */
function byIncrements(flame: Flame, target: string, native: boolean, mode: string, tell: (change: Change) => void): () => void {
  let stop = (): void => {};
  let gone = false;
  const take = (value: unknown): void => {
    const told = value as Increment;
    add(flame, told);
    tell({ samples: told.samples, seconds: told.seconds, error: null });
  };
  const failed = (error: Error): void => tell({ samples: 0, seconds: 0, error });
  const listen = (words: Record<string, unknown>): void => {
    if (!gone) stop = subscribe({ topic: "flame", every: 1, ...words }, { value: take, failed, pieces: true });
  };
  if (!has("/profiles")) {
    listen({ target, rate: 100, mode, native });
  } else {
    askJson<{ id: string }>("api/v1/profiles", { method: "POST", body: { target, seconds: SECONDS, rate: 100, mode, native } }).then((made) => {
      if (gone) void ask(`api/v1/profiles/${made.id}`, { method: "DELETE" }).catch(() => {});
      tell({ samples: 0, seconds: 0, id: made.id });
      listen({ profile: made.id });
    }, failed);
  }
  return () => {
    gone = true;
    stop();
  };
}

function byFiles(flame: Flame, target: string, native: boolean, mode: string, tell: (change: Change) => void): () => void {
  const abort = new AbortController();
  const known = new Map<string, number>();
  const words = { seconds: "2", format: "collapsed", ...(native ? { native: "1" } : {}), ...(mode === "wall" ? { idle: "1" } : {}) };
  const loop = async (): Promise<void> => {
    for (let samples = 0, seconds = 0; !abort.signal.aborted; ) {
      if (hidden() || state.frozen) {
        await new Promise((done) => setTimeout(done, 500));
        continue;
      }
      try {
        const text = await (await ask(at(target, "profile", words), { signal: abort.signal, accept: "*/*" })).text();
        samples += addCollapsed(flame, known, text);
        seconds += 2;
        tell({ samples, seconds, error: null });
      } catch (error) {
        if (!abort.signal.aborted) tell({ samples, seconds, error: error as Error });
        return;
      }
    }
  };
  void loop();
  return () => abort.abort();
}

export function useFlame(target: string, native: boolean, mode: string): Sampling {
  const [round, setRound] = useState(0);
  const [paused, setPaused] = useState(false);
  const [told, setTold] = useState<Change>({ samples: 0, seconds: 0 });
  const flame = useRef(new Flame());
  const held = useRef(false);
  held.current = paused;
  const live = hasLive();
  useEffect(() => {
    const mine = new Flame();
    flame.current = mine;
    setTold({ samples: 0, seconds: 0 });
    if (target.startsWith("file:")) return;
    const tell = (change: Change): void => {
      if (!(held.current || state.frozen) || change.error) setTold((old) => ({ ...old, ...change }));
    };
    return (live ? byIncrements : byFiles)(mine, target, native, mode, tell);
  }, [target, native, mode, round]);
  return {
    flame: flame.current,
    samples: told.samples,
    seconds: told.seconds,
    error: told.error ?? null,
    id: told.id ?? "",
    paused,
    live,
    native,
    pause: () => setPaused(!paused),
    restart: () => (setPaused(false), setRound((n) => n + 1)),
  };
}
