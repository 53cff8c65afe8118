// Profile: a flame graph that grows while you look; by thread; callers and callees; files in all formats; two compared.
import { h, Fragment } from "./preact.js";
import { useMemo, useState } from "./hooks.js";
import { ask, askJson, at, has } from "./net.js";
import { set } from "./place.js";
import { count, duration, number, percent, plain } from "./format.js";
import { around, Flame, functions, inverted, type Row } from "./flame.js";
import { useFlame, type Sampling } from "./sampling.js";
import { FlameView } from "./flame_view.js";
import { usePolled } from "./polled.js";
import { Empty, Filter, save, Switch, Table, Trouble, type Column } from "./parts.js";
import type { ScreenProps } from "./main.js";

const FORMATS = ["speedscope", "flamegraph", "collapsed", "pprof", "perfetto", "chrome", "firefox", "heatmap"];
const ENDS: Record<string, string> = { flamegraph: "svg", collapsed: "txt", pprof: "pb.gz", perfetto: "pftrace", heatmap: "html" };

// ---- the table of functions ----

function columns(total: number, open: (row: Row) => void): Column<Row>[] {
  return [
    { name: "Own", right: true, cell: (one) => percent(one.own / total) },
    { name: "Total", right: true, cell: (one) => percent(one.total / total) },
    {
      name: "Function",
      cell: (one) => (
        <button type="button" class="bare fname" onClick={() => open(one)}>
          {plain(one.name, 100)}
        </button>
      ),
    },
    { name: "File", cell: (one) => <span class="fplace">{plain(one.place, 120)}</span> },
  ];
}

function Side({ title, rows, total, open }: { title: string; rows: Row[]; total: number; open: (row: Row) => void }) {
  return (
    <section>
      <h2>{title}</h2>
      {rows.length ? <Table label={title} columns={columns(total, open).slice(1)} rows={rows} /> : <p class="quiet">none</p>}
    </section>
  );
}

export function Functions({ flame, samples, q }: { flame: Flame; samples: number; q: string }) {
  const [open, setOpen] = useState<Row | null>(null);
  const total = flame.total[0] || 1;
  const rows = useMemo(() => functions(flame), [flame, samples, flame.only]).filter((one) => one.name.toLowerCase().includes(q));
  const sides = open && around(flame, open.key);
  return (
    <>
      {open && sides && (
        <section aria-label="Callers and callees">
          <h2>
            {plain(open.name, 100)}{" "}
            <button type="button" onClick={() => setOpen(null)}>
              Close
            </button>
          </h2>
          <div class="cells">
            <Side title="Called by" rows={sides.callers} total={total} open={setOpen} />
            <Side title="Calls" rows={sides.callees} total={total} open={setOpen} />
          </div>
        </section>
      )}
      <h2>Functions</h2>
      <Table label="Functions" columns={columns(total, setOpen)} rows={rows.slice(0, 40)} />
    </>
  );
}

// ---- files, and two compared ----

interface Saved {
  id: string;
  target: string;
  command: string | null;
  started: number;
  seconds: number;
  samples: number;
  done: boolean;
}

/** A choice of formats: what `load` gives of one becomes a file, name.END. */
export function SaveAs({ words, formats, name, load }: { words: string; formats: string[]; name: string; load: (format: string) => Promise<Response> }) {
  const [error, setError] = useState<Error | null>(null);
  const [busy, setBusy] = useState("");
  const take = async (format: string): Promise<void> => {
    setBusy(format);
    setError(null);
    try {
      save(`${name}.${ENDS[format] ?? "json"}`, "", await (await load(format)).blob());
    } catch (failed) {
      setError(failed as Error);
    }
    setBusy("");
  };
  return (
    <>
      <label class="switch">
        {busy ? `making ${busy} …` : words}{" "}
        <select value="" disabled={busy !== ""} onChange={(event: { currentTarget: HTMLSelectElement }) => void take(event.currentTarget.value)}>
          <option value="">choose</option>
          {formats.map((one) => (
            <option value={one}>{one}</option>
          ))}
        </select>
      </label>
      <Trouble error={error} />
    </>
  );
}

function Files({ target, sampling }: { target: string; sampling: Sampling }) {
  const load = (format: string): Promise<Response> => {
    const fresh = at(target, "profile", { seconds: "5", format, ...(sampling.native ? { native: "1" } : {}) });
    return ask(sampling.id ? `api/v1/profiles/${sampling.id}?format=${format}` : fresh, { accept: "*/*" });
  };
  return <SaveAs words={sampling.id ? "Save as" : "Save 5 s as"} formats={FORMATS} name={`profile-${target.split(".")[0]}`} load={load} />;
}

interface Compared {
  frames: Flame["frames"];
  nodes: [number, number][];
  before: number[];
  after: number[];
  before_total: number;
  after_total: number;
}

