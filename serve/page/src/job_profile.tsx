// Profile of a job: all ranks sampled at the same time, in one flame graph; which rank is elsewhere than the others.
import { h, Fragment } from "./preact.js";
import { useEffect, useMemo, useRef, useState } from "./hooks.js";
import { ask, askJson, at } from "./net.js";
import { count, duration, number, percent, plain } from "./format.js";
import { set, type Place } from "./place.js";
import { Flame, type FlameFrame } from "./flame.js";
import { FlameView } from "./flame_view.js";
import { Functions, SaveAs } from "./profile.js";
import { state } from "./watch.js";
import { hidden } from "./editor.js";
import { CoverageBar } from "./verdict.js";
import { ranksIn, type Coverage } from "./job_list.js";
import { Filter, Loading, Switch, Table, Trouble, type Column } from "./parts.js";

const SECONDS = 3; // of a look, after which it is drawn
const FORMATS = ["flamegraph", "collapsed", "pprof"];

interface Told {
  seconds: number;
  samples: number;
  frames: FlameFrame[];
  nodes: [number, number][];
  threads: { rank: number }[];
  weights: [number, number, number][]; // thread, node, samples
  coverage: Coverage;
}

/** The looks of a job so far: one tree, its "threads" are the ranks. */
class Sum {
  flame = new Flame();
  samples = 0;
  seconds = 0;
  coverage: Coverage | null = null;
  private readonly frames = new Map<string, number>();
  private readonly nodes = new Map<string, number>();
  private readonly ranks = new Map<number, number>();

  private frameOf(frame: FlameFrame): number {
    const key = `${frame.kind}\n${frame.name}\n${frame.file}\n${frame.line}`;
    const known = this.frames.get(key);
    if (known !== undefined) return known;
    this.frames.set(key, this.flame.frames.length);
    return this.flame.frames.push(frame) - 1;
  }

  private nodeOf(parent: number, frame: number): number {
    const key = `${parent} ${frame}`;
    const known = this.nodes.get(key);
    if (known !== undefined) return known;
    const made = this.flame.addNode(parent, frame);
    this.nodes.set(key, made);
    return made;
  }

  private rankOf(rank: number): number {
    const known = this.ranks.get(rank);
    if (known !== undefined) return known;
    this.ranks.set(rank, this.flame.threads.length);
    return this.flame.threads.push({ id: rank, name: "rank", rank }) - 1;
  }

  add(told: Told): void {
    const frames = told.frames.map((frame) => this.frameOf(frame));
    const nodes = [0];
    told.nodes.forEach(([parent, frame], i) => i && nodes.push(this.nodeOf(nodes[parent]!, frames[frame]!)));
    const ranks = told.threads.map((thread) => this.rankOf(thread.rank));
    for (const [thread, node, samples] of told.weights) {
      const rank = ranks[thread]!;
      const to = nodes[node]!;
      this.flame.setWeight(rank, to, this.flame.weightOf(rank, to) + samples);
    }
    for (const rank of ranksIn(told.coverage.answered)) this.rankOf(rank); // also where it only waits
    this.samples += told.samples;
    this.seconds += told.seconds;
    this.coverage = told.coverage;
  }
}

function useSum(target: string, native: boolean, mode: string): { sum: Sum; error: Error | null; paused: boolean; pause: () => void; restart: () => void } {
  const [round, setRound] = useState(0);
  const [paused, setPaused] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const [, again] = useState(0);
  const sum = useRef(new Sum());
  const held = useRef(false);
  held.current = paused;
  useEffect(() => {
    const mine = new Sum();
    const abort = new AbortController();
    sum.current = mine;
    setError(null);
    const words = { seconds: String(SECONDS), mode, ...(native ? { native: "1" } : {}) };
    const loop = async (): Promise<void> => {
      while (!abort.signal.aborted) {
        try {
          if (!hidden() && !state.frozen && !held.current) {
            mine.add(await askJson<Told>(at(target, "profile", words), { signal: abort.signal, watches: true }));
            setError(null);
            again((n) => n + 1);
            continue;
          }
        } catch (failed) {
          if (abort.signal.aborted) return;
          setError(failed as Error);
        }
        await new Promise((done) => setTimeout(done, 1000));
      }
    };
    void loop();
    return () => abort.abort();
  }, [target, native, mode, round]);
  return { sum: sum.current, error, paused, pause: () => setPaused(!paused), restart: () => (setPaused(false), setRound((n) => n + 1)) };
}

// ---- by rank ----

interface ByRank {
  rank: number;
  index: number; // in the flame graph
  samples: number;
  name: string; // the function in which it is longer than most
  share: number;
  most: number; // the share that this function has in the rank in the middle
}

