import { askJson, at, has, net, query, Refused } from "./net.js";
import { hidden } from "./editor.js";
import { framesOf, mainThread, since } from "./looks.js";
export const STUCK = 10;
const KEPT = 3600;
const JOBS_AGAIN = 5000;
export const state = {
    processes: [],
    jobs: [],
    ended: [],
    loaded: false,
    refused: null,
    frozen: false,
    listeners: new Set(),
};
export const memory = new Map();
export function tell() {
    for (const one of state.listeners)
        one();
}
let toBeTold = 0;
function tellSoon() {
    toBeTold ||= requestAnimationFrame(() => {
        toBeTold = 0;
        tell();
    });
}
export function watched(id) {
    return state.processes.find((one) => one.process.id === id || String(one.process.pid) === id);
}
function waitsForWork(main) {
    const loop = main.findIndex((frame) => frame.name === "_worker_loop" || (frame.name === "worker" && /multiprocessing\/pool\.py$/.test(frame.file ?? "")));
    return loop >= 0 && main.slice(0, loop).every((frame) => /(^|\/)(multiprocessing\/\w+|selectors|threading)\.py$/.test(frame.file ?? ""));
}
export function reason(one) {
    if (waitsForWork(one.main))
        return "waits for work";
    const inner = one.main.slice(0, 5).map((frame) => frame.file ?? "");
    if (inner.slice(0, 2).some((file) => file.endsWith("selectors.py")))
        return "waits for events";
    if (inner.some((file) => /(^|\/)(subprocess|multiprocessing\/popen_\w+)\.py$|distributed\/elastic\//.test(file)))
        return "waits for its children";
    return "";
}
const works = (one) => one.mainShare === null || (one.mainShare > 0.01 && one.mainShare < 0.5);
export const stands = (one) => one.main.length > 0 && one.since >= STUCK && !works(one);
export const isStuck = (one) => stands(one) && !reason(one) && one.moves < Date.now() / 1000 - one.since + STUCK / 2;
export function likeliest() {
    const stuck = [...state.processes].sort((a, b) => Number(isStuck(b)) - Number(isStuck(a)) || b.since - a.since)[0];
    return stuck?.process.id ?? "";
}
function remember(process) {
    const kept = memory.get(process.id) ?? { times: [], rss: [], cpu: [], threads: [] };
    memory.set(process.id, kept);
    kept.times.push(Date.now() / 1000);
    kept.rss.push(process.rss);
    kept.cpu.push(process.cpu);
    kept.threads.push(process.threads);
    if (kept.times.length > KEPT)
        for (const column of [kept.times, kept.rss, kept.cpu, kept.threads])
            column.shift();
    return kept;
}
function share(kept) {
    const last = kept.times.length - 1;
    const before = Math.max(0, last - 3);
    const seconds = (kept.times[last] ?? 0) - (kept.times[before] ?? 0);
    return seconds > 0.2 ? Math.max(0, ((kept.cpu[last] ?? 0) - (kept.cpu[before] ?? 0)) / seconds) : null;
}
function renew(list) {
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
    for (const gone of old.values())
        state.ended.push({ process: gone.process, at: Date.now() / 1000 });
    state.ended.splice(0, state.ended.length - 20);
}
export function note(target, stacks) {
    const one = watched(target);
    since.note(one?.process.id ?? target, stacks);
    if (!one)
        return;
    const thread = mainThread(stacks, one.process.pid);
    one.stacks = stacks;
    one.trouble = "";
    one.main = thread ? framesOf(stacks, thread) : [];
    one.since = thread ? since.of(one.process.id, stacks, thread) : 0;
}
async function look(one) {
    try {
        note(one.process.id, await askJson(at(one.process.id, "stacks")));
        tellSoon();
        void weigh(one).catch(() => { });
    }
    catch (error) {
        if (!(error instanceof Refused))
            return;
        one.main = [];
        one.since = 0;
        one.trouble = error.message;
    }
}
const cpuSeen = new Map();
async function weigh(one) {
    const id = one.process.id;
    const before = cpuSeen.get(id);
    if (one.since < STUCK - 4) {
        cpuSeen.delete(id);
        one.mainShare = null;
        return;
    }
    if (before && performance.now() - before.at < 3000)
        return;
    const sql = `SELECT cpu_user + cpu_system FROM system.threads WHERE os_thread_id = ${one.process.pid}`;
    const cpu = (await query(id, sql)).rows[0]?.[0];
    const at = performance.now();
    if (typeof cpu !== "number")
        return;
    cpuSeen.set(id, { at, cpu });
    if (before)
        one.mainShare = (cpu - before.cpu) / ((at - before.at) / 1000);
}
const silent = new Map();
async function lookAtAll() {
    const waiting = state.processes.filter((one) => !one.process.id.endsWith(".0") && (silent.get(one.process.id) ?? 0) < performance.now());
    const worker = async () => {
        for (let one = waiting.shift(); one; one = waiting.shift()) {
            await look(one);
            if (one.trouble)
                silent.set(one.process.id, performance.now() + 30000);
        }
    };
    await Promise.all([worker(), worker(), worker()]);
}
export async function learnServer() {
    try {
        net.facts = await askJson("api/v1");
        state.refused = null;
    }
    catch (error) {
        if (error instanceof Refused)
            state.refused = error;
    }
    tell();
}
let jobsAt = -Infinity;
async function learnJobs() {
    if (!has("/jobs") || performance.now() - jobsAt < JOBS_AGAIN)
        return;
    jobsAt = performance.now();
    try {
        state.jobs = (await askJson("api/v1/jobs")).jobs;
    }
    catch (error) {
        if (!(error instanceof Refused))
            throw error;
    }
}
async function round() {
    const [answer] = await Promise.all([askJson("api/v1/processes"), net.facts ? null : learnServer()]);
    if (!net.facts)
        return;
    renew(answer.processes.filter((one) => one.pid !== net.facts?.pid));
    if (!state.loaded)
        tell();
    state.loaded = true;
    await lookAtAll();
    await learnJobs();
}
export const isShut = () => state.refused?.status === 401 || net.forgotten;
export async function watch() {
    for (let pause = 500;;) {
        let wait = 1000;
        if (!isShut() && !hidden() && !state.frozen) {
            try {
                await round();
                pause = 500;
            }
            catch (error) {
                if (error instanceof Refused && error.status === 401)
                    state.refused = error;
                wait = pause;
                pause = Math.min(10000, pause * 2);
            }
            tell();
        }
        await new Promise((done) => setTimeout(done, state.processes.length > 16 ? wait * 3 : wait));
    }
}
