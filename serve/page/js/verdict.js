import { h, Fragment } from "./preact.js";
import { count, duration, plain } from "./format.js";
import { ranges } from "./names.js";
import { link } from "./place.js";
import { inState, jobTarget, ranksIn, shownRanks, sizeOf, STATES } from "./job_list.js";
import { verdictOf } from "./hang.js";
export function CoverageBar({ told }) {
    const parts = STATES.map((state) => ({ state, ranks: inState(told, state) })).filter((one) => one.ranks.length);
    const answered = parts.find((one) => one.state === "answered")?.ranks.length ?? 0;
    const others = parts.filter((one) => one.state !== "answered");
    const reasons = [...new Set(told.failed.map((one) => one.reason).filter(Boolean))].slice(0, 3);
    return (h("div", { class: "covered" },
        h("div", { class: "bar", role: "img", "aria-label": parts.map((one) => `${one.ranks.length} ${one.state}`).join(", ") || "no rank" }, parts.map((one) => (h("span", { class: "is" + one.state, style: { width: `${(100 * one.ranks.length) / Math.max(1, told.expected)}%` } })))),
        h("p", { class: others.length ? "bad" : "quiet" },
            answered,
            " of ",
            count(told.expected, "rank"),
            " answered",
            others.map((one) => `; ${one.state}: ${ranges(one.ranks)}`).join(""),
            reasons.length > 0 && ` (${plain(reasons.join("; "), 300)})`,
            told.late && `; late: ${shownRanks(told.late)}`,
            told.truncated && `; cut short: ${shownRanks(told.truncated)}`)));
}
function shows(job, part) {
    const ranks = ranksIn(part.ranks);
    const here = ranks.length === 1 ? job.ranks.find((one) => one.rank === ranks[0])?.target : null;
    return link(here ? { target: here, screen: "stacks", params: { locals: "1" } } : { target: jobTarget(job, part.ranks), screen: "stacks" });
}
const FRAMES = 6;
function One({ job, part, what, level }) {
    const ranks = ranksIn(part.ranks);
    const chain = part.frames.slice(0, FRAMES).map((one) => `${plain(one.name, 60)} (${plain(one.file, 80)}:${one.line})`);
    return (h("li", { class: level },
        h("span", { class: "severity" }, what),
        h("div", null,
            h("a", { href: shows(job, part) },
                ranks.length === 1 ? "rank" : "ranks",
                " ",
                ranges(ranks),
                " ",
                what === "waiting" && "in ",
                plain(part.text, 300)),
            " ",
            ranks.length === 1 && part.pid > 0 && h("span", { class: "quiet" }, plain(`${part.host ? part.host + ", " : ""}process ${part.pid}`, 100)),
            level === "high" && chain.length > 0 && (h("div", { class: "fplace" },
                chain.join(" ← "),
                part.frames.length > FRAMES && " ← …",
                part.inside && `, in ${plain(part.inside, 60)}`)))));
}
function Parts({ job, hang }) {
    return (h("ul", { class: "findings" },
        hang.hung && hang.cause.slice(0, 8).map((part) => h(One, { job: job, part: part, what: "cause", level: "high" })),
        hang.slow.slice(0, 8).map((part) => (h(One, { job: job, part: part, what: "slow", level: "medium" }))),
        hang.waiting.slice(0, 8).map((part) => (h(One, { job: job, part: part, what: "waiting", level: "info" })))));
}
export function JobCard({ job }) {
    const { hang, at, trouble } = verdictOf(job);
    const age = at ? Date.now() / 1000 - at : 0;
    const long = hang?.since === null || hang === null ? "" : `${hang.since_at_least ? "for at least " : "for "}${duration(hang.since + age)}`;
    const level = hang?.hung ? "high" : hang?.slow.length ? "medium" : "";
    return (h("section", { class: "job " + level, "aria-label": "Job " + plain(job.id, 60) },
        h("h2", null,
            h("a", { href: link({ target: jobTarget(job), screen: "overview" }) }, plain(jobTarget(job), 80)),
            " ",
            h("span", { class: "quiet" }, hang ? (hang.hung ? `hangs ${long}` : `goes on: ${plain(hang.summary, 200)}`) : trouble ? plain(trouble, 200) : `${count(sizeOf(job), "rank")}: two views are taken …`)),
        hang && (hang.hung || hang.slow.length > 0) && h(Parts, { job: job, hang: hang }),
        hang && h(CoverageBar, { told: hang.coverage })));
}
const isWell = (hang) => !hang || (!hang.hung && !hang.slow.length && inState(hang.coverage, "answered").length === hang.coverage.expected);
export function JobCards({ jobs }) {
    return (h(Fragment, null, jobs.filter((one) => !isWell(verdictOf(one).hang)).slice(0, 6).map((one) => (h(JobCard, { key: one.id, job: one })))));
}
