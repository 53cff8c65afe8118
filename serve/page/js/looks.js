export function metAgain(stacks, time) {
    const later = Math.max(0, time - stacks.time);
    return { ...stacks, time, threads: stacks.threads.map((one) => ({ ...one, since: one.since === null ? null : one.since + later })) };
}
export const framesOf = (stacks, thread) => (stacks.stacks[thread.stack] ?? []).map((at) => stacks.frames[at]).filter((one) => one !== undefined);
export const mainThread = (stacks, pid) => stacks.threads.find((one) => one.id === pid) ?? stacks.threads[0];
export const frameName = (frame) => frame.name ?? (frame.kind === "broken" ? "(the stack breaks off here)" : "?");
export const ownFrame = (frames) => frames.find((frame) => frame.kind === "python" && frame.library === false) ?? frames[0];
export function framePlace(frame) {
    if (frame.kind === "native")
        return frame.module ?? frame.file ?? "";
    return (frame.file ?? "") + (frame.line ? ":" + frame.line : "");
}
export function stackKey(stacks, thread) {
    return framesOf(stacks, thread)
        .map((one) => `${one.kind} ${one.name} ${one.file} ${one.line}`)
        .join("\n");
}
export function sameStack(stacks, at) {
    return (stacks.stacks[at] ?? []).join(" ");
}
export class Since {
    seen = new Map();
    note(target, stacks) {
        for (const thread of stacks.threads) {
            const name = `${target} ${thread.id}`;
            const key = stackKey(stacks, thread);
            if (this.seen.get(name)?.key !== key)
                this.seen.set(name, { key, at: stacks.time });
        }
    }
    of(target, stacks, thread) {
        const seen = this.seen.get(`${target} ${thread.id}`);
        const here = seen ? Math.max(0, stacks.time - seen.at) : 0;
        return Math.max(here, thread.since ?? 0);
    }
}
export const since = new Since();
export function groups(stacks, pid) {
    const byStack = new Map();
    for (const thread of stacks.threads) {
        const group = byStack.get(thread.stack) ?? { stack: thread.stack, threads: [], first: false };
        group.threads.push(thread);
        group.first ||= thread.id === pid || thread.gil === "holding";
        byStack.set(thread.stack, group);
    }
    return [...byStack.values()].sort((a, b) => Number(b.first) - Number(a.first) || a.threads.length - b.threads.length);
}
export function threadState(thread) {
    if (thread.gil === "holding")
        return "holds the GIL";
    if (thread.gil === "waiting")
        return "waits for the GIL";
    const states = { R: "running", S: "waiting", D: "waiting for a device", T: "stopped", t: "stopped by a debugger", Z: "ended" };
    return thread.active && thread.state !== "R" ? "running" : (states[thread.state ?? ""] ?? thread.state ?? "");
}
