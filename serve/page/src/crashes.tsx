// Crashes: the dumps of the crash folder; one opens as a target with the same screens.
import { h, Fragment } from "./preact.js";
import { askJson, at, has, query, records } from "./net.js";
import { bytes, plain, plainPlace } from "./format.js";
import { link } from "./place.js";
import { usePolled } from "./polled.js";
import { state } from "./watch.js";
import { useCrashes, type Crash } from "./crash_list.js";
import { framesOf, type Stacks } from "./looks.js";
import { FrameList } from "./frames.js";
import { localsOf } from "./locals.js";
import { CoverageBar } from "./verdict.js";
import { isJob, type Coverage } from "./job_list.js";
import { Empty, Loading, Table, Trouble, type Column } from "./parts.js";
import type { ScreenProps } from "./main.js";

const columns: Column<Crash>[] = [
  { name: "When", cell: (one) => <span title={new Date(one.time * 1000).toISOString()}>{new Date(one.time * 1000).toLocaleString()}</span> },
  { name: "What", cell: (one) => <a href={link({ target: "file:" + one.file, screen: "crashes" })}>{plain(one.title || one.file, 120)}</a> },
  { name: "Where", cell: (one) => <span class="fplace">{plainPlace(one.where, 120)}</span> },
  { name: "Process", right: true, cell: (one) => one.pid ?? "" },
  { name: "Ranks", cell: (one) => one.ranks },
  { name: "Alike", right: true, cell: (one) => (one.count > 1 ? one.count : "") },
  { name: "Size", right: true, cell: (one) => (one.bytes ? bytes(one.bytes) : "") },
];

const GROUPS = `SELECT crash_group, count(*) AS crashes, group_concat(DISTINCT rank) AS ranks, max(time) AS last, title, place, kind
FROM system.crashes GROUP BY coalesce(crash_group, file) ORDER BY last DESC`;

// ---- one dump ----

type Row = Record<string, string | number | null>;

const text = (value: unknown): string => (value === null || value === undefined ? "" : String(value));

function value(name: string, told: Row): string {
  const one = told[name];
  if (name === "time") return new Date(Number(one) * 1000).toLocaleString();
  return name === "address" ? "0x" + Number(one).toString(16) : plain(text(one), 400);
}

