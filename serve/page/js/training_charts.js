import { h, Fragment } from "./preact.js";
import { bytes, clock, count, duration, number, percent, plain } from "./format.js";
import { numeric, PHASES, rates } from "./training_data.js";
import { useUsage } from "./usage.js";
import { Chart } from "./chart.js";
import { Table } from "./parts.js";
const at = (rows) => rows.map((row) => Number(row["at"]));
function Timed({ label, rows, lines, span, ...more }) {
    return h(Chart, { label: label, time: true, together: "training", x: at(rows), lines: lines, span: [span.from, span.until], height: 180, ...more });
}
const column = (rows, name) => rows.map((row) => numeric(row[name]));
function median(values) {
    const sorted = [...values].sort((a, b) => a - b);
    return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
export function StepTime({ told, span }) {
    const { rows } = told;
    const typical = median(column(rows, "mean").filter((value) => value !== null));
    const steps = rows.reduce((sum, row) => sum + (numeric(row["n"]) ?? 0), 0);
    const lines = ["most", "least", "mean"].map((name, i) => ({ label: ["longest", "shortest", "mean"][i], values: column(rows, name), value: duration }));
    return (h("section", null,
        h("h2", null, "Time of a step"),
        h("p", { class: "quiet" },
            count(steps, "step"),
            ", now at ",
            number(numeric(rows.at(-1)?.["step"]) ?? 0),
            ", typically ",
            duration(typical)),
        h(Timed, { label: "Time of a step", rows: rows, span: span, band: true, lines: lines })));
}
export function Shares({ shares, title }) {
    const total = shares.reduce((sum, one) => sum + one.share, 0) || 1;
    return (h("section", null,
        h("h2", null, title),
        h("div", { class: "bar", role: "img", "aria-label": shares.map((one) => `${one.name} ${percent(one.share / total)}`).join(", ") }, shares.map((one, i) => (h("span", { class: `ground${(i % 6) + 1}`, style: { width: `${(one.share / total) * 100}%` } })))),
        h("ul", { class: "plainlist legend" }, shares.map((one, i) => (h("li", null,
            h("i", { class: `ground${(i % 6) + 1}` }),
            " ",
            plain(one.name, 60),
            ": ",
            percent(one.share / total),
            " ",
            h("span", { class: "quiet" }, plain(one.more ?? "", 80))))))));
}
export function Phases({ told, span }) {
    const { rows } = told;
    const names = PHASES.filter((name) => rows.some((row) => (numeric(row[name]) ?? 0) > 0));
    return (h("section", null,
        h("h2", null, "What a step goes into"),
        h("p", { class: "quiet" }, "mean of each moment, one above the other"),
        h(Timed, { label: "Phases of a step", rows: rows, span: span, stacked: true, lines: names.map((name) => ({ label: name, values: column(rows, name), value: duration })) })));
}
export const slowColumns = [
    { name: "Step", right: true, cell: (row) => number(Number(row["step"])) },
    { name: "When", cell: (row) => clock(Number(row["at"])) },
    { name: "Time", right: true, cell: (row) => duration(Number(row["seconds"])) },
    ...PHASES.map((name) => ({ name, right: true, cell: (row) => (numeric(row[name]) ? duration(Number(row[name])) : "") })),
];
export function Logged({ told, span }) {
    const shown = told.names.slice(0, 12);
    return (h(Fragment, null, shown.map((name) => (h("section", { key: name },
        h("h2", null, plain(name, 40)),
        h(Timed, { label: name, rows: told.rows, span: span, lines: [{ label: plain(name, 40), values: column(told.rows, name) }] }))))));
}
export function Variables({ told, span }) {
    return (h(Fragment, null, [...told].slice(0, 12).map(([name, rows]) => (h("section", { key: name },
        h("h2", null, plain(name, 60)),
        h(Timed, { label: name, rows: rows, span: span, lines: [{ label: plain(name, 40), values: column(rows, "value") }] }))))));
}
export function Rates({ told, logged, span }) {
    const { steps, logged: named } = rates(told.rows, logged);
    return (h(Fragment, null,
        steps.length > 0 && (h("section", null,
            h("h2", null, "Steps a second"),
            h(Timed, { label: "Steps a second", rows: told.rows, span: span, lines: steps }))),
        named.map((one) => (h("section", { key: one.label },
            h("h2", null, plain(one.label, 60)),
            h(Timed, { label: one.label, rows: logged.rows, span: span, lines: [{ label: plain(one.label, 40), values: one.values }] }))))));
}
const milliseconds = (value) => duration(value / 1000);
const lateColumns = [
    { name: "Rank that came last", cell: (row) => String(row["rank"]) },
    { name: "Times", right: true, cell: (row) => number(Number(row["times"])) },
    { name: "Others waited", right: true, cell: (row) => milliseconds(Number(row["mean"])) },
    { name: "at most", right: true, cell: (row) => milliseconds(Number(row["most"])) },
];
export function Collective({ told, span }) {
    return (h(Fragment, null,
        told.ops.slice(0, 6).map((op) => {
            const rows = told.rows.filter((row) => row["op"] === op);
            return (h("section", { key: op },
                h("h2", null, plain(op, 40)),
                h(Timed, { label: op, rows: rows, span: span, lines: [{ label: "longest", values: column(rows, "most"), value: milliseconds }, { label: "mean", values: column(rows, "mean"), value: milliseconds }] })));
        }),
        told.late.length > 0 && (h("section", null,
            h("h2", null, "Who makes the others wait"),
            h(Table, { label: "Ranks that came last", columns: lateColumns, rows: told.late })))));
}
export function Memory({ target, span }) {
    const usage = useUsage(target);
    const here = usage.times.map((time, i) => ({ time, i })).filter(({ time }) => time > span.from && time <= span.until);
    const rows = here.map(({ time }) => ({ at: time }));
    const of = (values) => here.map(({ i }) => values[i] ?? null);
    return (h(Fragment, null,
        h("section", null,
            h("h2", null, "Memory"),
            h(Timed, { label: "Resident memory", rows: rows, span: span, lines: [{ label: "resident", values: of(usage.rss), value: bytes }] })),
        h("section", null,
            h("h2", null, "CPU"),
            h(Timed, { label: "CPUs in use", rows: rows, span: span, lines: [{ label: "CPUs", values: of(usage.cpu) }] }))));
}
