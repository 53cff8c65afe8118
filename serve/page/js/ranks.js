import { h, Fragment } from "./preact.js";
import { useState } from "./hooks.js";
import { count, duration, plain } from "./format.js";
import { link, set } from "./place.js";
import { frameName, framePlace, framesOf, mainThread, ownFrame, since } from "./looks.js";
import { ranges } from "./names.js";
import { state, STUCK, watched } from "./watch.js";
import { merge, places, standing } from "./rank_tree.js";
import { Empty, FrameLine, Switch } from "./parts.js";
export const MAIN = "";
export function ranksOf(target) {
    const job = watched(target)?.process.job ?? null;
    if (job === null)
        return [];
    return state.processes.filter((one) => one.process.job === job).sort((a, b) => a.process.rank - b.process.rank);
}
function walkers(ranks, name) {
    return ranks.flatMap((one) => {
        const stacks = one.stacks;
        if (!stacks)
            return [];
        const thread = name === MAIN ? mainThread(stacks, one.process.pid) : stacks.threads.find((thread) => thread.name === name);
        if (!thread)
            return [];
        return [{ rank: one.process.rank, frames: framesOf(stacks, thread).reverse(), since: since.of(one.process.id, stacks, thread) }];
    });
}
function threadNames(ranks) {
    const names = ranks.flatMap((one) => (one.stacks?.threads ?? []).filter((thread) => thread.id !== one.process.pid && thread.name).map((thread) => thread.name));
    return [...new Set(names)].sort().slice(0, 60);
}
const who = (all) => `${all.length === 1 ? "rank" : "ranks"} ${ranges(all.map((one) => one.rank))}`;
const still = (since) => (since === null ? "" : since < 1 ? "moving" : `unchanged for ${duration(since)}`);
function Summary({ all, total }) {
    if (all.length === 1)
        return h("p", { class: "banner" },
            "All ",
            total,
            " ranks are at the same place.");
    const stands = all.some((one) => one.since === null || one.since >= STUCK / 2);
    return (h("ul", { class: "findings", "aria-label": "Where the ranks are" },
        all.slice(0, 8).map((one) => {
            const inner = one.frames[0];
            const mine = ownFrame(one.frames);
            return (h("li", { class: one.odd && stands ? "high" : "info" },
                h("span", { class: "severity" }, one.odd ? "apart" : count(one.walkers.length, "rank")),
                h("div", null,
                    h("b", null, who(one.walkers)),
                    " ",
                    inner && h(Fragment, null,
                        "in ",
                        plain(frameName(inner), 60)),
                    " ",
                    h("span", { class: "since" }, still(one.since)),
                    mine && (h("div", { class: "fplace" },
                        mine !== inner && `${plain(frameName(mine), 60)} `,
                        plain(framePlace(mine), 160))))));
        }),
        all.length > 8 && h("li", { class: "info" },
            "and ",
            all.length - 8,
            " more places")));
}
const FOLDED = 5;
function Frames({ branch }) {
    const [all, setAll] = useState(false);
    const hidden = all || branch.frames.length <= FOLDED + 1 ? 0 : branch.frames.length - FOLDED;
    return (h("ol", { class: "frames" },
        hidden > 0 && (h("li", null,
            h("button", { type: "button", class: "bare quiet", onClick: () => setAll(true) },
                count(hidden, "frame"),
                " outside"))),
        branch.frames.slice(hidden).map((frame, i) => {
            const lines = branch.lines[hidden + i];
            return (h("li", null,
                h(FrameLine, { frame: lines.length > 1 ? { ...frame, line: null } : frame }),
                lines.length > 1 && h("span", { class: "fplace" },
                    " lines ",
                    lines.slice(0, 6).join(", "))));
        })));
}
function Tree({ all, total, most }) {
    return (h("ul", { class: "ranktree" }, all.map((one) => {
        const odd = one.walkers.length < most;
        const since = standing(one.walkers);
        return (h("li", { key: one.walkers.map((walker) => walker.rank).join() + frameName(one.frames[0]), class: odd ? "odd" : undefined },
            h("div", { class: "who" },
                h("b", null, one.walkers.length === total ? `all ${total} ranks` : who(one.walkers)),
                " ",
                one.walkers.length < total && h("span", { class: "quiet" },
                    one.walkers.length,
                    " of ",
                    total),
                " ",
                !one.below.length && h("span", { class: since !== null && since >= STUCK ? "since bad" : "since" }, still(since))),
            h(Frames, { branch: one }),
            one.below.length > 0 && h(Tree, { all: one.below, total: total, most: Math.max(...one.below.map((below) => below.walkers.length)) })));
    })));
}
export function RankTree({ walkers, expected, missing, why, names, place }) {
    const lines = place.params["lines"] === "1";
    const tree = merge(walkers, lines);
    const total = new Set(walkers.map((one) => one.rank)).size;
    return (h(Fragment, null,
        h("div", { class: "tools" },
            h("label", { class: "switch" },
                "Thread",
                " ",
                h("select", { value: place.params["thread"] ?? MAIN, onChange: (event) => set({ thread: event.currentTarget.value }) },
                    h("option", { value: MAIN }, "the main one"),
                    names.map((name) => (h("option", { value: name }, plain(name, 50)))))),
            h(Switch, { label: "apart by line", on: lines, set: (on) => set({ lines: on ? "1" : "" }), hint: "ranks in one function but at different lines part, too" }),
            h("span", { class: "quiet" },
                total,
                " of ",
                count(expected, "rank"),
                " answered")),
        missing.length > 0 && (h("p", { class: "trouble", role: "alert" },
            "No stack of ",
            missing.length === 1 ? "rank" : "ranks",
            " ",
            ranges(missing),
            ": ",
            plain(why, 160))),
        walkers.length > 0 ? h(Summary, { all: places(walkers, lines), total: total }) : h(Empty, null, "No rank has such a thread."),
        h(Tree, { all: tree, total: walkers.length, most: Math.max(0, ...tree.map((one) => one.walkers.length)) })));
}
export function RankStacks({ ranks, place }) {
    const all = walkers(ranks, place.params["thread"] ?? MAIN);
    const missing = ranks.filter((one) => !all.some((walker) => walker.rank === one.process.rank));
    const why = missing[0]?.trouble || "it was not looked at yet";
    return (h(Fragment, null,
        h(RankTree, { walkers: all, expected: ranks.length, missing: missing.map((one) => one.process.rank), why: why, names: threadNames(ranks), place: place }),
        h("p", { class: "quiet" },
            "Stacks of one rank:",
            " ",
            ranks.map((one) => (h(Fragment, null,
                h("a", { href: link({ target: one.process.id, screen: "stacks" }) }, one.process.rank),
                " "))))));
}