/** Shares after, tinted by how they changed: red is more. */
function compared(told: Compared): { flame: Flame; tint: (node: number) => number } {
  const flame = new Flame();
  const before = new Flame();
  flame.frames = told.frames;
  told.nodes.forEach(([parent, frame], i) => {
    if (i) [flame, before].forEach((one) => one.addNode(parent, frame));
    flame.setWeight(0, i, told.after[i] ?? 0);
    before.setWeight(0, i, told.before[i] ?? 0);
  });
  flame.layOut();
  before.layOut();
  const share = (one: Flame, node: number, all: number): number => one.total[node]! / (all || 1);
  return { flame, tint: (node) => 4 * (share(flame, node, told.after_total) - share(before, node, told.before_total)) };
}

function Compare({ id }: { id: string }) {
  const saved = usePolled(has("/profiles") ? "profiles" : "", 5, async (signal) => (await askJson<{ profiles: Saved[] }>("api/v1/profiles", { signal })).profiles);
  const [other, setOther] = useState("");
  const told = usePolled(other && id ? `${id} ${other}` : "", 0, (signal) => askJson<Compared>(`api/v1/profiles/${other}/diff/${id}`, { signal }));
  const made = useMemo(() => told.value && compared(told.value), [told.value]);
  const others = saved.value?.filter((one) => one.id !== id) ?? [];
  if (!id || !others.length) return null;
  return (
    <>
      <div class="tools">
        <label class="switch">
          Compare with{" "}
          <select value={other} onChange={(event: { currentTarget: HTMLSelectElement }) => setOther(event.currentTarget.value)}>
            <option value="">no other</option>
            {others.map((one) => (
              <option value={one.id}>
                {new Date(one.started * 1000).toLocaleTimeString()} · {plain(one.command ?? one.target, 50)} · {one.samples} samples
              </option>
            ))}
          </select>
        </label>
      </div>
      <Trouble error={told.error} />
      {made && (
        <>
          <p class="quiet">Widths: now. Red: a larger share than in the other profile; blue: a smaller one.</p>
          <FlameView flame={made.flame} changes={0} q="" tint={made.tint} unit="samples" />
        </>
      )}
    </>
  );
}

// ---- the screen ----

function Threads({ flame, only, choose }: { flame: Flame; only: number; choose: (thread: number) => void }) {
  if (flame.threads.length < 2) return null;
  return (
    <label class="switch">
      Thread{" "}
      <select value={only} onChange={(event: { currentTarget: HTMLSelectElement }) => choose(Number(event.currentTarget.value))}>
        <option value={-1}>all {flame.threads.length}</option>
        {flame.threads.map((one, i) => (
          <option value={i}>
            {plain(one.name ?? "thread", 40)} {one.id}
          </option>
        ))}
      </select>
    </label>
  );
}

export function ProfileScreen({ target, place }: ScreenProps) {
  const native = place.params["native"] === "1";
  const mode = place.params["mode"] ?? "active";
  const q = place.params["q"] ?? "";
  const sampling = useFlame(target, native, mode);
  const [invert, setInvert] = useState(false);
  const [sorted, setSorted] = useState(false);
  const [only, setOnly] = useState(-1);
  const { flame, samples } = sampling;
  useMemo(() => {
    flame.show(only);
    flame.unsort();
    if (sorted || sampling.paused) flame.sort();
    flame.layOut();
  }, [flame, samples, only, sorted, sampling.paused]);
  const shown = useMemo(() => {
    if (!invert) return flame;
    const made = inverted(flame);
    made.sort();
    made.layOut();
    return made;
  }, [flame, invert, samples, only]);
  if (target.startsWith("file:")) return <Empty>A dump is one moment: there is nothing to sample. Its stacks are under Stacks.</Empty>;
  return (
    <>
      <h1>Profile</h1>
      <div class="tools">
        <button type="button" class="main" onClick={sampling.pause}>
          {sampling.paused ? "Go on" : "Pause"}
        </button>
        <button type="button" onClick={sampling.restart}>
          Begin anew
        </button>
        <Filter label="Function" value={q} set={(q) => set({ q })} />
        <label class="switch">
          Time{" "}
          <select value={mode} onChange={(event: { currentTarget: HTMLSelectElement }) => set({ mode: event.currentTarget.value })}>
            <option value="active">threads that do something</option>
            <option value="wall">all, waiting ones too</option>
            {sampling.live && <option value="cpu">on a CPU</option>}
            {sampling.live && <option value="gil">with the GIL</option>}
          </select>
        </label>
        <Switch label="native" on={native} set={(on) => set({ native: on ? "1" : "" })} hint="C and C++ frames, too" />
        <Switch label="innermost first" on={invert} set={setInvert} />
        <Switch label="by weight" on={sorted} set={setSorted} hint="else in the order of first appearance, so that nothing moves under the pointer" />
        <Threads flame={flame} only={only} choose={setOnly} />
        <Files target={target} sampling={sampling} />
      </div>
      <Trouble error={sampling.error} />
      <p class="quiet" role="status">
        {samples ? `${count(samples, "sample")} in ${duration(sampling.seconds)}, ${number(flame.count - 1)} nodes` : "sampling …"}
        {sampling.paused && ", paused"}
      </p>
      <FlameView flame={shown} changes={samples} q={q} tint={null} unit="samples" />
      <Compare id={sampling.id} />
      {samples > 0 && <Functions flame={flame} samples={samples} q={q.toLowerCase()} />}
    </>
  );
}
