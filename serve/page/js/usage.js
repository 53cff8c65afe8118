import { askJson, at, has, query, records } from "./net.js";
import { usePolled } from "./polled.js";
import { memory, watched } from "./watch.js";
const KEPT = "SELECT timestamp, memory_mb FROM memory_usage WHERE timestamp IS NOT NULL AND memory_mb IS NOT NULL ORDER BY timestamp";
async function before(target, signal) {
    const usage = { times: [], rss: [], cpu: [], threads: [] };
    const put = (time, rss, cpu, threads) => {
        usage.times.push(time);
        usage.rss.push(rss);
        usage.cpu.push(cpu);
        usage.threads.push(threads);
    };
    const kept = await query(target, KEPT, signal).then(records, () => []);
    const seen = has("/p/{}/history") ? await askJson(at(target, "history", { after: "-600" }), { signal }).then((told) => told.moments, () => []) : [];
    const first = seen[0]?.time ?? Infinity;
    for (const row of kept)
        if (Number(row["timestamp"]) < first)
            put(Number(row["timestamp"]), Number(row["memory_mb"]) * 1048576, null, null);
    for (const one of seen)
        put(one.time, one.rss || null, one.cpu, one.threads || null);
    return usage;
}
export function useUsage(target) {
    const old = usePolled(target && target + " usage", 0, (signal) => before(target, signal)).value;
    const here = memory.get(watched(target)?.process.id ?? target);
    const times = here?.times ?? [];
    const last = old?.times.at(-1) ?? -Infinity;
    const from = times.findIndex((time) => time > last);
    const since = from < 0 ? times.length : from;
    const cpu = times.map((time, i) => (i ? Math.max(0, ((here.cpu[i] ?? 0) - (here.cpu[i - 1] ?? 0)) / Math.max(0.1, time - times[i - 1])) : null));
    return {
        times: [...(old?.times ?? []), ...times.slice(since)],
        rss: [...(old?.rss ?? []), ...(here?.rss.slice(since) ?? [])],
        cpu: [...(old?.cpu ?? []), ...cpu.slice(since)],
        threads: [...(old?.threads ?? []), ...(here?.threads.slice(since) ?? [])],
    };
}
