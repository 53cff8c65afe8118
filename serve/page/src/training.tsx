// Training: the time of steps and what it goes into, the loss and what else is logged or watched, what goes through in a second,
// collectives, memory; of the last minutes or of any that were recorded.
import { h, Fragment } from "./preact.js";
import { useRef, useState } from "./hooks.js";
import { query, records } from "./net.js";
import { bytes, clock, count, duration, number, percent, plain } from "./format.js";
import { usePolled, useWatch } from "./polled.js";
import { collectives, earliest, logs, numeric, PHASES, rates, slowest, steps, variables, type Collectives, type Logs, type Row, type Steps } from "./training_data.js";
import { TimeSlider, useTimeWindow, type Span } from "./time_window.js";
import { TurnOn } from "./turn_on.js";
import { useUsage } from "./usage.js";
import { watched } from "./watch.js";
import { link } from "./place.js";
import { Chart, type Line } from "./chart.js";
import { Empty, Switch, Table, Trouble, type Column } from "./parts.js";
import type { ScreenProps } from "./main.js";

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

function StepTime({ told, span }: { told: Steps; span: Span }) {
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

function Shares({ shares, title }: { shares: { name: string; share: number; more?: string }[]; title: string }) {
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

function Phases({ told, span }: { told: Steps; span: Span }) {
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

const slowColumns: Column<Row>[] = [
  { name: "Step", right: true, cell: (row) => number(Number(row["step"])) },
  { name: "When", cell: (row) => clock(Number(row["at"])) },
  { name: "Time", right: true, cell: (row) => duration(Number(row["seconds"])) },
  ...PHASES.map((name): Column<Row> => ({ name, right: true, cell: (row) => (numeric(row[name]) ? duration(Number(row[name])) : "") })),
];

// ---- logged, watched ----

function Logged({ told, span }: { told: Logs; span: Span }) {
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

function Variables({ told, span }: { told: Map<string, Row[]>; span: Span }) {
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

function Watch({ target, done }: { target: string; done: () => void }) {
  const [names, setNames] = useState("loss@");
  return (
    <section>
      <h2>Variables</h2>
      <label class="switch">
        Watch{" "}
        <input
          type="text"
          value={names}
          aria-label="Variables to watch"
          placeholder="loss@train, self.lr@Trainer.step"
          onInput={(event: { currentTarget: HTMLInputElement }) => setNames(event.currentTarget.value)}
        />
      </label>
      <p class="quiet">
        <code>loss@train</code>: the variable <code>loss</code> of the function <code>train</code>, at the end of each step; <code>loss@</code>: of whoever calls backward.
      </p>
      <TurnOn target={target} setting="probing.torch.profiling" value={names && `on,exprs=${names}`} label="Watch these" done={done} />
    </section>
  );
}

// ---- rates, collectives, memory ----

function Rates({ told, logged, span }: { told: Steps; logged: Logs; span: Span }) {
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

function Collective({ told, span }: { told: Collectives; span: Span }) {
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

function Memory({ target, span }: { target: string; span: Span }) {
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

/** What Probing samples from outside: nothing has to be recorded for it. */
function Sampled({ target }: { target: string }) {
  const [on, setOn] = useState(false);
  const sql = `SELECT phase, coalesce(module, activity, '') AS part, sum(share) AS share, max(items_per_second) AS items, max(steps_per_second) AS steps
FROM python.torch_phases GROUP BY 1, 2 ORDER BY share DESC LIMIT 14`;
  const asked = usePolled(on ? target + " phases" : "", 3, async (signal) => records(await query(target, sql, signal)));
  const rows = asked.value?.filter((row) => numeric(row["share"])) ?? [];
  const items = numeric(rows[0]?.["items"]);
  const steps = numeric(rows[0]?.["steps"]);
  return (
    <section>
      <Switch label="sample where the time of a step goes" on={on} set={setOn} hint="samples the stacks for a second, again and again; nothing is loaded into the process" />
      <Trouble error={asked.error} />
      {on && asked.value && !rows.length && <Empty>No PyTorch training step was seen in that second.</Empty>}
      {(items || steps) && (
        <p>
          {steps && `${number(Number(steps.toPrecision(3)))} steps a second`}
          {items && `${steps ? ", " : ""}${number(Number(items.toPrecision(3)))} samples a second from its DataLoader`}
        </p>
      )}
      {rows.length > 0 && <Shares title="Where the last second went" shares={rows.map((row) => ({ name: String(row["phase"]), share: Number(row["share"]), more: `${row["part"] ?? ""}` }))} />}
    </section>
  );
}

// ---- the screen ----

const HOW = `import probing
probing.step()            # each step, in your loop
probing.log(loss=loss)    # and what else you log`;

function Nothing({ target, done }: { target: string; done: () => void }) {
  return (
    <section class="empty">
      <h2>Steps, phases and loss are not recorded yet</h2>
      <p>For PyTorch, without a change of the program: steps, what they go into, and the loss of whoever calls backward.</p>
      <TurnOn target={target} setting="probing.torch.profiling" value="on,exprs=loss@" label="Record training" done={done} />
      <details class="bare">
        <summary>For any program: three lines of Python</summary>
        <pre>{HOW}</pre>
      </details>
    </section>
  );
}

interface Told {
  steps: Steps;
  slow: Row[];
  logs: Logs;
  variables: Map<string, Row[]>;
  collectives: Collectives;
  first: number;
}

async function load(target: string, span: Span, signal: AbortSignal): Promise<Told> {
  const told = await Promise.all([steps(target, span, signal), slowest(target, span, signal), logs(target, span, signal), variables(target, span, signal), collectives(target, span, signal), earliest(target, signal)]);
  return { steps: told[0], slow: told[1], logs: told[2], variables: told[3], collectives: told[4], first: told[5] };
}

export function TrainingScreen({ target }: ScreenProps) {
  useWatch();
  const window = useTimeWindow();
  const file = target.startsWith("file:");
  const key = `${target} training ${window.width} ${window.live ? "" : window.until}`;
  const asked = usePolled(key, window.live ? 2 : 0, (signal) => {
    const until = window.live ? Date.now() / 1000 : window.until;
    return load(target, { from: until - window.width, until, live: window.live }, signal);
  });
  const last = useRef<Told | null>(null); // shown while other minutes are asked for
  last.current = asked.value ?? last.current;
  const told = last.current;
  // Where less was recorded than fits, the charts begin with it.
  const first = told && told.first < Infinity ? told.first : Math.max(watched(target)?.process.started ?? 0, Date.now() / 1000 - 600);
  const span: Span = { ...window, from: Math.max(window.from, Math.min(first, window.until - 10)) };
  const any = told && (told.steps.rows.length || told.logs.names.length || told.variables.size);
  const ever = told !== null && told.first < Infinity;
  return (
    <>
      <h1>Training</h1>
      <Trouble error={asked.error} />
      {told && told.logs.badSince !== null && (
        <p class="trouble" role="alert">
          <b>The loss is no number from step {told.logs.badSince} on.</b>{" "}
          <a href={link({ target, screen: "tensors", params: { statistics: "1" } })}>Tensors shows which parameter has NaN first.</a>
        </p>
      )}
      {told && !ever && !file && <Nothing target={target} done={asked.again} />}
      <TimeSlider window={window} first={first} />
      {ever && !any && <p class="banner">Nothing was recorded in these minutes.</p>}
      {told && (
        <div class="cells">
          {told.steps.rows.length > 0 && <StepTime told={told.steps} span={span} />}
          {told.steps.phases && <Phases told={told.steps} span={span} />}
          <Logged told={told.logs} span={span} />
          <Variables told={told.variables} span={span} />
          <Rates told={told.steps} logged={told.logs} span={span} />
          <Collective told={told.collectives} span={span} />
          {!file && <Memory target={target} span={span} />}
        </div>
      )}
      {told && told.slow.length > 0 && (
        <section>
          <h2>Longest steps</h2>
          <Table label="Longest steps" columns={slowColumns} rows={told.slow} />
        </section>
      )}
      {!file && <Sampled target={target} />}
      {ever && !told?.variables.size && !file && <Watch target={target} done={asked.again} />}
      {ever && !told?.steps.phases && !file && <TurnOn target={target} setting="probing.torch.profiling" value="on" label="Record the phases of PyTorch's steps" done={asked.again} />}
    </>
  );
}
