// The frame: rail, header with the target, keys.  Screens other than the first are loaded when they are opened.
import { h, render, type Child, type Component } from "./preact.js";
import { useEffect, useState } from "./hooks.js";
import { has, net, takeToken } from "./net.js";
import { editor } from "./editor.js";
import { fragment, go, link, parse, set, type Place } from "./place.js";
import { usePlace, useWatch } from "./polled.js";
import { isShut, isStuck, likeliest, state, tell, watch, watched } from "./watch.js";
import { count, duration, plain } from "./format.js";
import { Overview } from "./overview.js";
import { processName } from "./names.js";
import { isJob, jobOf, jobTarget, sizeOf } from "./job_list.js";
import { verdictOf } from "./hang.js";
import { Empty, Trouble } from "./parts.js";
import { applyTheme, theme } from "./theme.js";
import { Keys, listenKeys } from "./keys.js";

export interface ScreenProps {
  target: string;
  place: Place;
}

interface Screen {
  id: string;
  name: string;
  icon: string;
  key: string;
  whole?: boolean; // it is about all processes
  load: () => Promise<Component<ScreenProps>>;
}

export const screens: Screen[] = [
  { id: "overview", name: "Overview", icon: "◉", key: "o", whole: true, load: async () => Overview },
  { id: "stacks", name: "Stacks", icon: "≡", key: "s", load: async () => (await import("./stacks.js")).StacksScreen },
  { id: "profile", name: "Profile", icon: "▤", key: "p", load: async () => (await import("./profile.js")).ProfileScreen },
  { id: "training", name: "Training", icon: "∿", key: "t", load: async () => (await import("./training.js")).TrainingScreen },
  { id: "memory", name: "Memory", icon: "▥", key: "m", load: async () => (await import("./memory.js")).MemoryScreen },
  { id: "tensors", name: "Tensors", icon: "▦", key: "n", load: async () => (await import("./tensors.js")).TensorsScreen },
  { id: "crashes", name: "Crashes", icon: "✕", key: "c", whole: true, load: async () => (await import("./crashes.js")).CrashesScreen },
  { id: "sql", name: "SQL", icon: "⌕", key: "q", load: async () => (await import("./sql.js")).SqlScreen },
  { id: "tasks", name: "Tasks", icon: "⋔", key: "k", load: async () => (await import("./tasks.js")).TasksScreen },
  { id: "console", name: "Console", icon: "›", key: "e", load: async () => (await import("./console.js")).ConsoleScreen },
  { id: "settings", name: "Settings", icon: "⚙", key: ",", whole: true, load: async () => (await import("./settings.js")).SettingsScreen },
];

/** The screens that are the same for a job as for a process. */
const alsoOfJobs = (screen: string): boolean => screen === "crashes" || screen === "settings" || (screen === "sql" && has("/jobs/{}/query"));

const loadJob = async (): Promise<Component<ScreenProps>> => (await import("./job.js")).JobScreen;

// ---- the rail and the header ----

function Rail({ place }: { place: Place }) {
  return (
    <nav class="rail" aria-label="Screens">
      {screens.map((one) => (
        <a href={link({ target: place.target, screen: one.id })} aria-current={one.id === place.screen ? "page" : undefined} title={`g ${one.key}`}>
          <span class="icon" aria-hidden="true">
            {one.icon}
          </span>
          {one.name}
        </a>
      ))}
    </nav>
  );
}

function Chip({ target }: { target: string }) {
  const job = jobOf(state.jobs, target);
  if (job) return <span class={verdictOf(job).hang?.hung ? "chip bad" : "chip"}>{verdictOf(job).hang?.hung ? "hangs" : count(sizeOf(job), "rank")}</span>;
  if (target.startsWith("file:")) return <span class="chip">file</span>;
  const one = watched(target);
  if (!one) return <span class="chip bad">ended</span>;
  if (one.trouble) return <span class="chip">cannot be looked at</span>;
  if (isStuck(one)) return <span class="chip bad">unchanged for {duration(one.since)}</span>;
  return <span class="chip good">{one.main.length ? "moving" : "looking"}</span>;
}

function Picker({ target, place }: { target: string; place: Place }) {
  const job = jobOf(state.jobs, target);
  const known = watched(target) || job || !target;
  if (!state.processes.length && !state.jobs.length && known) return null;
  return (
    <select
      aria-label="Process"
      value={watched(target)?.process.id ?? (job ? jobTarget(job) : target)}
      onChange={(event: { currentTarget: HTMLSelectElement }) => go({ ...place, params: {}, target: event.currentTarget.value })}
    >
      {!target && <option value="">all processes</option>}
      {!known && <option value={target}>{plain(target, 60)}</option>}
      {state.jobs.map((one) => (
        <option value={jobTarget(one)}>
          {plain(jobTarget(one), 60)} · {count(sizeOf(one), "rank")}
        </option>
      ))}
      {state.processes.map((one) => (
        <option value={one.process.id}>{plain(processName(one.process), 70)}</option>
      ))}
    </select>
  );
}

