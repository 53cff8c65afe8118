// What a training job recorded, of a span of time: a row for each of some hundred pieces of it, so that a day costs what a minute does.
import { query, records } from "./net.js";
import type { Span } from "./time_window.js";

export type Row = Record<string, string | number | null>;

const PIECES = 300;

export const numeric = (value: unknown): number | null => (typeof value === "number" && Number.isFinite(value) ? value : null);

export const PHASES = ["data", "forward", "backward", "optimizer", "comm_wait", "other"];

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** The rows of a table in the span, by pieces of it; of each piece what `select` says. */
async function pieces(target: string, table: string, select: string, span: Span, signal: AbortSignal, by = "", where = ""): Promise<Row[]> {
  const width = (span.until - span.from) / PIECES;
  const from = Math.floor(span.from / width) * width; // the same pieces while the span moves on
  const sql = `SELECT avg(timestamp) AS at, ${by && by + ", "}${select} FROM ${table} WHERE timestamp > ${from} AND timestamp <= ${span.until}${where && " AND " + where}
GROUP BY ${by && by + ", "}CAST((timestamp - ${from}) / ${width} AS INTEGER) ORDER BY at`;
  return records(await query(target, sql, signal));
}

// ---- steps ----

export interface Steps {
  rows: Row[]; // at, step, mean, least, most, n, and, where they were recorded, the phases
  phases: boolean;
}

export async function steps(target: string, span: Span, signal: AbortSignal): Promise<Steps> {
  const timing = `max(coalesce(global_step, local_step)) AS step, avg(step_duration_sec) AS mean, min(step_duration_sec) AS least, max(step_duration_sec) AS most, count(*) AS n, ${PHASES.map((name) => `avg(${name}) AS ${name}`).join(", ")}`;
  const rows = await pieces(target, "python.torch_step_timing", timing, span, signal);
  if (rows.length) return { rows, phases: true };
  const counted = "max(step) AS step, avg(previous_duration) AS mean, min(previous_duration) AS least, max(previous_duration) AS most, count(*) AS n";
  return { rows: await pieces(target, "python.steps", counted, span, signal, "", "previous_duration IS NOT NULL"), phases: false };
}

export async function slowest(target: string, span: Span, signal: AbortSignal): Promise<Row[]> {
  const sql = `SELECT coalesce(global_step, local_step) AS step, timestamp AS at, step_duration_sec AS seconds, ${PHASES.join(", ")} FROM python.torch_step_timing
WHERE timestamp > ${span.from} AND timestamp <= ${span.until} ORDER BY step_duration_sec DESC LIMIT 5`;
  return records(await query(target, sql, signal));
}

// ---- what the job logs, and variables that are watched ----

const NOT_LOGGED = new Set(["time", "timestamp", "pid", "rank", "epoch", "step", "local_step", "other"]);

export interface Logs {
  names: string[];
  rows: Row[]; // at, step, n, and the mean of each name
  badSince: number | null; // the first step whose loss is no number, and no later one is
}

export async function logs(target: string, span: Span, signal: AbortSignal): Promise<Logs> {
  const last = await query(target, "SELECT * FROM python.training_logs ORDER BY timestamp DESC LIMIT 20", signal);
  const names = last.columns.filter((name, i) => !NOT_LOGGED.has(name) && last.rows.some((row) => typeof row[i] === "number" || name === "loss"));
  if (!last.rows.length) return { names: [], rows: [], badSince: null };
  const rows = await pieces(target, "python.training_logs", ["max(step) AS step", "count(*) AS n", ...names.map((name) => `avg(${quoted(name)}) AS ${quoted(name)}`)].join(", "), span, signal);
  return { names: names.filter((name) => rows.some((row) => numeric(row[name]) !== null)), rows, badSince: await badSince(target, signal) };
}

/** NaN comes through SQL as NULL. */
async function badSince(target: string, signal: AbortSignal): Promise<number | null> {
  const sql = `SELECT min(step) AS step FROM python.training_logs WHERE loss IS NULL
AND step > (SELECT max(step) FROM python.training_logs WHERE loss IS NOT NULL)`;
  return numeric(records(await query(target, sql, signal))[0]?.["step"]);
}

/** By function and name. */
export async function variables(target: string, span: Span, signal: AbortSignal): Promise<Map<string, Row[]>> {
  const rows = await pieces(target, "python.variables", "avg(number) AS value, min(number) AS least, max(number) AS most", span, signal, "func, name", "number IS NOT NULL");
  const named = new Map<string, Row[]>();
  for (const row of rows) {
    const name = `${row["name"]} of ${row["func"]}`;
    named.set(name, [...(named.get(name) ?? []), row]);
  }
  return named;
}

// ---- what goes through in a second ----

const COUNTED = /(^|_)(tokens?|samples?|items?|images?|sequences?|seqs?|words?|frames?)(_|$)/i;
const A_SECOND = /per_?s(ec|econd)?$|_s$|throughput|tps$/i;

export interface Rate {
  label: string;
  values: (number | null)[];
}

/** Of the pieces of a span: steps, and what the job logs of tokens, samples and the like, each second. */
export function rates(rows: Row[], logged: Logs): { steps: Rate[]; logged: Rate[] } {
  const perSecond = (row: Row): number | null => (numeric(row["mean"]) ? 1 / numeric(row["mean"])! : null);
  const gaps = logged.rows.map((row, i) => (i ? Number(row["at"]) - Number(logged.rows[i - 1]!["at"]) : null));
  const told = logged.names.filter((name) => COUNTED.test(name) || A_SECOND.test(name));
  return {
    steps: rows.length ? [{ label: "steps a second", values: rows.map(perSecond) }] : [],
    logged: told.map((name) => ({
      label: A_SECOND.test(name) ? name : `${name} a second`,
      values: logged.rows.map((row, i) => {
        const value = numeric(row[name]);
        if (A_SECOND.test(name) || value === null) return value;
        return gaps[i] ? (value * Number(row["n"])) / gaps[i]! : null;
      }),
    })),
  };
}

// ---- collectives ----

export interface Collectives {
  ops: string[];
  rows: Row[]; // at, op, mean, most: ms
  late: Row[]; // rank, times, mean, most: who came last, and how long the others waited, ms
}

export async function collectives(target: string, span: Span, signal: AbortSignal): Promise<Collectives> {
  const rows = await pieces(target, "python.comm_collective", "avg(duration_ms) AS mean, max(duration_ms) AS most, sum(bytes) AS bytes, count(*) AS n", span, signal, "op");
  const ops = [...new Set(rows.map((row) => String(row["op"])))].sort();
  if (!rows.length) return { ops, rows, late: [] };
  const sql = `SELECT src_rank AS rank, count(*) AS times, avg(wait_ms) AS mean, max(wait_ms) AS most FROM comm_metrics
WHERE timestamp > ${span.from} AND timestamp <= ${span.until} GROUP BY src_rank ORDER BY sum(wait_ms) DESC LIMIT 8`;
  const late = await query(target, sql, signal).then(records, () => []);
  return { ops, rows, late };
}

// ---- how far back it goes ----

const TABLES = ["python.torch_step_timing", "python.steps", "python.training_logs", "python.variables", "python.comm_collective"];

export async function earliest(target: string, signal: AbortSignal): Promise<number> {
  const sql = TABLES.map((table) => `SELECT min(timestamp) AS at FROM ${table}`).join(" UNION ALL ");
  const found = records(await query(target, sql, signal)).map((row) => numeric(row["at"])).filter((at) => at !== null);
  return Math.min(...found, Infinity);
}
