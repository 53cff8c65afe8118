// Let a debugger connect to the target: where, with which token, and what an editor needs to know.
import { h } from "./preact.js";
import { useState } from "./hooks.js";
import { askJson, at, has } from "./net.js";
import { plain } from "./format.js";
import { Trouble } from "./parts.js";

interface Listening {
  address: string;
  token: string | null;
  launch: Record<string, unknown>; // an entry for launch.json
}

export function DebugFromHere({ target }: { target: string }) {
  const [told, setTold] = useState<Listening | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [busy, setBusy] = useState(false);
  if (!has("/p/{}/debug")) return null;
  const act = async (method: string): Promise<void> => {
    setBusy(true);
    setError(null);
    try {
      const answer = await askJson<Listening>(at(target, "debug"), method === "POST" ? { method, body: {} } : { method });
      setTold(method === "POST" ? answer : null);
    } catch (error) {
      setError(error as Error);
    }
    setBusy(false);
  };
  return (
    <section aria-label="Debugger">
      <h2>Debugger</h2>
      <p class="quiet">VS Code, or any other client of the Debug Adapter Protocol on the server's machine, connects to the process; it goes on until a breakpoint is met.</p>
      <div class="tools">
        <button type="button" disabled={busy} onClick={() => void act(told ? "DELETE" : "POST")}>
          {told ? "End it" : "Let a debugger connect"}
        </button>
        {told && <span role="status">It waits at {plain(told.address, 80)}.</span>}
      </div>
      <Trouble error={error} />
      {told && <pre class="how">{JSON.stringify(told.launch, null, 2)}</pre>}
    </section>
  );
}