function Coverage({ target }: { target: string }) {
  const stacks = watched(target)?.stacks;
  if (!stacks) return null;
  const unstable = stacks.threads.filter((one) => one.unstable).length;
  const ago = Math.max(0, Date.now() / 1000 - stacks.time);
  return (
    <span class="quiet coverage">
      {count(stacks.threads.length, "thread")}, {unstable} unstable, {duration(ago)} ago
    </span>
  );
}

/** In an editor's panel: a debug session of what is looked at. */
function DebugButton({ target }: { target: string }) {
  const one = watched(target);
  const file = target.startsWith("file:");
  if (!editor || !(file || one)) return null;
  const rank = one?.process.rank ?? null;
  return (
    <button type="button" class="main" onClick={() => editor?.debug(target)}>
      Debug {file ? "this file" : rank === null ? "this process" : `rank ${rank}`}
    </button>
  );
}

function Header({ target, place }: { target: string; place: Place }) {
  const each = net.looks ? net.millis / net.looks : 0;
  return (
    <header>
      <a class="skip" href={fragment() || "#/overview"} onClick={(event: Event) => (event.preventDefault(), document.querySelector("main")?.focus())}>
        Skip to the screen
      </a>
      <a class="brand" href="#/overview">
        probing
      </a>
      {state.loaded && <Picker target={target} place={place} />}
      {target && <Chip target={target} />}
      {target && <Coverage target={target} />}
      <span class="gap" />
      <span class="quiet" title="nothing in a process is stopped for a look">
        an answer takes {each.toFixed(1)} ms
      </span>
      <DebugButton target={target} />
      <button type="button" aria-pressed={state.frozen} onClick={() => freeze()} title="Space">
        {state.frozen ? "Frozen" : "Freeze"}
      </button>
    </header>
  );
}

export function freeze(): void {
  state.frozen = !state.frozen;
  tell();
}

// ---- what to say when there is nothing to show ----

function NoToken() {
  return (
    <Empty>
      <h1>This page needs its token</h1>
      <p>The address that the server printed carries it after the #. This prints it again:</p>
      <pre>probing serve --url</pre>
      {state.refused && <Trouble error={state.refused} />}
    </Empty>
  );
}

function NoProcess() {
  return (
    <Empty>
      <h1>No Python process is running</h1>
      <p>What you start shows up here by itself. A dump or a core is looked at when the server is given it:</p>
      <pre>probing serve FILE</pre>
    </Empty>
  );
}

function Body({ place, target }: { place: Place; target: string }): Child {
  const screen = screens.find((one) => one.id === place.screen);
  const [loaded, setLoaded] = useState<{ id: string; screen: Component<ScreenProps> } | null>(null);
  const [failed, setFailed] = useState(false);
  const ofJob = isJob(target) && !alsoOfJobs(place.screen);
  const id = (ofJob ? "job " : "") + (screen?.id ?? "");
  useEffect(() => {
    setFailed(false);
    (ofJob ? loadJob : screen?.load)?.().then(
      (component) => setLoaded({ id, screen: component }),
      () => setFailed(true),
    );
  }, [id]);
  if (!screen) return <Empty>There is no screen “{plain(place.screen, 40)}”.</Empty>;
  if (failed) return <Empty>The server is another one by now, or gone. Load the page again.</Empty>;
  if (!state.loaded) return <Empty>asking the server …</Empty>;
  if (!target && !screen.whole) return <NoProcess />;
  if (loaded?.id !== id) return null;
  const Loaded = loaded.screen as Component<{ target: string; place: Place; key: string }>;
  return <Loaded key={id + target} target={target} place={place} />;
}

function Page() {
  useWatch();
  const place = usePlace();
  const screen = screens.find((one) => one.id === place.screen);
  const target = place.target || (screen?.whole ? "" : likeliest());
  const name = screen?.name ?? "";
  useEffect(() => {
    // Nobody chose: it stays with the one that it opened with, and a link shows the same.
    if (target && !place.target) set({}, target);
  }, [target, place.target]);
  useEffect(() => {
    const one = watched(target);
    document.title = `${name}${one ? " · " + plain(processName(one.process), 60) : ""} · probing`;
  });
  const shut = isShut();
  return (
    <div class={"page" + (net.lostAt ? " lost" : "")}>
      <Header target={shut ? "" : target} place={place} />
      <Rail place={place} />
      <main tabIndex={-1} class={place.screen}>
        {net.lostAt > 0 && (
          <p class="banner" role="alert">
            The server has not answered since {new Date(net.lostAt).toLocaleTimeString()}. This page asks again by itself; what it shows is old.
          </p>
        )}
        {!shut && net.facts?.warning && (
          <p class="banner" role="note">
            {plain(net.facts.warning, 300)}
          </p>
        )}
        {shut ? <NoToken /> : <Body place={place} target={target} />}
      </main>
      <Keys screens={screens} place={place} />
    </div>
  );
}

takeToken();
if (theme()) applyTheme(theme());
addEventListener("hashchange", () => {
  if (!location.hash.startsWith("#token=")) return;
  takeToken();
  state.refused = null;
  net.facts = null;
});
net.changed = tell;
listenKeys({ freeze, open: (screen) => go({ target: parse(fragment()).target, screen }), screens });

render(<Page />, document.getElementById("page")!);
void watch();
