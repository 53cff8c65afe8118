import { h, Fragment } from "./preact.js";
import { useEffect, useRef, useState } from "./hooks.js";
import { ask, askJson, at, query, records } from "./net.js";
import { set } from "./place.js";
import { isJob, jobOf } from "./job_list.js";
import { state } from "./watch.js";
import { CoverageBar } from "./verdict.js";
import { count, duration, number, plain } from "./format.js";
import { usePolled } from "./polled.js";
import { save, Trouble } from "./parts.js";
import { Grid } from "./grid.js";
import { Chart } from "./chart.js";
const FIRST = "SELECT func, file, lineno, count(*) AS threads\nFROM python.backtrace\nWHERE depth = 0\nGROUP BY func, file, lineno\nORDER BY threads DESC";
const PLACE = "probing.sql";
function quote(text) {
    return `'${text.replaceAll("'", "''")}'`;
}
function Columns({ target, table, insert }) {
    const sql = `SELECT column_name AS name, data_type AS type, unit, doc FROM information_schema.columns WHERE table_schema = ${quote(table.schema)} AND table_name = ${quote(table.name)}`;
    const asked = usePolled(target + sql, 0, (signal) => query(target, sql, signal));
    return (h(Fragment, null,
        h("p", { class: "quiet" }, plain(table.doc)),
        h(Trouble, { error: asked.error }),
        h("ul", { class: "columns" }, asked.value &&
            records(asked.value).map((one) => (h("li", null,
                h("button", { type: "button", class: "bare", title: plain(String(one["doc"] ?? "")), onClick: () => insert(String(one["name"])) }, plain(String(one["name"]))),
                " ",
                h("span", { class: "quiet" },
                    plain(String(one["type"] ?? "")),
                    " ",
                    plain(String(one["unit"] ?? "")))))))));
}
const TABLES = "SELECT table_schema, table_name, doc FROM information_schema.tables ORDER BY 1, 2";
function Schema({ target, insert }) {
    const [open, setOpen] = useState("");
    const asked = usePolled(target, 0, async (signal) => {
        const told = isJob(target) ? records(await query(target, TABLES, signal)) : await askJson(at(target, "tables"), { signal });
        return told.map((one) => ({ schema: String(one["table_schema"] ?? ""), name: String(one["table_name"] ?? ""), doc: String(one["doc"] ?? "") }));
    });
    return (h("section", { class: "schema", "aria-label": "Tables" },
        h("h2", null, "Tables"),
        h(Trouble, { error: asked.error }),
        h("ul", null, asked.value?.map((one) => {
            const name = `${one.schema}.${one.name}`;
            return (h("li", null,
                h("button", { type: "button", class: "bare", "aria-expanded": open === name, title: plain(one.doc), onClick: () => setOpen(open === name ? "" : name) }, plain(name)),
                open === name && h(Columns, { target: target, table: one, insert: insert })));
        }))));
}
function asked() {
    try {
        const kept = JSON.parse(localStorage.getItem(PLACE) ?? "[]");
        return Array.isArray(kept) ? kept.filter((one) => typeof one === "string") : [];
    }
    catch {
        return [];
    }
}
function remember(sql) {
    try {
        localStorage.setItem(PLACE, JSON.stringify([sql, ...asked().filter((one) => one !== sql)].slice(0, 50)));
    }
    catch {
    }
}
const isNumber = (rows, column) => rows.rows.length > 0 && rows.rows.every((row) => row[column] === null || typeof row[column] === "number");
function ResultChart({ rows }) {
    const numbers = rows.columns.map((_, i) => i).filter((i) => isNumber(rows, i));
    const time = rows.columns.findIndex((name, i) => /^(time|timestamp)$/i.test(name) && numbers.includes(i));
    const column = (i) => rows.rows.map((row) => row[i]);
    if (rows.rows.length < 2)
        return null;
    if (time >= 0 && numbers.length > 1) {
        const order = rows.rows.map((row, i) => [row[time], i]).filter(([at]) => at !== null);
        order.sort((a, b) => a[0] - b[0]);
        const lines = numbers.filter((i) => i !== time).slice(0, 6);
        return (h(Chart, { key: rows.columns.join("\n"), label: "Result over time", time: true, x: order.map(([at]) => at), lines: lines.map((i) => ({ label: plain(rows.columns[i], 30), values: order.map(([, row]) => rows.rows[row][i]) })) }));
    }
    if (rows.columns.length === 2 && numbers.length === 2) {
        const order = rows.rows.map((row) => row).sort((a, b) => a[0] - b[0]);
        return h(Chart, { label: rows.columns.join(" and "), x: order.map(([x]) => x), lines: [{ label: plain(rows.columns[1], 30), values: order.map(([, y]) => y), dots: true }] });
    }
    const text = rows.columns.findIndex((_, i) => !numbers.includes(i));
    const value = numbers.at(-1);
    if (text < 0 || value === undefined || rows.rows.length > 60)
        return null;
    const names = rows.rows.map((row) => plain(String(row[text] ?? ""), 18));
    return h(Chart, { label: plain(rows.columns[value], 30), bars: true, names: names, x: names.map((_, i) => i), lines: [{ label: plain(rows.columns[value], 30), values: column(value) }] });
}
function spreadsheet(rows) {
    const cell = (value) => {
        const text = value === null ? "" : String(value);
        const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? "'" + text : text;
        return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
    };
    return [rows.columns, ...rows.rows].map((row) => row.map(cell).join(",") + "\r\n").join("");
}
async function download(target, sql, format) {
    const answer = await ask(at(target, "query", { format }), { method: "POST", body: { sql }, accept: "*/*" });
    save("rows." + format, "", await answer.blob());
}
export function SqlScreen({ target, place }) {
    const [sql, setSql] = useState(place.params["sql"] ?? asked()[0] ?? FIRST);
    const [rows, setRows] = useState(null);
    const [error, setError] = useState(null);
    const [millis, setMillis] = useState(0);
    const [busy, setBusy] = useState(null);
    const area = useRef(null);
    const run = async () => {
        busy?.abort();
        const abort = new AbortController();
        const begin = performance.now();
        setBusy(abort);
        setError(null);
        set({ sql });
        try {
            setRows(await query(target, sql, abort.signal));
            remember(sql);
        }
        catch (failed) {
            if (!abort.signal.aborted)
                setError(failed);
        }
        setMillis(performance.now() - begin);
        setBusy(null);
    };
    useEffect(() => {
        if (place.params["sql"])
            void run();
    }, []);
    const insert = (text) => {
        const box = area.current;
        box.setRangeText(text, box.selectionStart, box.selectionEnd, "end");
        setSql(box.value);
        box.focus();
    };
    const press = (event) => {
        if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey))
            return;
        event.preventDefault();
        void run();
    };
    const kept = asked();
    const tables = (isJob(target) && jobOf(state.jobs, target)?.ranks.find((one) => one.target)?.target) || target;
    return (h(Fragment, null,
        h("h1", null, "SQL"),
        h("div", { class: "sqlparts" },
            h(Schema, { key: tables, target: tables, insert: insert }),
            h("section", { "aria-label": "Statement and rows" },
                h("textarea", { ref: area, class: "code", "aria-label": "SQL statement; Ctrl-Enter runs it", rows: 6, spellcheck: false, value: sql, onKeyDown: press, onInput: (event) => setSql(event.currentTarget.value) }),
                h("div", { class: "tools" },
                    h("button", { type: "button", class: "main", onClick: () => (busy ? busy.abort() : void run()) }, busy ? "Stop" : "Run"),
                    h("span", { class: "quiet" }, "Ctrl-Enter"),
                    kept.length > 0 && (h("select", { "aria-label": "Asked before", value: "", onChange: (event) => setSql(event.currentTarget.value) },
                        h("option", { value: "" }, "asked before"),
                        kept.map((one) => (h("option", { value: one }, plain(one, 80)))))),
                    h("span", { class: "gap" }),
                    h("button", { type: "button", onClick: () => void download(target, sql, "csv").catch(setError) }, "CSV"),
                    h("button", { type: "button", onClick: () => void download(target, sql, "jsonl").catch(setError) }, "JSON lines"),
                    h("button", { type: "button", disabled: !rows, onClick: () => rows && save("rows.csv", "text/csv", spreadsheet(rows)) }, "For spreadsheets")),
                h(Trouble, { error: error }),
                rows?.coverage && h(CoverageBar, { told: rows.coverage }),
                rows && (h(Fragment, null,
                    h("p", { class: "quiet", role: "status" },
                        count(rows.rows.length, "row"),
                        ", ",
                        duration(millis / 1000),
                        rows.truncated && `; there are more than ${number(rows.rows.length)}: CSV has up to 1,000,000`,
                        rows.warning && "; " + plain(rows.warning)),
                    h(ResultChart, { rows: rows }),
                    h(Grid, { rows: rows })))))));
}
