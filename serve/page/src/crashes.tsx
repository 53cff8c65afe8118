// Crashes: the dumps of the crash folder; one opens as a target with the same screens.
import { h, Fragment } from "./preact.js";
import { has, query, records } from "./net.js";
import { bytes, plain } from "./format.js";
import { link } from "./place.js";
import { usePolled } from "./polled.js";
import { useCrashes, type Crash } from "./crash_list.js";
import { Empty, Loading, Table, Trouble, type Column } from "./parts.js";
import type { ScreenProps } from "./main.js";

const columns: Column<Crash>[] = [
  { name: "When", cell: (one) => (one.time === null ? "" : <span title={new Date(one.time * 1000).toISOString()}>{new Date(one.time * 1000).toLocaleString()}</span>) },
  { name: "What", cell: (one) => <a href={link({ target: "file:" + one.file, screen: "crashes" })}>{plain(one.title || one.file, 120)}</a> },
  { name: "Where", cell: (one) => <span class="fplace">{plain(one.where, 120)}</span> },
  { name: "Process", right: true, cell: (one) => one.pid ?? "" },
  { name: "Ranks", cell: (one) => plain(one.ranks || (one.rank === null ? "" : String(one.rank)), 40) },
  { name: "Equal ones", right: true, cell: (one) => (one.count > 1 ? one.count : "") },
  { name: "Size", right: true, cell: (one) => (one.bytes ? bytes(one.bytes) : "") },
];

// ---- one dump ----

function One({ target }: { target: string }) {
  const crash = usePolled(target, 0, async (signal) => records(await query(target, "SELECT * FROM system.crash", signal))[0] ?? null);
  const chain = usePolled(target, 0, async (signal) =>
    records(await query(target, "SELECT type, message, func, file, lineno, link, thread_name FROM python.exception ORDER BY os_thread_id, depth", signal)),
  );
  const told = crash.value;
  return (
    <>
      <h1>{told ? plain(String(told["title"] ?? "A dump"), 160) : "A dump"}</h1>
      <p class="quiet">{plain(target.replace(/^file:/, ""), 160)}</p>
      <Trouble error={crash.error ?? chain.error} />
      {!told && !crash.error && <Loading />}
      {told && (
        <dl class="locals">
          {Object.entries(told)
            .filter(([name, value]) => value !== null && name !== "title")
            .map(([name, value]) => (
              <div>
                <dt>{name}</dt>
                <dd>{name === "time" ? new Date(Number(value) * 1000).toLocaleString() : name === "address" ? "0x" + Number(value).toString(16) : plain(String(value), 400)}</dd>
              </div>
            ))}
        </dl>
      )}
      {chain.value && chain.value.length > 0 && (
        <>
          <h2>Exceptions</h2>
          <ul class="plainlist">
            {chain.value.map((one) => (
              <li>
                {one["link"] ? <span class="quiet">{plain(String(one["link"]), 40)}: </span> : null}
                <b>{plain(String(one["type"]), 80)}</b>: {plain(String(one["message"] ?? ""), 400)}{" "}
                <span class="fplace">
                  {plain(String(one["func"] ?? ""), 80)} {plain(String(one["file"] ?? ""), 120)}:{one["lineno"]}
                </span>
              </li>
            ))}
          </ul>
        </>
      )}
      <p>
        <a href={link({ target, screen: "stacks", params: { locals: "1" } })}>Stacks and variables</a> · <a href={link({ target, screen: "tensors" })}>Tensors</a> ·{" "}
        <a href={link({ target, screen: "sql" })}>SQL</a> · <a href={link({ screen: "crashes" })}>all crashes</a>
      </p>
    </>
  );
}

export function CrashesScreen({ place }: ScreenProps) {
  const crashes = useCrashes();
  if (place.target.startsWith("file:")) return <One target={place.target} />;
  return (
    <>
      <h1>Crashes</h1>
      <Trouble error={crashes.error} />
      {crashes.value && crashes.value.length > 0 && <Table label="Crash dumps" columns={columns} rows={crashes.value} />}
      {!has("/crashes") && <Empty>This server does not list crash dumps; `probing crash list` does.</Empty>}
      {crashes.value?.length === 0 && (
        <Empty>
          <p>No crash dump is there. A process leaves one when it crashes, if it was started so:</p>
          <pre>PROBING_CRASH=1 python train.py</pre>
          <p>or, for one that runs already:</p>
          <pre>probing PID inject -c</pre>
        </Empty>
      )}
    </>
  );
}
