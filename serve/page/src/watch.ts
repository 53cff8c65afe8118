// What the whole page looks at: the processes, and where the main thread of each stands.  One account for all screens.
import { askJson, at, has, net, query, Refused, type ServerFacts } from "./net.js";
import { hidden } from "./editor.js";
import type { RankedJob } from "./job_list.js";
import { framesOf, mainThread, since, type Frame, type Process, type Stacks } from "./looks.js";

export interface Watched {
  process: Process;
  share: number | null; // of one CPU, since the look before
  grew: number; // bytes of memory, since this page watches
  watched: number; // s
  stacks: Stacks | null;
  main: Frame[];
  since: number;
  mainShare: number | null; // of one CPU, of the main thread, while it seems to stand; null: not known yet
  trouble: string; // why it cannot be looked at
  moves: number; // s since the epoch: when a closer look, by the skill hang, found that it does; 0: none did
}

export interface Memory {
  times: number[];
  rss: number[];
  cpu: number[];
  threads: number[];
}

export const STUCK = 10; // s
const KEPT = 3600;
const JOBS_AGAIN = 5000; // ms

export const state = {
  processes: [] as Watched[],
  jobs: [] as RankedJob[], // of several ranks
  ended: [] as { process: Process; at: number }[],
  loaded: false,
  refused: null as Refused | null,
  frozen: false,
  listeners: new Set<() => void>(),
};

export const memory = new Map<string, Memory>();

export function tell(): void {
  for (const one of state.listeners) one();
}

let toBeTold = 0;

/** With the next picture: of several looks that come together each is shown, and the page drawn once. */
function tellSoon(): void {
  toBeTold ||= requestAnimationFrame(() => {
    toBeTold = 0;
    tell();
  });
}

export function watched(id: string): Watched | undefined {
  return state.processes.find((one) => one.process.id === id || String(one.process.pid) === id);
}

/** Whether all that a worker does is to wait for its next piece of work. */
function waitsForWork(main: Frame[]): boolean {
  const loop = main.findIndex((frame) => frame.name === "_worker_loop" || (frame.name === "worker" && /multiprocessing\/pool\.py$/.test(frame.file ?? "")));
  return loop >= 0 && main.slice(0, loop).every((frame) => /(^|\/)(multiprocessing\/\w+|selectors|threading)\.py$/.test(frame.file ?? ""));
}

