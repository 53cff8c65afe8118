// One tensor: what the server tells of it, its histogram, and a picture of it.
import { h } from "./preact.js";
import { useEffect, useState } from "./hooks.js";
import { ask, askJson, at, has } from "./net.js";
import { number, plain } from "./format.js";
import { usePolled } from "./polled.js";
import { Chart } from "./chart.js";
import { Trouble } from "./parts.js";

interface Statistics {
  low: number | null;
  high: number | null;
  histogram: number[] | null;
  [name: string]: unknown;
}

interface Told {
  statistics?: Statistics;
  [name: string]: unknown;
}

/** An <img> sends no token: the picture is fetched, and shown from memory. */
function Picture({ target, address }: { target: string; address: number }) {
  const [source, setSource] = useState("");
  const [error, setError] = useState<Error | null>(null);
  useEffect(() => {
    ask(at(target, `tensor/${address}/image`), { accept: "*/*" }).then(
      async (answer) => {
        const reader = new FileReader();
        reader.onload = () => setSource(String(reader.result));
        reader.readAsDataURL(await answer.blob());
      },
      (failed: Error) => setError(failed),
    );
  }, [target, address]);
  if (error) return <Trouble error={error} />;
  return source ? h("img", { src: source, alt: "the values of a slice, as colours", width: 384 }) : null;
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
  const asked = usePolled(`${target} ${address}`, 0, (signal) => askJson<Told>(at(target, `tensor/${address}`, { statistics: "1", bins: "40" }), { signal }));
  const told = [...simple(asked.value ?? {}), ...simple(asked.value?.statistics ?? {})];
  return (
    <section class="empty" aria-label={"Tensor " + name}>
      <h2>{plain(name, 80)}</h2>
      <Trouble error={asked.error} />
      <dl class="locals">
        {told.map(([key, value]) => (
          <div>
            <dt>{plain(key, 40)}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {asked.value?.statistics?.histogram?.length ? <Histogram told={asked.value.statistics} /> : null}
      {has("/p/{}/tensor/{}/image") && <Picture target={target} address={address} />}
      <p>
        <button type="button" onClick={close}>
          Close
        </button>
      </p>
    </section>
  );
}
