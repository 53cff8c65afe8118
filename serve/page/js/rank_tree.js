const key = (frame, lines) => `${frame.kind} ${frame.name} ${frame.file}${lines ? ` ${frame.line}` : ""}`;
export function standing(walkers) {
    const known = walkers.map((one) => one.since).filter((since) => since !== null);
    return known.length ? Math.min(...known) : null;
}
function grouped(walkers, of) {
    const groups = new Map();
    for (const one of walkers) {
        const key = of(one);
        if (key === null)
            continue;
        const group = groups.get(key);
        if (group)
            group.push(one);
        else
            groups.set(key, [one]);
    }
    return [...groups.values()];
}
function linesAt(walkers, depth) {
    const found = walkers.map((one) => one.frames[depth]?.line).filter((line) => typeof line === "number");
    return [...new Set(found)].sort((a, b) => a - b);
}
export function merge(walkers, lines, depth = 0) {
    const byFrame = grouped(walkers, (one) => (one.frames[depth] ? key(one.frames[depth], lines) : null));
    const made = byFrame.map((here) => {
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
    const all = grouped(walkers, (one) => one.frames.map((frame) => key(frame, lines)).join("\n")).sort((a, b) => a.length - b.length);
    const most = all.at(-1)?.length ?? 0;
    return all.map((here) => ({ walkers: here, frames: [...here[0].frames].reverse(), odd: here.length < most, since: standing(here) }));
}
