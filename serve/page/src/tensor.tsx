// One tensor: what it is, its values as a heat map, their histogram.
import { h } from "./preact.js";
import { askJson, at, has } from "./net.js";
import { number, plain } from "./format.js";
import { usePolled } from "./polled.js";
import { Chart } from "./chart.js";
import { HeatMap } from "./heat.js";
import { Trouble } from "./parts.js";

interface Statistics {
  low: number | null;
  high: number | null;
  histogram: number[] | null;
  [name: string]: unknown;
}

interface Told {
  shape?: number[];
  unreadable?: string | null;
  statistics?: Statistics;
  [name: string]: unknown;
}

function Histogram({ told }: { told: Statistics }) {
  const counts = told.histogram ?? [];
  const least = told.low ?? 0;
  const width = ((told.high ?? 1) - least) / counts.length;
  const names = counts.map((_, i) => number(least + width * (i + 0.5)));
  return <Chart label="Histogram" bars names={names} x={names.map((_, i) => i)} lines={[{ label: "values", values: counts }]} height={160} />;
}

/** What is one word or a list of numbers. */
function simple(told: Record<string, unknown>): [string, string][] {
  return Object.entries(told).flatMap(([key, value]): [string, string][] => {
    if (typeof value === "number") return [[key, number(value)]];
    if (typeof value === "string" || typeof value === "boolean") return [[key, plain(String(value), 600)]];
    return Array.isArray(value) && key !== "histogram" ? [[key, `[${value.join(", ")}]`]] : [];
  });
}

export function OneTensor({ target, address, name, close }: { target: string; address: number; name: string; close: () => void }) {
  const asked = usePolled(`${target} ${address}`, 0, (signal) => askJson<Told>(at(target, `tensor/${address}`, { statistics: "1", bins: "40", count: "24" }), { signal }));
  const told = [...simple(asked.value ?? {}), ...simple(asked.value?.statistics ?? {})];
  return (
    <section class="tensor" aria-label={"Tensor " + name}>
      <h2>{plain(name, 80)}</h2>
      <Trouble error={asked.error} />
      {asked.value?.unreadable && <p class="banner">Its values cannot be read: {plain(asked.value.unreadable, 200)}.</p>}
      {asked.value?.shape && !asked.value.unreadable && has("/p/{}/tensor/{}/map") && <HeatMap key={address} target={target} address={address} shape={asked.value.shape} />}
      <dl class="locals">
        {told.map(([key, value]) => (
          <div>
            <dt>{plain(key, 40)}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {asked.value?.statistics?.histogram?.length ? <Histogram told={asked.value.statistics} /> : null}
      <p>
        <button type="button" onClick={close}>
          Close
        </button>
      </p>
    </section>
  );
}
