// One tensor: what the server tells of it, its histogram, and a picture of it.
import { h } from "./preact.js";
import { useEffect, useState } from "./hooks.js";
import { ask, askJson, at, has } from "./net.js";
import { number, plain } from "./format.js";
import { usePolled } from "./polled.js";
import { Chart } from "./chart.js";
import { Trouble } from "./parts.js";

interface Told {
  [name: string]: unknown;
  histogram?: { counts: number[]; edges?: number[]; least?: number; most?: number };
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

function Histogram({ told }: { told: NonNullable<Told["histogram"]> }) {
  const bins = told.counts.length;
  const least = told.edges?.[0] ?? told.least ?? 0;
  const width = ((told.edges?.at(-1) ?? told.most ?? 1) - least) / bins;
  const names = told.counts.map((_, i) => number(least + width * (i + 0.5)));
  return <Chart label="Histogram" bars names={names} x={names.map((_, i) => i)} lines={[{ label: "values", values: told.counts }]} height={160} />;
}

export function OneTensor({ target, address, name, close }: { target: string; address: number; name: string; close: () => void }) {
  const asked = usePolled(`${target} ${address}`, 0, (signal) => askJson<Told>(at(target, `tensor/${address}`), { signal }));
  const simple = Object.entries(asked.value ?? {}).filter(([, value]) => value !== null && typeof value !== "object");
  return (
    <section class="empty" aria-label={"Tensor " + name}>
      <h2>{plain(name, 80)}</h2>
      <Trouble error={asked.error} />
      <dl class="locals">
        {simple.map(([key, value]) => (
          <div>
            <dt>{plain(key, 40)}</dt>
            <dd>{typeof value === "number" ? number(value) : plain(String(value), 200)}</dd>
          </div>
        ))}
      </dl>
      {asked.value?.histogram && <Histogram told={asked.value.histogram} />}
      {has("/p/{}/tensor/{}/image") && <Picture target={target} address={address} />}
      <p>
        <button type="button" onClick={close}>
          Close
        </button>
      </p>
    </section>
  );
}
