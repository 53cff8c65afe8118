import { askJson, has } from "./net.js";
import { usePolled } from "./polled.js";
import { duration, plain } from "./format.js";
import { link } from "./place.js";
const text = (value) => (typeof value === "string" ? value : value === null || value === undefined ? "" : String(value));
const numeric = (value) => (typeof value === "number" ? value : null);
function crash(raw) {
    return {
        file: text(raw["file"] ?? raw["id"] ?? raw["name"]).replace(/^file:/, ""),
        time: numeric(raw["time"] ?? raw["written"]),
        title: text(raw["title"] ?? raw["what"]),
        where: text(raw["where"]),
        pid: numeric(raw["pid"]),
        rank: numeric(raw["rank"]),
        ranks: text(raw["ranks"]),
        count: numeric(raw["count"]) ?? 1,
        bytes: numeric(raw["bytes"] ?? raw["size"]) ?? 0,
    };
}
export function useCrashes() {
    return usePolled(has("/crashes") ? "crashes" : "", 10, async (signal) => {
        const told = await askJson("api/v1/crashes", { signal });
        const all = (Array.isArray(told) ? told : told.crashes).map(crash);
        return all.sort((a, b) => (b.time ?? 0) - (a.time ?? 0));
    });
}
export function crashFindings(crashes) {
    const now = Date.now() / 1000;
    return crashes
        .filter((one) => one.time !== null && now - one.time < 3600)
        .slice(0, 3)
        .map((one) => ({
        severity: "high",
        finding: `crashed ${duration(now - one.time)} ago: ${plain(one.title, 120)}`,
        where: plain(one.where, 120),
        link: link({ target: "file:" + one.file, screen: "stacks" }),
    }));
}
