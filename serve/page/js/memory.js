import { h, Fragment } from "./preact.js";
import { useState } from "./hooks.js";
import { query, records } from "./net.js";
import { bytes, count, duration, number, plain } from "./format.js";
import { usePolled, useWatch } from "./polled.js";
import { watched } from "./watch.js";
import { useUsage } from "./usage.js";
import { Chart } from "./chart.js";
import { Loading, Table, Trouble } from "./parts.js";
function Curves({ target }) {
    useWatch();
    const { times, rss, cpu, threads } = useUsage(target);
    if (times.length < 2)
        return h(Loading, null);
    return (h("div", { class: "cells" },
        h("section", null,
            h("h2", null, "Resident memory"),
            h(Chart, { label: "Resident memory", time: true, together: "memory", x: times, lines: [{ label: "memory", values: rss, value: bytes }] })),
        h("section", null,
            h("h2", null, "CPU"),
            h(Chart, { label: "CPUs in use", time: true, together: "memory", x: times, lines: [{ label: "CPUs", values: cpu }] })),
        h("section", null,
            h("h2", null, "Threads"),
            h(Chart, { label: "Threads", time: true, together: "memory", x: times, lines: [{ label: "threads", values: threads, value: String }], height: 140 }))));
}
function change(rows, first) {
    const all = rows.map((one) => {
        const old = first?.get(String(one["type"]));
        return {
            type: String(one["type"]),
            count: Number(one["count"]),
            bytes: Number(one["bytes"]),
            more: first ? Number(one["count"]) - Number(old?.["count"] ?? 0) : null,
            moreBytes: first ? Number(one["bytes"]) - Number(old?.["bytes"] ?? 0) : null,
        };
    });
    return all.sort((a, b) => (first ? (b.moreBytes ?? 0) - (a.moreBytes ?? 0) : b.bytes - a.bytes)).slice(0, 40);
}
const signed = (value, show) => (value === null || value === 0 ? "" : (value > 0 ? "+" : "") + show(value));
const typeColumns = [
    { name: "Type", cell: (one) => h("code", null, plain(one.type, 80)) },
    { name: "Objects", right: true, cell: (one) => number(one.count) },
    { name: "Bytes", right: true, cell: (one) => bytes(one.bytes) },
    { name: "More objects", right: true, cell: (one) => h("span", { class: (one.more ?? 0) > 0 ? "bad" : "" }, signed(one.more, number)) },
    { name: "More bytes", right: true, cell: (one) => h("span", { class: (one.moreBytes ?? 0) > 0 ? "bad" : "" }, signed(one.moreBytes, bytes)) },
];
function Objects({ target }) {
    const asked = usePolled(target + " objects", 0, async (signal) => {
        const rows = records(await query(target, "SELECT type, sum(count) AS count, sum(bytes) AS bytes FROM python.objects GROUP BY type", signal));
        return { rows, at: Date.now() / 1000 };
    });
    const [first, setFirst] = useState(null);
    const now = asked.value;
    const keep = () => {
        if (now)
            setFirst({ rows: new Map(now.rows.map((one) => [String(one["type"]), one])), at: now.at });
        asked.again();
    };
    return (h("section", null,
        h("h2", null, "Objects by type"),
        h("div", { class: "tools" },
            h("button", { type: "button", onClick: keep, disabled: !now }, first ? "Compare with now from here on" : "Compare from here on"),
            h("button", { type: "button", onClick: asked.again }, "Look again"),
            now && first && h("span", { class: "quiet" },
                "the difference of ",
                duration(Math.max(0, now.at - first.at)))),
        h(Trouble, { error: asked.error }),
        !now && !asked.error && h(Loading, null),
        now && h(Table, { label: "Objects by type", columns: first ? typeColumns : typeColumns.slice(0, 3), rows: change(now.rows, first?.rows ?? null) })));
}
const TENSORS = `SELECT t.type, t.shape, t.dtype, t.device, t.storage_bytes AS bytes,
  coalesce((SELECT name FROM torch.parameters p WHERE p.storage = t.storage LIMIT 1), '') AS owner
FROM torch.tensors t GROUP BY t.storage ORDER BY bytes DESC LIMIT 40`;
const tensorColumns = [
    { name: "Tensor", cell: (one) => h("code", null, plain(`${one["dtype"]} ${one["shape"]}`, 80)) },
    { name: "Device", cell: (one) => plain(String(one["device"] ?? ""), 20) },
    { name: "Storage", right: true, cell: (one) => bytes(Number(one["bytes"] ?? 0)) },
    { name: "Belongs to", cell: (one) => (one["owner"] ? h("code", null, plain(String(one["owner"]), 80)) : h("span", { class: "quiet" }, "no module owns it")) },
];
function Tensors({ target }) {
    const asked = usePolled(target + " tensors", 0, async (signal) => records(await query(target, TENSORS, signal)));
    if (asked.value?.length === 0)
        return null;
    return (h("section", null,
        h("h2", null, "Largest tensors"),
        h(Trouble, { error: asked.error }),
        asked.value && h(Table, { label: "Largest tensors", columns: tensorColumns, rows: asked.value })));
}
export function MemoryScreen({ target }) {
    const one = watched(target);
    return (h(Fragment, null,
        h("h1", null, "Memory"),
        one && (h("p", { class: "quiet" },
            bytes(one.process.rss),
            " now, ",
            one.grew >= 0 ? "+" : "",
            bytes(one.grew),
            " in ",
            duration(one.watched),
            ", ",
            count(one.process.threads, "thread"))),
        !target.startsWith("file:") && h(Curves, { target: target }),
        h(Objects, { target: target }),
        h(Tensors, { target: target })));
}