/** Why a main thread may well stand where it stands, by what its innermost frames are; "": no such reason. */
export function reason(one: Watched): string {
  if (waitsForWork(one.main)) return "waits for work";
  const inner = one.main.slice(0, 5).map((frame) => frame.file ?? "");
  if (inner.slice(0, 2).some((file) => file.endsWith("selectors.py"))) return "waits for events";
  if (inner.some((file) => /(^|\/)(subprocess|multiprocessing\/popen_\w+)\.py$|distributed\/elastic\//.test(file))) return "waits for its children";
  return "";
}

/**
 * A loop that mostly sleeps is met in the same place at each look, and yet goes on: the CPU time of its main thread tells.
 * From 1 % of a CPU to half of one it works; above, it may well spin in one place.
 */
const works = (one: Watched): boolean => one.mainShare === null || (one.mainShare > 0.01 && one.mainShare < 0.5);

export const stands = (one: Watched): boolean => one.main.length > 0 && one.since >= STUCK && !works(one);
export const isStuck = (one: Watched): boolean => stands(one) && !reason(one) && one.moves < Date.now() / 1000 - one.since + STUCK / 2;

/** The target that a screen shows when nobody chose: the one that stands longest, else the first. */
export function likeliest(): string {
  const stuck = [...state.processes].sort((a, b) => Number(isStuck(b)) - Number(isStuck(a)) || b.since - a.since)[0];
  return stuck?.process.id ?? "";
}

function remember(process: Process): Memory {
  const kept = memory.get(process.id) ?? { times: [], rss: [], cpu: [], threads: [] };
  memory.set(process.id, kept);
  kept.times.push(Date.now() / 1000);
  kept.rss.push(process.rss);
  kept.cpu.push(process.cpu);
  kept.threads.push(process.threads);
  if (kept.times.length > KEPT) for (const column of [kept.times, kept.rss, kept.cpu, kept.threads]) column.shift();
  return kept;
}

function share(kept: Memory): number | null {
  const last = kept.times.length - 1;
  const before = Math.max(0, last - 3);
  const seconds = (kept.times[last] ?? 0) - (kept.times[before] ?? 0);
  return seconds > 0.2 ? Math.max(0, ((kept.cpu[last] ?? 0) - (kept.cpu[before] ?? 0)) / seconds) : null;
}

function renew(list: Process[]): void {
  const old = new Map(state.processes.map((one) => [one.process.id, one]));
  state.processes = list.map((process) => {
    const kept = remember(process);
    const before = old.get(process.id);
    old.delete(process.id);
    return {
      process,
      share: share(kept),
      grew: process.rss - (kept.rss[0] ?? process.rss),
      watched: (kept.times.at(-1) ?? 0) - (kept.times[0] ?? 0),
      stacks: before?.stacks ?? null,
      main: before?.main ?? [],
      since: before?.since ?? 0,
      mainShare: before?.mainShare ?? null,
      trouble: before?.trouble ?? "",
      moves: before?.moves ?? 0,
    };
  });
  for (const gone of old.values()) state.ended.push({ process: gone.process, at: Date.now() / 1000 });
  state.ended.splice(0, state.ended.length - 20);
}

/** What a look at stacks says of a process, whoever took it. */
export function note(target: string, stacks: Stacks): void {
  const one = watched(target);
  since.note(one?.process.id ?? target, stacks);
  if (!one) return;
  const thread = mainThread(stacks, one.process.pid);
  one.stacks = stacks;
  one.trouble = "";
  one.main = thread ? framesOf(stacks, thread) : [];
  one.since = thread ? since.of(one.process.id, stacks, thread) : 0;
}

async function look(one: Watched): Promise<void> {
  try {
    note(one.process.id, await askJson<Stacks>(at(one.process.id, "stacks")));
    tellSoon();
    void weigh(one).catch(() => {}); // the next look shows it
  } catch (error) {
    if (!(error instanceof Refused)) return;
    one.main = [];
    one.since = 0;
    one.trouble = error.message;
  }
}

const cpuSeen = new Map<string, { at: number; cpu: number }>();

/** How much CPU the main thread of one that seems to stand uses, between two looks some seconds apart. */
async function weigh(one: Watched): Promise<void> {
  const id = one.process.id;
  const before = cpuSeen.get(id);
  if (one.since < STUCK - 4) {
    cpuSeen.delete(id);
    one.mainShare = null;
    return;
  }
  if (before && performance.now() - before.at < 3000) return;
  const sql = `SELECT cpu_user + cpu_system FROM system.threads WHERE os_thread_id = ${one.process.pid}`;
  const cpu = (await query(id, sql)).rows[0]?.[0];
  const at = performance.now();
  if (typeof cpu !== "number") return;
  cpuSeen.set(id, { at, cpu });
  if (before) one.mainShare = (cpu - before.cpu) / ((at - before.at) / 1000);
}

/** What a process that cannot be looked at is left out of: one that said no is not asked each second. */
const silent = new Map<string, number>();

async function lookAtAll(): Promise<void> {
  const waiting = state.processes.filter((one) => !one.process.id.endsWith(".0") && (silent.get(one.process.id) ?? 0) < performance.now());
  const worker = async (): Promise<void> => {
    for (let one = waiting.shift(); one; one = waiting.shift()) {
      await look(one);
      if (one.trouble) silent.set(one.process.id, performance.now() + 30000);
    }
  };
  await Promise.all([worker(), worker(), worker()]);
}

export async function learnServer(): Promise<void> {
  try {
    net.facts = await askJson<ServerFacts>("api/v1");
    state.refused = null;
  } catch (error) {
    if (error instanceof Refused) state.refused = error;
  }
  tell();
}

let jobsAt = -Infinity; // ms

/** Jobs come and go less often than processes do. */
async function learnJobs(): Promise<void> {
  if (!has("/jobs") || performance.now() - jobsAt < JOBS_AGAIN) return;
  jobsAt = performance.now();
  try {
    state.jobs = (await askJson<{ jobs: RankedJob[] }>("api/v1/jobs")).jobs;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
  }
}

async function round(): Promise<void> {
  const [answer] = await Promise.all([askJson<{ processes: Process[] }>("api/v1/processes"), net.facts ? null : learnServer()]);
  if (!net.facts) return;
  renew(answer.processes.filter((one) => one.pid !== net.facts?.pid));
  if (!state.loaded) tell(); // the list is there before the first looks are
  state.loaded = true;
  await lookAtAll();
  await learnJobs();
}

/** The server wants a token that this page does not have: asking again would tell its log the same each second. */
export const isShut = (): boolean => state.refused?.status === 401 || net.forgotten;

/** Once a second while the page is seen and not frozen; a server that is gone is asked again after 0.5 to 10 s. */
export async function watch(): Promise<void> {
  for (let pause = 500; ; ) {
    let wait = 1000;
    if (!isShut() && !hidden() && !state.frozen) {
      try {
        await round();
        pause = 500;
      } catch (error) {
        if (error instanceof Refused && error.status === 401) state.refused = error;
        wait = pause;
        pause = Math.min(10000, pause * 2);
      }
      tell();
    }
    await new Promise((done) => setTimeout(done, state.processes.length > 16 ? wait * 3 : wait));
  }
}
