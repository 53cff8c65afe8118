// Settings and cost: of the page, of the server, of the probe in the target; what looking costs.
import { h, Fragment } from "./preact.js";
import { useState } from "./hooks.js";
import { ask, at, forgetToken, has, net, query, records } from "./net.js";
import { bytes, duration, number, plain } from "./format.js";
import { usePolled, useWatch } from "./polled.js";
import { state, watched } from "./watch.js";
import { Allow, Table, Trouble } from "./parts.js";
import { editor } from "./editor.js";
import { applyTheme, theme } from "./theme.js";
import type { ScreenProps } from "./main.js";

function Cost() {
  const seconds = performance.now() / 1000;
  const rows: [string, string][] = [
    ["answers asked for", `${number(net.looks)}, ${(net.looks / seconds).toFixed(1)} a second`],
    ["time of an answer", net.looks ? `${(net.millis / net.looks).toFixed(1)} ms on average` : ""],
    ["received", bytes(net.bytes)],
    ["threads stopped", "none, but with native frames: each for some 0.1 ms"],
  ];
  return (
    <Table
      label="What this page costs"
      rows={rows}
      columns={[
        { name: "Cost", cell: ([name]) => name },
        { name: "of this page, since it was opened", cell: ([, value]) => value },
      ]}
    />
  );
}

function Server() {
  const facts = net.facts;
  if (!facts) return null;
  const rows: [string, string][] = [
    ["version", facts.version],
    ["process", String(facts.pid)],
    ["this address may", facts.grants.join(", ")],
    ...Object.entries(facts.limits).map(([name, value]): [string, string] => [
      "at most: " + name.replaceAll("_", " "),
      name.endsWith("bytes") ? bytes(value) : name.endsWith("seconds") ? duration(value) : number(value),
    ]),
  ];
  return (
    <Table
      label="Server"
      rows={rows}
      columns={[
        { name: "Server", cell: ([name]) => plain(name, 60) },
        { name: "Value", cell: ([, value]) => plain(value, 100) },
      ]}
    />
  );
}

type Row = Record<string, string | number | null>;

function Setting({ target, one, done }: { target: string; one: Row; done: () => void }) {
  const [value, setValue] = useState(String(one["value"] ?? ""));
  const [error, setError] = useState<Error | null>(null);
  const may = (net.facts?.grants.includes("control") ?? false) && has("/p/{}/config/{}");
  if (!may) return <code>{plain(String(one["value"] ?? ""), 120)}</code>;
  const put = (event: Event): void => {
    event.preventDefault();
    const path = at(target, "config/" + encodeURIComponent(String(one["name"])));
    ask(path, { method: "PUT", body: { value } }).then(() => (setError(null), done()), setError);
  };
  return (
    <form onSubmit={put}>
      <input type="text" aria-label={String(one["name"])} value={value} onInput={(event: { currentTarget: HTMLInputElement }) => setValue(event.currentTarget.value)} />{" "}
      <button disabled={value === String(one["value"] ?? "")}>Set</button>
      <Trouble error={error} />
    </form>
  );
}

function Probe({ target }: { target: string }) {
  const settings = usePolled(target, 0, async (signal) => records(await query(target, "SELECT name, value, unit, doc FROM information_schema.settings ORDER BY name", signal)));
  return (
    <>
      <h2>Settings of process {plain(target.split(".")[0]!, 40)}</h2>
      {!editor && !net.facts?.grants.includes("control") && (
        <p class="quiet">
          This address may look, not change. <code>probing serve --allow control</code> grants it.
        </p>
      )}
      <Trouble error={settings.error} />
      {settings.value && (
        <Table<Row>
          label="Settings of the probe"
          rows={settings.value}
          columns={[
            { name: "Setting", cell: (one) => <code>{plain(String(one["name"]), 80)}</code> },
            { name: "Value", cell: (one) => <Setting key={String(one["name"]) + String(one["value"])} target={target} one={one} done={settings.again} /> },
            { name: "Unit", cell: (one) => plain(String(one["unit"] ?? ""), 30) },
            { name: "What it does", cell: (one) => plain(String(one["doc"] ?? ""), 300) },
          ]}
        />
      )}
    </>
  );
}

/** What an editor decides for its panel. */
function OfBrowser() {
  const [chosen, setChosen] = useState(theme);
  return (
    <div class="tools">
      <label class="switch">
        Colours{" "}
        <select value={chosen} onChange={(event: { currentTarget: HTMLSelectElement }) => (applyTheme(event.currentTarget.value), setChosen(event.currentTarget.value))}>
          <option value="">as the system</option>
          <option value="light">light</option>
          <option value="dark">dark</option>
        </select>
      </label>
      <button type="button" onClick={forgetToken}>
        Forget the token
      </button>
    </div>
  );
}

export function SettingsScreen({ target }: ScreenProps) {
  useWatch();
  return (
    <>
      <h1>Settings and cost</h1>
      <h2>This page</h2>
      {editor ? <Allow /> : <OfBrowser />}
      <Cost />
      <h2>The server</h2>
      <Server />
      {target && (watched(target) || !state.loaded) && <Probe key={target} target={target} />}
    </>
  );
}
