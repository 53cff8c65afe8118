import { h, Fragment } from "./preact.js";
import { useState } from "./hooks.js";
import { query, records } from "./net.js";
import { bytes, count, duration, number, plain } from "./format.js";
import { link } from "./place.js";
import { usePolled } from "./polled.js";
import { CoverageBar } from "./verdict.js";
import { numeric, PHASES } from "./training_data.js";
import { Empty, Loading, Table, Trouble } from "./parts.js";
async function ranked(target, sql, signal) {
    const told = await query(target, sql, signal);
    return { rows: records(told), coverage: told.coverage ?? null };
}
function Measure({ value, most, text, name }) {
    return (h(Fragment, null,
        text,
        " ",
        h("meter", { "aria-label": name, min: 0, max: most || 1, value: value })));
}
function rankColumn(job, screen) {
    const targets = new Map(job.ranks.map((one) => [one.rank, one.target]));
    return {
        name: "Rank",
        right: true,
        cell: (row) => {
            const to = targets.get(Number(row["rank"]));
            return to ? h("a", { href: link({ target: to, screen }) }, row["rank"]) : String(row["rank"]);
        },
    };
}
const hostColumn = { name: "Host", cell: (row) => plain(String(row["host"] ?? ""), 60) };
const largest = (rows, name) => Math.max(0, ...rows.map((row) => numeric(row[name]) ?? 0));
const LAST = 60;
const stepsSql = (table, time, step, phases) => `SELECT rank, host, count(*) AS steps, max(${step}) AS step, avg(${time}) AS mean, max(${time}) AS most${phases}
FROM ${table} WHERE timestamp > ${Math.floor(Date.now() / 1000) - LAST} AND ${time} IS NOT NULL GROUP BY rank, host ORDER BY rank`;
const lateSql = () => `SELECT src_rank AS rank, count(*) AS times, avg(wait_ms) AS mean, max(wait_ms) AS most FROM comm_metrics
WHERE timestamp > ${Math.floor(Date.now() / 1000) - LAST} GROUP BY src_rank ORDER BY sum(wait_ms) DESC LIMIT 8`;
async function steps(target, signal) {
    const means = PHASES.map((name) => `, avg(${name}) AS ${name}`).join("");
    let told = await ranked(target, stepsSql("python.torch_step_timing", "step_duration_sec", "coalesce(global_step, local_step)", means), signal);
    if (!told.rows.length)
        told = await ranked(target, stepsSql("python.steps", "previous_duration", "step", ""), signal);
    const late = await query(target, lateSql(), signal).then(records, () => []);
    return { ...told, phases: PHASES.filter((name) => largest(told.rows, name) > 0), late };
}
const OWN = ["data", "forward", "backward", "optimizer"];
const own = (row) => OWN.reduce((sum, name) => sum + (numeric(row[name]) ?? 0), 0);
function stepColumns(job, told) {
    const most = largest(told.rows, "mean");
    const last = largest(told.rows, "step");
    const slowest = Math.max(...told.rows.map(own));
    const phase = (name) => {
        const all = told.rows.map((row) => numeric(row[name]) ?? 0).sort((a, b) => a - b);
        const typical = all[Math.floor((all.length - 1) / 2)];
        const odd = (value) => value > 1.2 * typical && value - typical > 0.05 * most;
        return { name, right: true, cell: (row) => h("span", { class: odd(numeric(row[name]) ?? 0) ? "bad" : "" }, numeric(row[name]) ? duration(Number(row[name])) : "") };
    };
    return [
        rankColumn(job, "training"),
        hostColumn,
        { name: "Step", right: true, cell: (row) => h("span", { class: Number(row["step"]) < last - 1 ? "bad" : "" }, number(Number(row["step"] ?? 0))) },
        { name: "Mean", right: true, cell: (row) => h(Measure, { value: Number(row["mean"]), most: most, text: duration(Number(row["mean"])), name: `mean step of rank ${row["rank"]}` }) },
        { name: "Longest", right: true, cell: (row) => duration(Number(row["most"])) },
        ...(told.phases.length ? [{ name: "Its own work", right: true, cell: (row) => h(Measure, { value: own(row), most: slowest, text: duration(own(row)), name: `own work of rank ${row["rank"]}` }) }] : []),
        ...told.phases.map(phase),
    ];
}
const lateColumns = [
    { name: "Rank that came last", cell: (row) => String(row["rank"]) },
    { name: "Times", right: true, cell: (row) => number(Number(row["times"])) },
    { name: "Others waited", right: true, cell: (row) => duration(Number(row["mean"]) / 1000) },
    { name: "at most", right: true, cell: (row) => duration(Number(row["most"]) / 1000) },
];
function NotRecorded({ job, told }) {
    const known = new Set(told.rows.map((row) => row["rank"]));
    const missing = job.ranks.filter((one) => !known.has(one.rank));
    if (!missing.length)
        return null;
    const some = missing.slice(0, 32);
    return (h("section", { class: told.rows.length ? "" : "empty" },
        h("p", null,
            "No step of the last ",
            LAST,
            " s was recorded in:"),
        h("ul", { class: "plainlist" }, some.map((one) => (h("li", null,
            one.target ? h("a", { href: link({ target: one.target, screen: "training" }) },
                "rank ",
                one.rank) : `rank ${one.rank}`,
            " ",
            h("span", { class: "quiet" }, one.target ? "where recording can be turned on" : plain(`on ${one.host ?? "?"}: probing ${one.pid ?? "PID"} config probing.torch.profiling=on`, 120)))))),
        missing.length > some.length && h("p", { class: "quiet" },
            "and in ",
            missing.length - some.length,
            " more ranks")));
}
export function JobTraining({ target, job }) {
    const asked = usePolled(`${target} steps`, 2, (signal) => steps(target, signal));
    const told = asked.value;
    return (h(Fragment, null,
        h("h1", null,
            "Training of ",
            plain(target, 80)),
        h(Trouble, { error: asked.error }),
        told?.coverage && h(CoverageBar, { told: told.coverage }),
        !told && !asked.error && h(Loading, null),
        told && told.rows.length > 0 && (h("section", null,
            h("h2", null,
                "Steps of the last ",
                LAST,
                " s ",
                h("span", { class: "quiet" }, count(told.rows.length, "rank"))),
            h(Table, { label: "Steps of the ranks", columns: stepColumns(job, told), rows: told.rows }))),
        told && told.late.length > 0 && (h("section", null,
            h("h2", null, "Who makes the others wait"),
            h(Table, { label: "Ranks that came last", columns: lateColumns, rows: told.late }))),
        told && h(NotRecorded, { job: job, told: told })));
}
const MEMORY = "SELECT rank, host, pid, rss, vms, threads FROM system.process ORDER BY rank";
export function JobMemory({ target, job }) {
    const [first, setFirst] = useState(null);
    const asked = usePolled(`${target} memory`, 5, (signal) => ranked(target, MEMORY, signal));
    const told = asked.value;
    const rows = told?.rows ?? [];
    const id = (row) => `${row["rank"]} ${row["host"]} ${row["pid"]}`;
    const grew = (row) => Number(row["rss"]) - (first?.get(id(row)) ?? Number(row["rss"]));
    const most = largest(rows, "rss");
    const columns = [
        rankColumn(job, "memory"),
        hostColumn,
        { name: "Resident", right: true, cell: (row) => h(Measure, { value: Number(row["rss"]), most: most, text: bytes(Number(row["rss"])), name: `memory of rank ${row["rank"]}` }) },
        ...(first ? [{ name: "More", right: true, cell: (row) => h("span", { class: grew(row) > 0 ? "bad" : "" },
                    grew(row) > 0 ? "+" : "",
                    bytes(grew(row))) }] : []),
        { name: "Address space", right: true, cell: (row) => bytes(Number(row["vms"] ?? 0)) },
        { name: "Threads", right: true, cell: (row) => number(Number(row["threads"] ?? 0)) },
    ];
    return (h(Fragment, null,
        h("h1", null,
            "Memory of ",
            plain(target, 80)),
        h("div", { class: "tools" },
            h("button", { type: "button", disabled: !told, onClick: () => setFirst(new Map(rows.map((row) => [id(row), Number(row["rss"])]))) }, first ? "Compare with now from here on" : "Compare from here on")),
        h(Trouble, { error: asked.error }),
        told?.coverage && h(CoverageBar, { told: told.coverage }),
        !told && !asked.error && h(Loading, null),
        told && (rows.length ? h(Table, { label: "Memory of the ranks", columns: columns, rows: rows }) : h(Empty, null, "No rank answered."))));
}
