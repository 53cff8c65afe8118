import { askJson, has } from "./net.js";
import { ranges } from "./names.js";
import { usePolled } from "./polled.js";
function crash(same) {
    const newest = same[0];
    return {
        file: newest.file,
        time: newest.time ?? newest.written,
        title: newest.title ?? "a dump that cannot be read",
        where: newest.where ?? "",
        pid: newest.pid ?? null,
        rank: newest.rank ?? null,
        ranks: ranges(same.map((one) => one.rank).filter((rank) => typeof rank === "number")),
        count: same.length,
        bytes: newest.bytes,
    };
}
export function together(dumps) {
    const alike = new Map();
    for (const one of [...dumps].sort((a, b) => (b.time ?? b.written) - (a.time ?? a.written))) {
        const key = one.group || one.file;
        alike.set(key, [...(alike.get(key) ?? []), one]);
    }
    return [...alike.values()].map(crash);
}
export function useCrashes() {
    return usePolled(has("/crashes") ? "crashes" : "", 10, async (signal) => together((await askJson("api/v1/crashes", { signal })).crashes));
}
export function lately(crashes) {
    const now = Date.now() / 1000;
    return crashes.filter((one) => now - one.time < 3600).slice(0, 3);
}