function middle(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

const FEW = 20; // samples: too few to tell

/** Of each rank the function in which it is, or in what it calls, for another part of its time than the rank in the middle. */
export function byRank(flame: Flame): ByRank[] {
  const inside = flame.threads.map(() => new Map<string, number>());
  const all = flame.threads.map(() => 0);
  for (let node = 1; node < flame.count; node++) {
    if (!flame.threads.some((_, i) => flame.weightOf(i, node))) continue;
    const names = new Set<string>(); // the innermost first: of functions with the same share it is told
    for (let at = node; at > 0; at = flame.parent[at]!) names.add(flame.functionOf(at));
    flame.threads.forEach((_, i) => {
      const weight = flame.weightOf(i, node);
      if (!weight) return;
      all[i]! += weight;
      for (const name of names) inside[i]!.set(name, (inside[i]!.get(name) ?? 0) + weight);
    });
  }
  const counted = flame.threads.map((_, i) => i).filter((i) => all[i]! >= FEW);
  const share = (i: number, name: string): number => (inside[i]!.get(name) ?? 0) / (all[i] || 1);
  const names = [...new Set(inside.flatMap((mine) => [...mine.keys()]))];
  const most = new Map(names.map((name) => [name, middle(counted.map((i) => share(i, name)))]));
  const rows = flame.threads.map((thread, index): ByRank => {
    const apart = (name: string): number => share(index, name) - (most.get(name) ?? 0);
    const mine = [...inside[index]!.keys()];
    const name = mine.reduce((best, one) => (apart(one) > apart(best) + 0.01 ? one : best), mine[0] ?? "");
    return { rank: thread.id, index, samples: all[index]!, name: name.split("\n")[0]!, share: share(index, name), most: most.get(name) ?? 0 };
  });
  return rows.sort((a, b) => b.share - b.most - (a.share - a.most) || a.rank - b.rank);
}

const FAR = 0.2; // of its time

const isOdd = (one: ByRank): boolean => one.samples >= FEW && one.share - one.most > FAR;

function Ranks({ rows, only, choose }: { rows: ByRank[]; only: number; choose: (index: number) => void }) {
  const columns: Column<ByRank>[] = [
    {
      name: "Rank",
      right: true,
      cell: (one) => (
        <button type="button" class="bare" aria-pressed={only === one.index} onClick={() => choose(only === one.index ? -1 : one.index)}>
          {one.rank}
        </button>
      ),
    },
    { name: "Samples", right: true, cell: (one) => number(one.samples) },
    { name: "More than most in", cell: (one) => <span class="fname">{plain(one.name, 80)}</span> },
    { name: "of its time", right: true, cell: (one) => percent(one.share) },
    { name: "of that of most", right: true, cell: (one) => <span class={isOdd(one) ? "bad" : "quiet"}>{percent(one.most)}</span> },
  ];
  const odd = rows.filter(isOdd).length;
  return (
    <section>
      <h2>Ranks {rows.length > 1 && <span class="quiet">{odd ? `${odd} of ${rows.length} elsewhere than most` : "all spend their time alike"}</span>}</h2>
      <Table label="Time of the ranks" columns={columns} rows={rows.slice(0, 64)} />
      {rows.length > 64 && <p class="quiet">The 64 of {rows.length} ranks that differ the most.</p>}
    </section>
  );
}

function Files({ target, native, mode }: { target: string; native: boolean; mode: string }) {
  const load = (format: string): Promise<Response> =>
    ask(at(target, "profile", { seconds: "5", format, mode, ...(native ? { native: "1" } : {}) }), { accept: "*/*", watches: true });
  return <SaveAs words="Save 5 s as" formats={FORMATS} name={`profile-${target.slice(1)}`} load={load} />;
}

export function JobProfile({ target, place }: { target: string; place: Place }) {
  const native = place.params["native"] === "1";
  const mode = place.params["mode"] ?? "active";
  const q = place.params["q"] ?? "";
  const { sum, error, paused, pause, restart } = useSum(target, native, mode);
  const [only, setOnly] = useState(-1);
  const { flame, samples, coverage } = sum;
  useMemo(() => {
    flame.show(only < flame.threads.length ? only : -1);
    flame.unsort();
    if (paused) flame.sort();
    flame.layOut();
  }, [flame, samples, only, paused]);
  const rows = useMemo(() => byRank(flame), [flame, samples]);
  const rank = flame.threads[only]?.id;
  const idle = coverage !== null && only < 0 && !flame.total[0];
  return (
    <>
      <h1>Profile of {plain(target, 80)}</h1>
      <div class="tools">
        <button type="button" class="main" onClick={pause}>
          {paused ? "Go on" : "Pause"}
        </button>
        <button type="button" onClick={restart}>
          Begin anew
        </button>
        <Filter label="Function" value={q} set={(q) => set({ q })} />
        <label class="switch">
          Time{" "}
          <select value={mode} onChange={(event: { currentTarget: HTMLSelectElement }) => set({ mode: event.currentTarget.value })}>
            <option value="active">threads that do something</option>
            <option value="wall">all, waiting ones too</option>
            <option value="cpu">on a CPU</option>
            <option value="gil">with the GIL</option>
          </select>
        </label>
        <Switch label="native" on={native} set={(on) => set({ native: on ? "1" : "" })} hint="C and C++ frames, too" />
        <Files target={target} native={native} mode={mode} />
      </div>
      <Trouble error={error} />
      {coverage && <CoverageBar told={coverage} />}
      {!coverage && !error && <Loading />}
      <p class="quiet" role="status">
        {coverage ? `${count(samples, "sample")} of ${count(flame.threads.length, "rank")} in ${duration(sum.seconds)}` : "sampling …"}
        {paused && ", paused"}
        {rank !== undefined && `; shown: rank ${rank}`}
      </p>
      {idle && (
        <p class="banner">
          All threads of these ranks wait.{" "}
          <button type="button" onClick={() => set({ mode: "wall" })}>
            Show where they wait
          </button>
        </p>
      )}
      {coverage && !idle && <FlameView flame={flame} changes={samples} q={q} tint={null} unit="samples" />}
      {rows.length > 0 && !idle && <Ranks rows={rows} only={only} choose={setOnly} />}
      {samples > 0 && !idle && <Functions flame={flame} samples={samples} q={q.toLowerCase()} />}
    </>
  );
}
