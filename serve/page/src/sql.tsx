// SQL: the tables with their columns, an editor, the rows, a chart of them; what was asked before stays in this browser.
import { h, Fragment } from "./preact.js";
import { useEffect, useRef, useState } from "./hooks.js";
import { ask, askJson, at, query, records, type Rows } from "./net.js";
import { set } from "./place.js";
import { isJob, jobOf } from "./job_list.js";
import { state } from "./watch.js";
import { CoverageBar } from "./verdict.js";
import { count, duration, number, plain } from "./format.js";
import { usePolled } from "./polled.js";
import { save, Trouble } from "./parts.js";
import { Grid } from "./grid.js";
import { Chart } from "./chart.js";
import type { ScreenProps } from "./main.js";

const FIRST = "SELECT func, file, lineno, count(*) AS threads\nFROM python.backtrace\nWHERE depth = 0\nGROUP BY func, file, lineno\nORDER BY threads DESC";
const PLACE = "probing.sql";

// ---- tables and columns ----

interface Table {
  schema: string;
  name: string;
  doc: string;
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

function Columns({ target, table, insert }: { target: string; table: Table; insert: (text: string) => void }) {
  const sql = `SELECT column_name AS name, data_type AS type, unit, doc FROM information_schema.columns WHERE table_schema = ${quote(table.schema)} AND table_name = ${quote(table.name)}`;
  const asked = usePolled(target + sql, 0, (signal) => query(target, sql, signal));
  return (
    <>
      <p class="quiet">{plain(table.doc)}</p>
      <Trouble error={asked.error} />
      <ul class="columns">
        {asked.value &&
          records(asked.value).map((one) => (
            <li>
              <button type="button" class="bare" title={plain(String(one["doc"] ?? ""))} onClick={() => insert(String(one["name"]))}>
                {plain(String(one["name"]))}
              </button>{" "}
              <span class="quiet">
                {plain(String(one["type"] ?? ""))} {plain(String(one["unit"] ?? ""))}
              </span>
            </li>
          ))}
      </ul>
    </>
  );
}

const TABLES = "SELECT table_schema, table_name, doc FROM information_schema.tables ORDER BY 1, 2";

function Schema({ target, insert }: { target: string; insert: (text: string) => void }) {
  const [open, setOpen] = useState("");
  const asked = usePolled(target, 0, async (signal): Promise<Table[]> => {
    const told = isJob(target) ? records(await query(target, TABLES, signal)) : await askJson<Record<string, string>[]>(at(target, "tables"), { signal });
    return told.map((one) => ({ schema: String(one["table_schema"] ?? ""), name: String(one["table_name"] ?? ""), doc: String(one["doc"] ?? "") }));
  });
  return (
    <section class="schema" aria-label="Tables">
      <h2>Tables</h2>
      <Trouble error={asked.error} />
      <ul>
        {asked.value?.map((one) => {
          const name = `${one.schema}.${one.name}`;
          return (
            <li>
              <button type="button" class="bare" aria-expanded={open === name} title={plain(one.doc)} onClick={() => setOpen(open === name ? "" : name)}>
                {plain(name)}
              </button>
              {open === name && <Columns target={target} table={one} insert={insert} />}
            </li>
          );
        })}
      </ul>
    </section>
  );
}

// ---- what was asked before ----

function asked(): string[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(PLACE) ?? "[]");
    return Array.isArray(kept) ? kept.filter((one) => typeof one === "string") : [];
  } catch {
    return [];
  }
}

function remember(sql: string): void {
  try {
    localStorage.setItem(PLACE, JSON.stringify([sql, ...asked().filter((one) => one !== sql)].slice(0, 50)));
  } catch {
    /* a private window may forbid it */
  }
}

// ---- a chart of the result ----

const isNumber = (rows: Rows, column: number): boolean => rows.rows.length > 0 && rows.rows.every((row) => row[column] === null || typeof row[column] === "number");

/** A time column and numbers: lines.  One text and a number: bars.  Two numbers: dots. */
function ResultChart({ rows }: { rows: Rows }) {
  const numbers = rows.columns.map((_, i) => i).filter((i) => isNumber(rows, i));
  const time = rows.columns.findIndex((name, i) => /^(time|timestamp)$/i.test(name) && numbers.includes(i));
  const column = (i: number): (number | null)[] => rows.rows.map((row) => row[i] as number | null);
  if (rows.rows.length < 2) return null;
  if (time >= 0 && numbers.length > 1) {
    const order = rows.rows.map((row, i) => [row[time] as number | null, i] as const).filter(([at]) => at !== null);
    order.sort((a, b) => a[0]! - b[0]!);
    const lines = numbers.filter((i) => i !== time).slice(0, 6);
    return (
      <Chart
        key={rows.columns.join("\n")}
        label="Result over time"
        time
        x={order.map(([at]) => at!)}
        lines={lines.map((i) => ({ label: plain(rows.columns[i]!, 30), values: order.map(([, row]) => rows.rows[row]![i] as number | null) }))}
      />
    );
  }
  if (rows.columns.length === 2 && numbers.length === 2) {
    const order = rows.rows.map((row) => row as [number, number]).sort((a, b) => a[0] - b[0]);
    return <Chart label={rows.columns.join(" and ")} x={order.map(([x]) => x)} lines={[{ label: plain(rows.columns[1]!, 30), values: order.map(([, y]) => y), dots: true }]} />;
  }
  const text = rows.columns.findIndex((_, i) => !numbers.includes(i));
  const value = numbers.at(-1);
  if (text < 0 || value === undefined || rows.rows.length > 60) return null;
  const names = rows.rows.map((row) => plain(String(row[text] ?? ""), 18));
  return <Chart label={plain(rows.columns[value]!, 30)} bars names={names} x={names.map((_, i) => i)} lines={[{ label: plain(rows.columns[value]!, 30), values: column(value) }]} />;
}

