// Tensors: the parameters of the modules, and the arrays in variables; statistics when asked, the first layer with NaN or Inf in red.
import { h, Fragment } from "./preact.js";
import { useState } from "./hooks.js";
import { has, query, records } from "./net.js";
import { set } from "./place.js";
import { bytes, count, duration, number, plain } from "./format.js";
import { usePolled } from "./polled.js";
import { Empty, Filter, Loading, Switch, Table, Trouble, type Column } from "./parts.js";
import { OneTensor } from "./tensor.js";
import type { ScreenProps } from "./main.js";

type Row = Record<string, string | number | null>;

interface Opened {
  address: number;
  name: string;
}

const broken = (one: Row): boolean => Number(one["nan"] ?? 0) + Number(one["inf"] ?? 0) + Number(one["grad_nan"] ?? 0) > 0;

const value = (one: Row, name: string): string => (one[name] === null || one[name] === undefined ? "" : number(Number(one[name])));

function columns(statistics: boolean, open: (one: Row) => void): Column<Row>[] {
  const first: Column<Row>[] = [
    {
      name: "Parameter",
      cell: (one) =>
        has("/p/{}/tensor/{}") ? (
          <button type="button" class="bare fname" onClick={() => open(one)}>
            {plain(String(one["name"]), 80)}
          </button>
        ) : (
          <code>{plain(String(one["name"]), 80)}</code>
        ),
    },
    { name: "Shape", cell: (one) => <code>{plain(String(one["shape"] ?? ""), 40)}</code> },
    { name: "Type", cell: (one) => plain(`${one["dtype"] ?? ""} ${one["device"] ?? ""}`, 40) },
    { name: "Bytes", right: true, cell: (one) => bytes(Number(one["bytes"] ?? 0)) },
  ];
  const more: Column<Row>[] = [
    {
      name: "NaN, Inf",
      right: true,
      cell: (one) => (broken(one) ? <b class="bad">{`${value(one, "nan") || 0}, ${value(one, "inf") || 0}${Number(one["grad_nan"] ?? 0) ? "; gradient " + value(one, "grad_nan") : ""}`}</b> : ""),
    },
    { name: "Least", right: true, cell: (one) => value(one, "min") },
    { name: "Most", right: true, cell: (one) => value(one, "max") },
    { name: "Mean", right: true, cell: (one) => value(one, "mean") },
    { name: "Deviation", right: true, cell: (one) => value(one, "std") },
    { name: "Gradient norm", right: true, cell: (one) => value(one, "grad_norm") },
    { name: "", cell: (one) => <span class="quiet">{plain(String(one["error"] ?? ""), 80)}</span> },
  ];
  return statistics ? [...first, ...more] : first;
}

// ---- arrays in variables ----

const VARIABLES = `SELECT thread_name, func, name, type, value, address FROM python.locals
WHERE (type LIKE '%ndarray' OR type LIKE '%Tensor' OR type LIKE '%.Parameter') AND address IS NOT NULL ORDER BY os_thread_id, depth, name LIMIT 60`;

function Variables({ target, q, open }: { target: string; q: string; open: (one: Opened) => void }) {
  const asked = usePolled(target + " variables", 0, async (signal) => records(await query(target, VARIABLES, signal)));
  const rows = asked.value?.filter((one) => `${one["name"]} ${one["func"]}`.toLowerCase().includes(q.toLowerCase())) ?? [];
  const columns: Column<Row>[] = [
    {
      name: "Variable",
      cell: (one) => (
        <button type="button" class="bare fname" onClick={() => open({ address: Number(one["address"]), name: `${one["name"]} of ${one["func"]}` })}>
          {plain(String(one["name"]), 60)}
        </button>
      ),
    },
    { name: "Function", cell: (one) => <code>{plain(String(one["func"]), 60)}</code> },
    { name: "Value", cell: (one) => <span class="fplace">{plain(String(one["value"] ?? ""), 120)}</span> },
  ];
  if (!rows.length) return null;
  return (
    <section>
      <h2>In variables</h2>
      <Table label="Arrays and tensors in variables" columns={columns} rows={rows} />
    </section>
  );
}

// ---- the screen ----

function Models({ target }: { target: string }) {
  const models = usePolled(target + " models", 0, async (signal) =>
    records(await query(target, "SELECT type, parameters_total AS parameters, bytes_total AS bytes, dtype, device FROM torch.modules WHERE depth = 0 ORDER BY parameters DESC LIMIT 12", signal)),
  );
  return (
    <ul class="plainlist">
      {models.value?.map((one) => (
        <li>
          <code>{plain(String(one["type"]), 80)}</code> {count(Number(one["parameters"] ?? 0), "parameter")}, {bytes(Number(one["bytes"] ?? 0))}{" "}
          <span class="quiet">
            {plain(String(one["dtype"] ?? ""), 20)} {plain(String(one["device"] ?? ""), 20)}
          </span>
        </li>
      ))}
    </ul>
  );
}

export function TensorsScreen({ target, place }: ScreenProps) {
  const statistics = place.params["statistics"] === "1";
  const q = place.params["q"] ?? "";
  const [open, setOpen] = useState<Opened | null>(null);
  const from = statistics ? "torch.parameters(1)" : "torch.parameters";
  const asked = usePolled(target + from, statistics ? 5 : 0, async (signal) => records(await query(target, `SELECT * FROM ${from} LIMIT 4000`, signal)));
  const rows = asked.value?.filter((one) => String(one["name"]).toLowerCase().includes(q.toLowerCase())) ?? [];
  const bad = asked.value?.filter(broken) ?? [];
  const openRow = (one: Row): void => setOpen({ address: Number(one["address"]), name: String(one["name"]) });
  return (
    <>
      <h1>Tensors</h1>
      <div class="tools">
        <Filter label="Parameter" value={q} set={(q) => set({ q })} />
        <Switch label="statistics" on={statistics} set={(on) => set({ statistics: on ? "1" : "" })} hint="reads every value of every parameter, each 5 s" />
        <button type="button" onClick={asked.again}>
          Look again
        </button>
        {asked.value && (
          <span class="quiet">
            {count(asked.value.length, "parameter")}, read in {duration(asked.millis / 1000)}
          </span>
        )}
      </div>
      <Trouble error={asked.error} />
      {bad.length > 0 && (
        <p class="trouble" role="alert">
          <b>
            {count(bad.length, "parameter")} with NaN or Inf; the first is {plain(String(bad[0]!["name"]), 80)}.
          </b>{" "}
          <button type="button" onClick={() => openRow(bad[0]!)}>
            Show where
          </button>
        </p>
      )}
      {!asked.value && !asked.error && <Loading />}
      {asked.value?.length === 0 && <Empty>No PyTorch module is held by the Python code of this process.</Empty>}
      {asked.value && asked.value.length > 0 && <Models target={target} />}
      {open && <OneTensor key={open.address} target={target} address={open.address} name={open.name} close={() => setOpen(null)} />}
      {rows.length > 0 && <Table label="Parameters" columns={columns(statistics, openRow)} rows={rows.slice(0, 600)} row={(one) => (broken(one) ? "standing" : "")} />}
      {rows.length > 0 && rows.length <= 600 && <p class="quiet">A name opens its values.</p>}
      {rows.length > 600 && <p class="quiet">The first 600 of {number(rows.length)}: filter for others, or ask in SQL.</p>}
      {has("/p/{}/tensor/{}") && <Variables target={target} q={q} open={setOpen} />}
    </>
  );
}
