import { h } from "./preact.js";
import { askJson, at } from "./net.js";
import { count, duration, plain, plainPlace } from "./format.js";
import { link } from "./place.js";
import { usePolled, useWatch } from "./polled.js";
import { ranges } from "./names.js";
import { inState, jobTarget, ranksIn } from "./job_list.js";
import { severity } from "./diagnosis.js";
import { screenOf } from "./sayings.js";
import { CoverageBar } from "./verdict.js";
import { Trouble } from "./parts.js";
const EVERY = 120;
const SHOWN = 24;
const ask = (target, signal) => askJson(at(target, "skills/diagnose"), { method: "POST", body: {}, signal, watches: true });
function who(one) {
    const ranks = ranksIn(one.ranks);
    return ranks.length ? `${ranks.length === 1 ? "rank" : "ranks"} ${ranges(ranks)}: ` : "";
}
function shows(job, one) {
    const ranks = ranksIn(one.ranks);
    const here = ranks.length === 1 ? job.ranks.find((rank) => rank.rank === ranks[0])?.target : null;
    return link({ target: here ?? jobTarget(job, one.ranks), ...screenOf(one.skill) });
}
function One({ job, one }) {
    const ranks = ranksIn(one.ranks);
    return (h("li", { class: one.severity },
        h("span", { class: "severity" }, one.severity),
        h("div", null,
            h("a", { href: shows(job, one) },
                who(one),
                plain(one.finding, 300)),
            " ",
            h("span", { class: "quiet" },
                plain(one.skill, 40),
                one.alike && `; rank ${ranks[0]}, the others alike`),
            one.where && h("div", { class: "fplace" }, plainPlace(one.where)),
            one.next && h("div", { class: "quiet next" }, plain(one.next, 240)))));
}
function List({ job, all, label }) {
    return (h("ul", { class: "findings", "aria-label": label },
        all.slice(0, SHOWN).map((one) => (h(One, { job: job, one: one }))),
        all.length > SHOWN && h("li", { class: "info" },
            "and ",
            all.length - SHOWN,
            " more")));
}
const ago = (seconds) => (seconds < 1 ? "just now" : `${duration(seconds)} ago`);
const isWhole = (told) => inState(told, "answered").length === told.expected;
export function JobFindings({ job, target, shown }) {
    useWatch();
    const asked = usePolled(`${target} skills`, EVERY, (signal) => ask(target, signal));
    const told = asked.value;
    const all = (told?.findings ?? []).filter((one) => one.skill !== "hang").sort((a, b) => severity(a) - severity(b));
    const bad = all.filter((one) => one.severity !== "info");
    const good = all.filter((one) => one.severity === "info");
    return (h("section", { "aria-label": "What the skills find" },
        h("h2", null,
            "What the skills find",
            " ",
            h("button", { type: "button", disabled: !told && !asked.error, onClick: asked.again }, "Look again"),
            " ",
            h("span", { class: "quiet" }, told ? ago(Date.now() / 1000 - asked.at) : asked.error ? "" : "each rank is looked at, for some ten seconds …")),
        h(Trouble, { error: asked.error }),
        told && !(isWhole(told.coverage) && told.coverage.answered === shown?.answered) && h(CoverageBar, { told: told.coverage }),
        told && !bad.length && h("p", { class: "quiet" }, "Nothing bad was found beside whether it hangs."),
        bad.length > 0 && h(List, { job: job, all: bad, label: "Findings" }),
        good.length > 0 && (h("details", { class: "bare" },
            h("summary", null,
                count(good.length, "thing"),
                " worth knowing: ",
                h("span", { class: "quiet" }, plain(who(good[0]) + good[0].finding, 160))),
            h(List, { job: job, all: good, label: "Worth knowing" })))));
}
