// Console: Python in the target, for who has the grant; else how to get it.
import { h, Fragment } from "./preact.js";
import { useEffect, useRef, useState } from "./hooks.js";
import { askJson, at, has, net } from "./net.js";
import { duration, plain } from "./format.js";
import { watched } from "./watch.js";
import { Allow, Empty } from "./parts.js";
import { DebugFromHere } from "./debug.js";
import { editor } from "./editor.js";
import type { ScreenProps } from "./main.js";

interface Entry {
  code: string;
  text: string;
  bad: boolean;
}

interface Told {
  value: string | null;
  output: string;
  raised: string | null;
  seconds?: number;
}

const shown = (text: string): string => text.split("\n").map((line) => plain(line, 4000)).join("\n");

function HowTo({ pid }: { pid: string }) {
  if (editor)
    return (
      <Empty>
        <h1>Console</h1>
        <p>Code in the process is run only when you allow it; this panel may look.</p>
        <Allow />
      </Empty>
    );
  return (
    <Empty>
      <h1>Console</h1>
      <p>Code in the process is run only when who started the server allows it; this address may look. Start the server so:</p>
      <pre>probing serve --allow eval</pre>
      <p>Or run code from a terminal of your own, which needs no grant:</p>
      <pre>probing {pid} eval 'len(threading.enumerate())'</pre>
      <h2>Debug it in VS Code</h2>
      <p>This waits for a debugger; “Attach to a Python process” of the Probing extension, or this in launch.json, connects:</p>
      <pre>probing {pid} debug --listen 127.0.0.1:5678</pre>
      <pre>{'{"type": "probing", "request": "attach", "name": "job", "connect": {"host": "127.0.0.1", "port": 5678}}'}</pre>
    </Empty>
  );
}

/** The last name before the cursor, which a completion replaces. */
const lastName = (text: string): string => /[\w.]*$/.exec(text)?.[0] ?? "";

export function ConsoleScreen({ target }: ScreenProps) {
  const [entries, setEntries] = useState<Entry[]>([]);
  const [code, setCode] = useState("");
  const [names, setNames] = useState<string[]>([]);
  const [busy, setBusy] = useState<AbortController | null>(null);
  const [past, setPast] = useState(-1);
  const end = useRef<HTMLDivElement | null>(null);
  const pid = String(watched(target)?.process.pid ?? target.split(".")[0]);
  useEffect(() => end.current?.scrollIntoView({ block: "nearest" }), [entries.length]);
  if (!net.facts?.grants.includes("eval") || !has("/p/{}/eval")) return <HowTo pid={pid} />;
  const run = async (): Promise<void> => {
    if (!code.trim() || busy) return;
    const abort = new AbortController();
    setBusy(abort);
    setNames([]);
    let entry: Entry;
    try {
      const told = await askJson<Told>(at(target, "eval"), { method: "POST", body: { code, namespace: "page" }, signal: abort.signal });
      entry = { code, text: told.output + (told.raised ?? told.value ?? ""), bad: told.raised !== null };
      if (told.seconds && told.seconds > 1) entry.text += `\n(${duration(told.seconds)})`;
    } catch (error) {
      entry = { code, text: abort.signal.aborted ? "interrupted" : (error as Error).message, bad: true };
    }
    setEntries((all) => [...all, entry].slice(-200));
    setCode("");
    setPast(-1);
    setBusy(null);
  };
  const complete = async (): Promise<void> => {
    const told = await askJson<{ completions: string[] }>(at(target, "complete"), { method: "POST", body: { text: code } });
    if (told.completions.length === 1) setCode(code.slice(0, code.length - lastName(code).length) + told.completions[0]!);
    setNames(told.completions.length === 1 ? [] : told.completions.slice(0, 60));
  };
  const recall = (step: number): void => {
    const at = Math.max(-1, Math.min(entries.length - 1, past + step));
    setPast(at);
    setCode(at < 0 ? "" : entries[entries.length - 1 - at]!.code);
  };
  const press = (event: KeyboardEvent): void => {
    const one = !code.includes("\n");
    const act =
      event.key === "Enter" && !event.shiftKey && (one ? !/[:\\]\s*$/.test(code) : event.ctrlKey || code.endsWith("\n"))
        ? run
        : event.key === "Tab" && !event.shiftKey && lastName(code)
          ? complete
          : event.key === "ArrowUp" && one
            ? () => recall(1)
            : event.key === "ArrowDown" && one
              ? () => recall(-1)
              : null;
    if (!act) return;
    event.preventDefault();
    void act();
  };
  return (
    <>
      <h1>Console</h1>
      <p class="quiet">Python in process {pid}. Each evaluation runs on a thread of its own, waits for the GIL as any thread, and is written to the server's log.</p>
      {entries.length > 0 && (
        <div class="output" role="log" aria-label="Output" tabIndex={0}>
          {entries.map((one) => (
            <div>
              <div class="in">
                {">>> "}
                {shown(one.code)}
              </div>
              <div class={one.bad ? "bad" : undefined}>{shown(one.text)}</div>
            </div>
          ))}
          <div ref={end} />
        </div>
      )}
      {names.length > 0 && <p class="fplace">{names.map((one) => plain(one, 60)).join("   ")}</p>}
      <textarea
        class="code"
        rows={3}
        aria-label="Python; Enter runs, Shift-Enter is a new line, Tab completes, arrows recall"
        placeholder=">>> Enter runs, Shift-Enter is a new line, Tab completes"
        spellcheck={false}
        value={code}
        onKeyDown={press}
        onInput={(event: { currentTarget: HTMLTextAreaElement }) => setCode(event.currentTarget.value)}
      />
      <div class="tools">
        <button type="button" class="main" onClick={() => (busy ? busy.abort() : void run())}>
          {busy ? "Interrupt" : "Run"}
        </button>
      </div>
      {!editor && <DebugFromHere target={target} />}
    </>
  );
}
