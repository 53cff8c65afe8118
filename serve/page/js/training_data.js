import { query, records } from "./net.js";
const PIECES = 300;
export const numeric = (value) => (typeof value === "number" && Number.isFinite(value) ? value : null);
export const PHASES = ["data", "forward", "backward", "optimizer", "comm_wait", "other"];
const quoted = (name) => `"${name.replaceAll('"', '""')}"`;
async function pieces(target, table, select, span, signal, by = "", where = "") {
    const width = (span.until - span.from) / PIECES;
    const from = Math.floor(span.from / width) * width;
    const sql = `SELECT avg(timestamp) AS at, ${by && by + ", "}${select} FROM ${table} WHERE timestamp > ${from} AND timestamp <= ${span.until}${where && " AND " + where}
GROUP BY ${by && by + ", "}CAST((timestamp - ${from}) / ${width} AS INTEGER) ORDER BY at`;
    return records(await query(target, sql, signal));
}
export async function steps(target, span, signal) {
    const timing = `max(coalesce(global_step, local_step)) AS step, avg(step_duration_sec) AS mean, min(step_duration_sec) AS least, max(step_duration_sec) AS most, count(*) AS n, ${PHASES.map((name) => `avg(${name}) AS ${name}`).join(", ")}`;
    const rows = await pieces(target, "python.torch_step_timing", timing, span, signal);
    if (rows.length)
        return { rows, phases: true };
    const counted = "max(step) AS step, avg(previous_duration) AS mean, min(previous_duration) AS least, max(previous_duration) AS most, count(*) AS n";
    return { rows: await pieces(target, "python.steps", counted, span, signal, "", "previous_duration IS NOT NULL"), phases: false };
}
export async function slowest(target, span, signal) {
    const sql = `SELECT coalesce(global_step, local_step) AS step, timestamp AS at, step_duration_sec AS seconds, ${PHASES.join(", ")} FROM python.torch_step_timing
WHERE timestamp > ${span.from} AND timestamp <= ${span.until} ORDER BY step_duration_sec DESC LIMIT 5`;
    return records(await query(target, sql, signal));
}
const NOT_LOGGED = new Set(["time", "timestamp", "pid", "rank", "epoch", "step", "local_step", "other"]);
export async function logs(target, span, signal) {
    const last = await query(target, "SELECT * FROM python.training_logs ORDER BY timestamp DESC LIMIT 20", signal);
    const names = last.columns.filter((name, i) => !NOT_LOGGED.has(name) && last.rows.some((row) => typeof row[i] === "number" || name === "loss"));
    if (!last.rows.length)
        return { names: [], rows: [], badSince: null };
    const rows = await pieces(target, "python.training_logs", ["max(step) AS step", "count(*) AS n", ...names.map((name) => `avg(${quoted(name)}) AS ${quoted(name)}`)].join(", "), span, signal);
    return { names: names.filter((name) => rows.some((row) => numeric(row[name]) !== null)), rows, badSince: await badSince(target, signal) };
}
async function badSince(target, signal) {
    const sql = `SELECT min(step) AS step FROM python.training_logs WHERE loss IS NULL
AND step > (SELECT max(step) FROM python.training_logs WHERE loss IS NOT NULL)`;
    return numeric(records(await query(target, sql, signal))[0]?.["step"]);
}
export async function variables(target, span, signal) {
    const rows = await pieces(target, "python.variables", "avg(number) AS value, min(number) AS least, max(number) AS most", span, signal, "func, name", "number IS NOT NULL");
    const named = new Map();
    for (const row of rows) {
        const name = `${row["name"]} of ${row["func"]}`;
        named.set(name, [...(named.get(name) ?? []), row]);
    }
    return named;
}
const COUNTED = /(^|_)(tokens?|samples?|items?|images?|sequences?|seqs?|words?|frames?)(_|$)/i;
const A_SECOND = /per_?s(ec|econd)?$|_s$|throughput|tps$/i;
export function rates(rows, logged) {
    const perSecond = (row) => (numeric(row["mean"]) ? 1 / numeric(row["mean"]) : null);
    const gaps = logged.rows.map((row, i) => (i ? Number(row["at"]) - Number(logged.rows[i - 1]["at"]) : null));
    const told = logged.names.filter((name) => COUNTED.test(name) || A_SECOND.test(name));
    return {
        steps: rows.length ? [{ label: "steps a second", values: rows.map(perSecond) }] : [],
        logged: told.map((name) => ({
            label: A_SECOND.test(name) ? name : `${name} a second`,
            values: logged.rows.map((row, i) => {
                const value = numeric(row[name]);
                if (A_SECOND.test(name) || value === null)
                    return value;
                return gaps[i] ? (value * Number(row["n"])) / gaps[i] : null;
            }),
        })),
    };
}
export async function collectives(target, span, signal) {
    const rows = await pieces(target, "python.comm_collective", "avg(duration_ms) AS mean, max(duration_ms) AS most, sum(bytes) AS bytes, count(*) AS n", span, signal, "op");
    const ops = [...new Set(rows.map((row) => String(row["op"])))].sort();
    if (!rows.length)
        return { ops, rows, late: [] };
    const sql = `SELECT src_rank AS rank, count(*) AS times, avg(wait_ms) AS mean, max(wait_ms) AS most FROM comm_metrics
WHERE timestamp > ${span.from} AND timestamp <= ${span.until} GROUP BY src_rank ORDER BY sum(wait_ms) DESC LIMIT 8`;
    const late = await query(target, sql, signal).then(records, () => []);
    return { ops, rows, late };
}
const TABLES = ["python.torch_step_timing", "python.steps", "python.training_logs", "python.variables", "python.comm_collective"];
export async function earliest(target, signal) {
    const sql = TABLES.map((table) => `SELECT min(timestamp) AS at FROM ${table}`).join(" UNION ALL ");
    const found = records(await query(target, sql, signal)).map((row) => numeric(row["at"])).filter((at) => at !== null);
    return Math.min(...found, Infinity);
}