// ---- files ----

/** For spreadsheets: a cell that would be a formula gets an apostrophe. */
function spreadsheet(rows: Rows): string {
  const cell = (value: string | number | null): string => {
    const text = value === null ? "" : String(value);
    const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? "'" + text : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return [rows.columns, ...rows.rows].map((row) => row.map(cell).join(",") + "\r\n").join("");
}

async function download(target: string, sql: string, format: string): Promise<void> {
  const answer = await ask(at(target, "query", { format }), { method: "POST", body: { sql }, accept: "*/*" });
  save("rows." + format, "", await answer.blob());
}

// ---- the screen ----

export function SqlScreen({ target, place }: ScreenProps) {
  const [sql, setSql] = useState(place.params["sql"] ?? asked()[0] ?? FIRST);
  const [rows, setRows] = useState<Rows | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [millis, setMillis] = useState(0);
  const [busy, setBusy] = useState<AbortController | null>(null);
  const area = useRef<HTMLTextAreaElement | null>(null);
  const run = async (): Promise<void> => {
    busy?.abort();
    const abort = new AbortController();
    const begin = performance.now();
    setBusy(abort);
    setError(null);
    set({ sql });
    try {
      setRows(await query(target, sql, abort.signal));
      remember(sql);
    } catch (failed) {
      if (!abort.signal.aborted) setError(failed as Error);
    }
    setMillis(performance.now() - begin);
    setBusy(null);
  };
  useEffect(() => {
    if (place.params["sql"]) void run();
  }, []);
  const insert = (text: string): void => {
    const box = area.current!;
    box.setRangeText(text, box.selectionStart, box.selectionEnd, "end");
    setSql(box.value);
    box.focus();
  };
  const press = (event: KeyboardEvent): void => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    void run();
  };
  const kept = asked();
  // All ranks have the same tables: any one that is here tells them.
  const tables = (isJob(target) && jobOf(state.jobs, target)?.ranks.find((one) => one.target)?.target) || target;
  return (
    <>
      <h1>SQL</h1>
      <div class="sqlparts">
        <Schema key={tables} target={tables} insert={insert} />
        <section aria-label="Statement and rows">
          <textarea
            ref={area}
            class="code"
            aria-label="SQL statement; Ctrl-Enter runs it"
            rows={6}
            spellcheck={false}
            value={sql}
            onKeyDown={press}
            onInput={(event: { currentTarget: HTMLTextAreaElement }) => setSql(event.currentTarget.value)}
          />
          <div class="tools">
            <button type="button" class="main" onClick={() => (busy ? busy.abort() : void run())}>
              {busy ? "Stop" : "Run"}
            </button>
            <span class="quiet">Ctrl-Enter</span>
            {kept.length > 0 && (
              <select aria-label="Asked before" value="" onChange={(event: { currentTarget: HTMLSelectElement }) => setSql(event.currentTarget.value)}>
                <option value="">asked before</option>
                {kept.map((one) => (
                  <option value={one}>{plain(one, 80)}</option>
                ))}
              </select>
            )}
            <span class="gap" />
            <button type="button" onClick={() => void download(target, sql, "csv").catch(setError)}>
              CSV
            </button>
            <button type="button" onClick={() => void download(target, sql, "jsonl").catch(setError)}>
              JSON lines
            </button>
            <button type="button" disabled={!rows} onClick={() => rows && save("rows.csv", "text/csv", spreadsheet(rows))}>
              For spreadsheets
            </button>
          </div>
          <Trouble error={error} />
          {rows?.coverage && <CoverageBar told={rows.coverage} />}
          {rows && (
            <>
              <p class="quiet" role="status">
                {count(rows.rows.length, "row")}, {duration(millis / 1000)}
                {rows.truncated && `; there are more than ${number(rows.rows.length)}: CSV has up to 1,000,000`}
                {rows.warning && "; " + plain(rows.warning)}
              </p>
              <ResultChart rows={rows} />
              <Grid rows={rows} />
            </>
          )}
        </section>
      </div>
    </>
  );
}
