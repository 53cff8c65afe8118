const key = (frame, lines) => `${frame.kind} ${frame.name} ${frame.file}${lines ? ` ${frame.line}` : ""}`;
function linesAt(walkers, depth) {
    const found = walkers.map((one) => one.frames[depth]?.line).filter((line) => typeof line === "number");
    return [...new Set(found)].sort((a, b) => a - b);
}
export function merge(walkers, lines, depth = 0) {
    const byFrame = new Map();
    for (const one of walkers) {
        const frame = one.frames[depth];
        if (frame)
            byFrame.set(key(frame, lines), [...(byFrame.get(key(frame, lines)) ?? []), one]);
    }
    const made = [...byFrame.values()].map((here) => {
        const first = here[0].frames;
        let end = depth + 1;
        while (first[end] && here.every((one) => one.frames[end] && key(one.frames[end], lines) === key(first[end], lines)))
            end++;
        const frames = first.slice(depth, end);
        return { frames, lines: frames.map((_, i) => linesAt(here, depth + i)), walkers: here, below: merge(here, lines, end) };
    });
    return made.sort((a, b) => a.walkers.length - b.walkers.length || a.walkers[0].rank - b.walkers[0].rank);
}
export function places(walkers, lines) {
    const byStack = new Map();
    for (const one of walkers) {
        const stack = one.frames.map((frame) => key(frame, lines)).join("\n");
        byStack.set(stack, [...(byStack.get(stack) ?? []), one]);
    }
    const all = [...byStack.values()].sort((a, b) => a.length - b.length);
    const most = all.at(-1)?.length ?? 0;
    return all.map((here) => ({ walkers: here, frames: [...here[0].frames].reverse(), odd: here.length < most, since: Math.min(...here.map((one) => one.since)) }));
}
