// What is not recorded: what would be seen, and how to have it, by a button where this address may change the process.
import { h } from "./preact.js";
import { useState } from "./hooks.js";
import { ask, at, has, net } from "./net.js";
import { plain } from "./format.js";
import { Trouble } from "./parts.js";

export const mayControl = (): boolean => (net.facts?.grants.includes("control") ?? false) && has("/p/{}/config/{}");

interface TurnOnProps {
  target: string;
  setting: string;
  value: string;
  label: string; // of the button
  done: () => void;
}

/** A setting of the probe, which is loaded for it where there is none. */
export function TurnOn({ target, setting, value, label, done }: TurnOnProps) {
  const [error, setError] = useState<Error | null>(null);
  const [busy, setBusy] = useState(false);
  const press = (): void => {
    setBusy(true);
    ask(at(target, "config/" + setting), { method: "PUT", body: { value } })
      .then(() => (setError(null), done()), setError)
      .finally(() => setBusy(false));
  };
  if (!mayControl())
    return (
      <p class="quiet">
        <code class="command">
          probing {target.split(".")[0]} config {setting}={plain(value, 200)}
        </code>{" "}
        or a button here, once this address may: <code class="command">probing serve --url --allow control</code>
      </p>
    );
  return (
    <p>
      <button type="button" class="main" disabled={busy || !value} onClick={press}>
        {busy ? "loading …" : label}
      </button>{" "}
      <span class="quiet">loads the probe into the process, where it is not there yet</span>
      <Trouble error={error} />
    </p>
  );
}
