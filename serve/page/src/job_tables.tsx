// Training and Memory of a job: a row for each rank beside those of the others.
import { h, Fragment } from "./preact.js";
import { useState } from "./hooks.js";
import { query, records } from "./net.js";
import { bytes, count, duration, number, plain } from "./format.js";
import { link, type Place } from "./place.js";
import { usePolled } from "./polled.js";
import { CoverageBar } from "./verdict.js";
import type { Coverage, RankedJob } from "./job_list.js";
import { numeric, PHASES, type Row } from "./training_data.js";
import { Empty, Loading, Table, Trouble, type Column } from "./parts.js";

interface Told {
  rows: Row[];
  coverage: Coverage | null;
}

async function ranked(target: string, sql: string, signal: AbortSignal): Promise<Told> {
  const told = await query(target, sql, signal);
  return { rows: records(told), coverage: told.coverage ?? null };
}

/** A number with a bar beside it: how large it is beside the largest. */
function Measure({ value, most, text, name }: { value: number; most: number; text: string; name: string }) {
  return (
    <>
      {text} <meter aria-label={name} min={0} max={most || 1} value={value} />
    </>
  );
}

function rankColumn(job: RankedJob, screen: string): Column<Row> {
  const targets = new Map(job.ranks.map((one) => [one.rank, one.target]));
  return {
    name: "Rank",
    right: true,
    cell: (row) => {
      const to = targets.get(Number(row["rank"]));
      return to ? <a href={link({ target: to, screen })}>{row["rank"]}</a> : String(row["rank"]);
    },
  };
}

const hostColumn: Column<Row> = { name: "Host", cell: (row) => plain(String(row["host"] ?? ""), 60) };

const largest = (rows: Row[], name: string): number => Math.max(0, ...rows.map((row) => numeric(row[name]) ?? 0));

// ---- training ----

const LAST = 60; // s

const stepsSql = (table: string, time: string, step: string, phases: string): string => `SELECT rank, host, count(*) AS steps, max(${step}) AS step, avg(${time}) AS mean, max(${time}) AS most${phases}
FROM ${table} WHERE timestamp > ${Math.floor(Date.now() / 1000) - LAST} AND ${time} IS NOT NULL GROUP BY rank, host ORDER BY rank`;

const lateSql = (): string => `SELECT src_rank AS rank, count(*) AS times, avg(wait_ms) AS mean, max(wait_ms) AS most FROM comm_metrics
WHERE timestamp > ${Math.floor(Date.now() / 1000) - LAST} GROUP BY src_rank ORDER BY sum(wait_ms) DESC LIMIT 8`;

interface Steps extends Told {
  phases: string[];
  late: Row[];
}

async function steps(target: string, signal: AbortSignal): Promise<Steps> {
  const means = PHASES.map((name) => `, avg(${name}) AS ${name}`).join("");
  let told = await ranked(target, stepsSql("python.torch_step_timing", "step_duration_sec", "coalesce(global_step, local_step)", means), signal);
  if (!told.rows.length) told = await ranked(target, stepsSql("python.steps", "previous_duration", "step", ""), signal);
  const late = await query(target, lateSql(), signal).then(records, () => []);
  return { ...told, phases: PHASES.filter((name) => largest(told.rows, name) > 0), late };
}

/** What a rank itself takes of a step, without its wait for others. */
const OWN = ["data", "forward", "backward", "optimizer"];

const own = (row: Row): number => OWN.reduce((sum, name) => sum + (numeric(row[name]) ?? 0), 0);

function stepColumns(job: RankedJob, told: Steps): Column<Row>[] {
  const most = largest(told.rows, "mean");
  const last = largest(told.rows, "step");
  const slowest = Math.max(...told.rows.map(own));
  const phase = (name: string): Column<Row> => {
    const all = told.rows.map((row) => numeric(row[name]) ?? 0).sort((a, b) => a - b);
    const typical = all[Math.floor((all.length - 1) / 2)]!;
    const odd = (value: number): boolean => value > 1.2 * typical && value - typical > 0.05 * most;
    return { name, right: true, cell: (row) => <span class={odd(numeric(row[name]) ?? 0) ? "bad" : ""}>{numeric(row[name]) ? duration(Number(row[name])) : ""}</span> };
  };
  return [
    rankColumn(job, "training"),
    hostColumn,
    { name: "Step", right: true, cell: (row) => <span class={Number(row["step"]) < last - 1 ? "bad" : ""}>{number(Number(row["step"] ?? 0))}</span> },
    { name: "Mean", right: true, cell: (row) => <Measure value={Number(row["mean"])} most={most} text={duration(Number(row["mean"]))} name={`mean step of rank ${row["rank"]}`} /> },
    { name: "Longest", right: true, cell: (row) => duration(Number(row["most"])) },
    ...(told.phases.length ? [{ name: "Its own work", right: true, cell: (row: Row) => <Measure value={own(row)} most={slowest} text={duration(own(row))} name={`own work of rank ${row["rank"]}`} /> }] : []),
    ...told.phases.map(phase),
  ];
}