function Chain({ rows }: { rows: Row[] }) {
  if (!rows.length) return null;
  return (
    <>
      <h2>Exceptions</h2>
      <ul class="plainlist">
        {rows.map((one) => (
          <li>
            {one["link"] ? <span class="quiet">{plain(text(one["link"]), 40)}: </span> : null}
            <b>{plain(text(one["type"]), 80)}</b>: {plain(text(one["message"]), 400)}{" "}
            <span class="fplace">
              {plain(text(one["func"]), 80)} {plain(text(one["file"]), 120)}:{one["lineno"]}
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}

/** The thread that crashed, innermost frame first, with its variables. */
function Fallen({ target, thread }: { target: string; thread: number }) {
  const stacks = usePolled(target + " stacks", 0, (signal) => askJson<Stacks>(at(target, "stacks"), { signal }));
  const locals = usePolled(target + " locals", 0, (signal) => localsOf(target, false, signal));
  const fallen = stacks.value?.threads.find((one) => one.id === thread) ?? stacks.value?.threads[0];
  if (!stacks.value || !fallen) return <Trouble error={stacks.error} />;
  return (
    <>
      <h2>Stack of {plain(fallen.name ?? `thread ${fallen.id}`, 60)}, which crashed</h2>
      <FrameList frames={framesOf(stacks.value, fallen)} target={target} q="" locals={locals.value?.get(fallen.id) ?? null} />
    </>
  );
}

function One({ target }: { target: string }) {
  const crash = usePolled(target, 0, async (signal) => records(await query(target, "SELECT * FROM system.crash", signal))[0] ?? null);
  const chain = usePolled(target, 0, async (signal) =>
    records(await query(target, "SELECT type, message, func, file, lineno, link, thread_name FROM python.exception WHERE state <> 'handled' ORDER BY os_thread_id, depth", signal)),
  );
  const told = crash.value;
  return (
    <>
      <h1 class={told ? "bad" : ""}>{told ? plain(text(told["title"]), 200) : "A dump"}</h1>
      {told && (
        <p>
          {value("time", told)}, process {told["pid"]}
          {told["rank"] !== null && `, rank ${told["rank"]} of ${told["world_size"]}`}
          {told["file"] && <span class="fplace"> {plain(`${told["func"]} ${told["file"]}:${told["lineno"]}`, 200)}</span>}
        </p>
      )}
      <p>
        <a href={link({ target, screen: "stacks", params: { locals: "1" } })}>All stacks and variables</a> · <a href={link({ target, screen: "tensors" })}>Tensors</a> ·{" "}
        <a href={link({ target, screen: "sql" })}>SQL</a> · <a href={link({ screen: "crashes" })}>all crashes</a>
      </p>
      <Trouble error={crash.error ?? chain.error} />
      {!told && !crash.error && <Loading />}
      <Chain rows={chain.value ?? []} />
      {told && <Fallen target={target} thread={Number(told["os_thread_id"])} />}
      {told && (
        <details class="bare">
          <summary>Signal, thread, group</summary>
          <dl class="locals">
            {["file_name", ...Object.keys(told)]
              .filter((name) => name === "file_name" || (told[name] !== null && name !== "title"))
              .map((name) => (
                <div>
                  <dt>{name === "file_name" ? "dump" : name}</dt>
                  <dd>{name === "file_name" ? plain(target.replace(/^file:/, ""), 160) : value(name, told)}</dd>
                </div>
              ))}
          </dl>
        </details>
      )}
    </>
  );
}

// ---- those of a job ----

/** Equal ones of several ranks are one. */
interface JobCrash {
  first: string;
  count: number;
  ranks: string;
  title: string;
  place: string;
  host: string;
  path: string;
  bytes: number;
}

const jobColumns: Column<JobCrash>[] = [
  { name: "First (UTC)", cell: (one) => one.first },
  { name: "What", cell: (one) => plain(one.title || one.path, 120) },
  { name: "Where", cell: (one) => <span class="fplace">{plainPlace(one.place, 120)}</span> },
  { name: "Ranks", cell: (one) => one.ranks },
  { name: "Host", cell: (one) => plain(one.host, 60) },
  { name: "Dump", cell: (one) => <span class="fplace">{plainPlace(one.path, 120)}</span> },
  { name: "Size", right: true, cell: (one) => bytes(one.bytes) },
];

function OfJob({ target }: { target: string }) {
  const asked = usePolled(`${target} crashes`, 10, (signal) => askJson<{ rows: JobCrash[]; coverage: Coverage }>(at(target, "crashes"), { signal }));
  const told = asked.value;
  return (
    <>
      <h1>Crashes of {plain(target, 80)}</h1>
      <Trouble error={asked.error} />
      {told && <CoverageBar told={told.coverage} />}
      {!told && !asked.error && <Loading />}
      {told && (told.rows.length ? <Table label="Crash dumps of the job" columns={jobColumns} rows={told.rows} /> : <Empty>No rank has left a crash dump.</Empty>)}
      {told && told.rows.length > 0 && (
        <p class="quiet">
          <code>probing -t {plain(target, 80)} crash list --pull DIR</code> fetches them
        </p>
      )}
    </>
  );
}

export function CrashesScreen({ place }: ScreenProps) {
  const crashes = useCrashes();
  if (place.target.startsWith("file:")) return <One target={place.target} />;
  if (isJob(place.target) && has("/jobs/{}/crashes")) return <OfJob target={place.target} />;
  return (
    <>
      <h1>Crashes</h1>
      <Trouble error={crashes.error} />
      {crashes.value && crashes.value.length > 0 && <Table label="Crash dumps" columns={columns} rows={crashes.value} />}
      {crashes.value && crashes.value.length > 0 && state.processes[0] && (
        <p>
          <a href={link({ target: state.processes[0].process.id, screen: "sql", params: { sql: GROUPS } })}>Ask in SQL</a> <span class="quiet">system.crashes, also of processes that could write no dump</span>
        </p>
      )}
      {!has("/crashes") && <Empty>This server does not list crash dumps; `probing crash list` does.</Empty>}
      {crashes.value?.length === 0 && (
        <Empty>
          <p>No crash dump is there. A process leaves one when it crashes, if it was started so:</p>
          <pre>PROBING_CRASH=1 python train.py</pre>
          <p>or, for one that runs already:</p>
          <pre>probing PID inject -c</pre>
        </Empty>
      )}
    </>
  );
}
