// Memory: what the process uses over time, which types of objects grow, which tensors are large and whose they are.
import { h, Fragment } from "./preact.js";
import { useState } from "./hooks.js";
import { query, records } from "./net.js";
import { bytes, count, duration, number, plain } from "./format.js";
import { usePolled, useWatch } from "./polled.js";
import { watched } from "./watch.js";
import { useUsage } from "./usage.js";
import { Chart } from "./chart.js";
import { Loading, Table, Trouble, type Column } from "./parts.js";
import type { ScreenProps } from "./main.js";

type Row = Record<string, string | number | null>;

// ---- over time ----

function Curves({ target }: { target: string }) {
  useWatch();
  const { times, rss, cpu, threads } = useUsage(target);
  if (times.length < 2) return <Loading />;
  return (
    <div class="cells">
      <section>
        <h2>Resident memory</h2>
        <Chart label="Resident memory" time together="memory" x={times} lines={[{ label: "memory", values: rss, value: bytes }]} />
      </section>
      <section>
        <h2>CPU</h2>
        <Chart label="CPUs in use" time together="memory" x={times} lines={[{ label: "CPUs", values: cpu }]} />
      </section>
      <section>
        <h2>Threads</h2>
        <Chart label="Threads" time together="memory" x={times} lines={[{ label: "threads", values: threads, value: String }]} height={140} />
      </section>
    </div>
  );
}

// ---- objects by type ----

interface Counted {
  type: string;
  count: number;
  bytes: number;
  more: number | null;
  moreBytes: number | null;
}

function change(rows: Row[], first: Map<string, Row> | null): Counted[] {
  const all = rows.map((one): Counted => {
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

const signed = (value: number | null, show: (value: number) => string): string => (value === null || value === 0 ? "" : (value > 0 ? "+" : "") + show(value));

const typeColumns: Column<Counted>[] = [
  { name: "Type", cell: (one) => <code>{plain(one.type, 80)}</code> },
  { name: "Objects", right: true, cell: (one) => number(one.count) },
  { name: "Bytes", right: true, cell: (one) => bytes(one.bytes) },
  { name: "More objects", right: true, cell: (one) => <span class={(one.more ?? 0) > 0 ? "bad" : ""}>{signed(one.more, number)}</span> },
  { name: "More bytes", right: true, cell: (one) => <span class={(one.moreBytes ?? 0) > 0 ? "bad" : ""}>{signed(one.moreBytes, bytes)}</span> },
];

function Objects({ target }: { target: string }) {
  const asked = usePolled(target + " objects", 0, async (signal) => {
    const rows = records(await query(target, "SELECT type, sum(count) AS count, sum(bytes) AS bytes FROM python.objects GROUP BY type", signal));
    return { rows, at: Date.now() / 1000 };
  });
  const [first, setFirst] = useState<{ rows: Map<string, Row>; at: number } | null>(null);
  const now = asked.value;
  const keep = (): void => {
    if (now) setFirst({ rows: new Map(now.rows.map((one) => [String(one["type"]), one])), at: now.at });
    asked.again();
  };
  return (
    <section>
      <h2>Objects by type</h2>
      <div class="tools">
        <button type="button" onClick={keep} disabled={!now}>
          {first ? "Compare with now from here on" : "Compare from here on"}
        </button>
        <button type="button" onClick={asked.again}>
          Look again
        </button>
        {now && first && <span class="quiet">the difference of {duration(Math.max(0, now.at - first.at))}</span>}
      </div>
      <Trouble error={asked.error} />
      {!now && !asked.error && <Loading />}
      {now && <Table label="Objects by type" columns={first ? typeColumns : typeColumns.slice(0, 3)} rows={change(now.rows, first?.rows ?? null)} />}
    </section>
  );
}

// ---- tensors by size ----

const TENSORS = `SELECT t.type, t.shape, t.dtype, t.device, t.storage_bytes AS bytes,
  coalesce((SELECT name FROM torch.parameters p WHERE p.storage = t.storage LIMIT 1), '') AS owner
FROM torch.tensors t GROUP BY t.storage ORDER BY bytes DESC LIMIT 40`;

const tensorColumns: Column<Row>[] = [
  { name: "Tensor", cell: (one) => <code>{plain(`${one["dtype"]} ${one["shape"]}`, 80)}</code> },
  { name: "Device", cell: (one) => plain(String(one["device"] ?? ""), 20) },
  { name: "Storage", right: true, cell: (one) => bytes(Number(one["bytes"] ?? 0)) },
  { name: "Belongs to", cell: (one) => (one["owner"] ? <code>{plain(String(one["owner"]), 80)}</code> : <span class="quiet">no module owns it</span>) },
];

function Tensors({ target }: { target: string }) {
  const asked = usePolled(target + " tensors", 0, async (signal) => records(await query(target, TENSORS, signal)));
  if (asked.value?.length === 0) return null;
  return (
    <section>
      <h2>Largest tensors</h2>
      <Trouble error={asked.error} />
      {asked.value && <Table label="Largest tensors" columns={tensorColumns} rows={asked.value} />}
    </section>
  );
}

export function MemoryScreen({ target }: ScreenProps) {
  const one = watched(target);
  return (
    <>
      <h1>Memory</h1>
      {one && (
        <p class="quiet">
          {bytes(one.process.rss)} now, {one.grew >= 0 ? "+" : ""}
          {bytes(one.grew)} in {duration(one.watched)}, {count(one.process.threads, "thread")}
        </p>
      )}
      {!target.startsWith("file:") && <Curves target={target} />}
      <Objects target={target} />
      <Tensors target={target} />
    </>
  );
}