const lateColumns: Column<Row>[] = [
  { name: "Rank that came last", cell: (row) => String(row["rank"]) },
  { name: "Times", right: true, cell: (row) => number(Number(row["times"])) },
  { name: "Others waited", right: true, cell: (row) => duration(Number(row["mean"]) / 1000) },
  { name: "at most", right: true, cell: (row) => duration(Number(row["most"]) / 1000) },
];

function NotRecorded({ job, told }: { job: RankedJob; told: Steps }) {
  const known = new Set(told.rows.map((row) => row["rank"]));
  const missing = job.ranks.filter((one) => !known.has(one.rank));
  if (!missing.length) return null;
  const some = missing.slice(0, 32);
  return (
    <section class={told.rows.length ? "" : "empty"}>
      <p>No step of the last {LAST} s was recorded in:</p>
      <ul class="plainlist">
        {some.map((one) => (
          <li>
            {one.target ? <a href={link({ target: one.target, screen: "training" })}>rank {one.rank}</a> : `rank ${one.rank}`}{" "}
            <span class="quiet">{one.target ? "where recording can be turned on" : plain(`on ${one.host ?? "?"}: probing ${one.pid ?? "PID"} config probing.torch.profiling=on`, 120)}</span>
          </li>
        ))}
      </ul>
      {missing.length > some.length && <p class="quiet">and in {missing.length - some.length} more ranks</p>}
    </section>
  );
}

export function JobTraining({ target, job }: { target: string; job: RankedJob; place: Place }) {
  const asked = usePolled(`${target} steps`, 2, (signal) => steps(target, signal));
  const told = asked.value;
  return (
    <>
      <h1>Training of {plain(target, 80)}</h1>
      <Trouble error={asked.error} />
      {told?.coverage && <CoverageBar told={told.coverage} />}
      {!told && !asked.error && <Loading />}
      {told && told.rows.length > 0 && (
        <section>
          <h2>
            Steps of the last {LAST} s <span class="quiet">{count(told.rows.length, "rank")}</span>
          </h2>
          <Table label="Steps of the ranks" columns={stepColumns(job, told)} rows={told.rows} />
        </section>
      )}
      {told && told.late.length > 0 && (
        <section>
          <h2>Who makes the others wait</h2>
          <Table label="Ranks that came last" columns={lateColumns} rows={told.late} />
        </section>
      )}
      {told && <NotRecorded job={job} told={told} />}
    </>
  );
}

// ---- memory ----

const MEMORY = "SELECT rank, host, pid, rss, vms, threads FROM system.process ORDER BY rank";

export function JobMemory({ target, job }: { target: string; job: RankedJob; place: Place }) {
  const [first, setFirst] = useState<Map<string, number> | null>(null);
  const asked = usePolled(`${target} memory`, 5, (signal) => ranked(target, MEMORY, signal));
  const told = asked.value;
  const rows = told?.rows ?? [];
  const id = (row: Row): string => `${row["rank"]} ${row["host"]} ${row["pid"]}`;
  const grew = (row: Row): number => Number(row["rss"]) - (first?.get(id(row)) ?? Number(row["rss"]));
  const most = largest(rows, "rss");
  const columns: Column<Row>[] = [
    rankColumn(job, "memory"),
    hostColumn,
    { name: "Resident", right: true, cell: (row) => <Measure value={Number(row["rss"])} most={most} text={bytes(Number(row["rss"]))} name={`memory of rank ${row["rank"]}`} /> },
    ...(first ? [{ name: "More", right: true, cell: (row: Row) => <span class={grew(row) > 0 ? "bad" : ""}>{grew(row) > 0 ? "+" : ""}{bytes(grew(row))}</span> }] : []),
    { name: "Address space", right: true, cell: (row) => bytes(Number(row["vms"] ?? 0)) },
    { name: "Threads", right: true, cell: (row) => number(Number(row["threads"] ?? 0)) },
  ];
  return (
    <>
      <h1>Memory of {plain(target, 80)}</h1>
      <div class="tools">
        <button type="button" disabled={!told} onClick={() => setFirst(new Map(rows.map((row) => [id(row), Number(row["rss"])])))}>
          {first ? "Compare with now from here on" : "Compare from here on"}
        </button>
      </div>
      <Trouble error={asked.error} />
      {told?.coverage && <CoverageBar told={told.coverage} />}
      {!told && !asked.error && <Loading />}
      {told && (rows.length ? <Table label="Memory of the ranks" columns={columns} rows={rows} /> : <Empty>No rank answered.</Empty>)}
    </>
  );
}
