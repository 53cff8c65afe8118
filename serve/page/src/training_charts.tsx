// The charts of Training: the time of steps and what it goes into, what is logged and watched, rates, collectives, memory.
import { h, Fragment } from "./preact.js";
import { bytes, clock, count, duration, number, percent, plain } from "./format.js";
import { numeric, PHASES, rates, type Collectives, type Logs, type Row, type Steps } from "./training_data.js";
import type { Span } from "./time_window.js";
import { useUsage } from "./usage.js";
import { Chart, type Line } from "./chart.js";
import { Table, type Column } from "./parts.js";

const at = (rows: Row[]): number[] => rows.map((row) => Number(row["at"]));

/** A chart of the screen: its x is time, its cursor that of all. */
function Timed({ label, rows, lines, span, ...more }: { label: string; rows: Row[]; lines: Line[]; span: Span; band?: boolean; stacked?: boolean }) {
  return <Chart label={label} time together="training" x={at(rows)} lines={lines} span={[span.from, span.until]} height={180} {...more} />;
}

const column = (rows: Row[], name: string): (number | null)[] => rows.map((row) => numeric(row[name]));

// ---- steps ----

function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

export function StepTime({ told, span }: { told: Steps; span: Span }) {
  const { rows } = told;
  const typical = median(column(rows, "mean").filter((value) => value !== null));
  const steps = rows.reduce((sum, row) => sum + (numeric(row["n"]) ?? 0), 0);
  const lines = ["most", "least", "mean"].map((name, i) => ({ label: ["longest", "shortest", "mean"][i]!, values: column(rows, name), value: duration }));
  return (
    <section>
      <h2>Time of a step</h2>
      <p class="quiet">
        {count(steps, "step")}, now at {number(numeric(rows.at(-1)?.["step"]) ?? 0)}, typically {duration(typical)}
      </p>
      <Timed label="Time of a step" rows={rows} span={span} band lines={lines} />
    </section>
  );
}

export function Shares({ shares, title }: { shares: { name: string; share: number; more?: string }[]; title: string }) {
  const total = shares.reduce((sum, one) => sum + one.share, 0) || 1;
  return (
    <section>
      <h2>{title}</h2>
      <div class="bar" role="img" aria-label={shares.map((one) => `${one.name} ${percent(one.share / total)}`).join(", ")}>
        {shares.map((one, i) => (
          <span class={`ground${(i % 6) + 1}`} style={{ width: `${(one.share / total) * 100}%` }} />
        ))}
      </div>
      <ul class="plainlist legend">
        {shares.map((one, i) => (
          <li>
            <i class={`ground${(i % 6) + 1}`} /> {plain(one.name, 60)}: {percent(one.share / total)} <span class="quiet">{plain(one.more ?? "", 80)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

export function Phases({ told, span }: { told: Steps; span: Span }) {
  const { rows } = told;
  const names = PHASES.filter((name) => rows.some((row) => (numeric(row[name]) ?? 0) > 0));
  return (
    <section>
      <h2>What a step goes into</h2>
      <p class="quiet">mean of each moment, one above the other</p>
      <Timed label="Phases of a step" rows={rows} span={span} stacked lines={names.map((name) => ({ label: name, values: column(rows, name), value: duration }))} />
    </section>
  );
}

export const slowColumns: Column<Row>[] = [
  { name: "Step", right: true, cell: (row) => number(Number(row["step"])) },
  { name: "When", cell: (row) => clock(Number(row["at"])) },
  { name: "Time", right: true, cell: (row) => duration(Number(row["seconds"])) },
  ...PHASES.map((name): Column<Row> => ({ name, right: true, cell: (row) => (numeric(row[name]) ? duration(Number(row[name])) : "") })),
];

// ---- logged, watched ----

export function Logged({ told, span }: { told: Logs; span: Span }) {
  const shown = told.names.slice(0, 12);
  return (
    <>
      {shown.map((name) => (
        <section key={name}>
          <h2>{plain(name, 40)}</h2>
          <Timed label={name} rows={told.rows} span={span} lines={[{ label: plain(name, 40), values: column(told.rows, name) }]} />
        </section>
      ))}
    </>
  );
}

export function Variables({ told, span }: { told: Map<string, Row[]>; span: Span }) {
  return (
    <>
      {[...told].slice(0, 12).map(([name, rows]) => (
        <section key={name}>
          <h2>{plain(name, 60)}</h2>
          <Timed label={name} rows={rows} span={span} lines={[{ label: plain(name, 40), values: column(rows, "value") }]} />
        </section>
      ))}
    </>
  );
}

// ---- rates, collectives, memory ----

export function Rates({ told, logged, span }: { told: Steps; logged: Logs; span: Span }) {
  const { steps, logged: named } = rates(told.rows, logged);
  return (
    <>
      {steps.length > 0 && (
        <section>
          <h2>Steps a second</h2>
          <Timed label="Steps a second" rows={told.rows} span={span} lines={steps} />
        </section>
      )}
      {named.map((one) => (
        <section key={one.label}>
          <h2>{plain(one.label, 60)}</h2>
          <Timed label={one.label} rows={logged.rows} span={span} lines={[{ label: plain(one.label, 40), values: one.values }]} />
        </section>
      ))}
    </>
  );
}

const milliseconds = (value: number): string => duration(value / 1000);

const lateColumns: Column<Row>[] = [
  { name: "Rank that came last", cell: (row) => String(row["rank"]) },
  { name: "Times", right: true, cell: (row) => number(Number(row["times"])) },
  { name: "Others waited", right: true, cell: (row) => milliseconds(Number(row["mean"])) },
  { name: "at most", right: true, cell: (row) => milliseconds(Number(row["most"])) },
];

export function Collective({ told, span }: { told: Collectives; span: Span }) {
  return (
    <>
      {told.ops.slice(0, 6).map((op) => {
        const rows = told.rows.filter((row) => row["op"] === op);
        return (
          <section key={op}>
            <h2>{plain(op, 40)}</h2>
            <Timed label={op} rows={rows} span={span} lines={[{ label: "longest", values: column(rows, "most"), value: milliseconds }, { label: "mean", values: column(rows, "mean"), value: milliseconds }]} />
          </section>
        );
      })}
      {told.late.length > 0 && (
        <section>
          <h2>Who makes the others wait</h2>
          <Table label="Ranks that came last" columns={lateColumns} rows={told.late} />
        </section>
      )}
    </>
  );
}

export function Memory({ target, span }: { target: string; span: Span }) {
  const usage = useUsage(target);
  const here = usage.times.map((time, i) => ({ time, i })).filter(({ time }) => time > span.from && time <= span.until);
  const rows = here.map(({ time }) => ({ at: time }));
  const of = (values: (number | null)[]): (number | null)[] => here.map(({ i }) => values[i] ?? null);
  return (
    <>
      <section>
        <h2>Memory</h2>
        <Timed label="Resident memory" rows={rows} span={span} lines={[{ label: "resident", values: of(usage.rss), value: bytes }]} />
      </section>
      <section>
        <h2>CPU</h2>
        <Timed label="CPUs in use" rows={rows} span={span} lines={[{ label: "CPUs", values: of(usage.cpu) }]} />
      </section>
    </>
  );
}
