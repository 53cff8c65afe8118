// Training: the time of steps and what it goes into, the loss and what else is logged or watched, what goes through in a second,
// collectives, memory; of the last minutes or of any that were recorded.
import { h, Fragment } from "./preact.js";
import { useRef, useState } from "./hooks.js";
import { query, records } from "./net.js";
import { number } from "./format.js";
import { usePolled, useWatch } from "./polled.js";
import { collectives, earliest, logs, numeric, slowest, steps, variables, type Collectives, type Logs, type Row, type Steps } from "./training_data.js";
import { Collective, Logged, Memory, Phases, Rates, Shares, slowColumns, StepTime, Variables } from "./training_charts.js";
import { TimeSlider, useTimeWindow, type Span } from "./time_window.js";
import { TurnOn } from "./turn_on.js";
import { watched } from "./watch.js";
import { link } from "./place.js";
import { Empty, Switch, Table, Trouble } from "./parts.js";
import type { ScreenProps } from "./main.js";

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

// ---- what is not recorded yet ----

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

// ---- the screen ----

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
  const any = told && (told.steps.rows.length || told.logs.names.length || told.variables.size || told.collectives.rows.length);
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
