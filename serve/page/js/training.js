import { h, Fragment } from "./preact.js";
import { useState } from "./hooks.js";
import { query, records } from "./net.js";
import { count, duration, percent, plain } from "./format.js";
import { usePolled } from "./polled.js";
import { Chart } from "./chart.js";
import { Empty, Switch, Trouble } from "./parts.js";
const numeric = (value) => (typeof value === "number" && Number.isFinite(value) ? value : null);
const LOGGED = ["loss", "lr", "grad_norm", "acc", "accuracy"];
function firstBad(rows) {
    const at = rows.findLastIndex((one) => typeof one["loss"] === "number");
    return at >= 0 && at < rows.length - 1 ? rows[at + 1] : undefined;
}
function Logs({ rows }) {
    const x = rows.map((one, i) => numeric(one["step"]) ?? i);
    const shown = LOGGED.filter((name) => rows.some((one) => numeric(one[name]) !== null));
    const broken = shown.includes("loss") ? firstBad(rows) : undefined;
    return (h(Fragment, null,
        broken && (h("p", { class: "trouble", role: "alert" },
            h("b", null,
                "The loss is no number from step ",
                broken["step"] ?? broken["local_step"],
                " on."),
            " Tensors shows which parameter has NaN first.")),
        h("div", { class: "cells" }, shown.map((name) => (h("section", null,
            h("h2", null, name),
            h(Chart, { label: name, x: x, lines: [{ label: name, values: rows.map((one) => numeric(one[name])) }] })))))));
}
const PHASES = ["data", "forward", "backward", "optimizer", "comm_wait", "other"];
function median(values) {
    const sorted = [...values].sort((a, b) => a - b);
    return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
function Steps({ rows }) {
    const bySteps = new Map();
    for (const one of rows) {
        const step = numeric(one["step"]);
        const seconds = numeric(one["seconds"]);
        if (step !== null && seconds !== null)
            bySteps.set(step, [...(bySteps.get(step) ?? []), seconds]);
    }
    const x = [...bySteps.keys()].sort((a, b) => a - b);
    const all = x.map((step) => bySteps.get(step));
    const several = all.some((one) => one.length > 1);
    const typical = median(all.flat());
    const slow = x.map((step, i) => ({ step, seconds: Math.max(...all[i]) })).filter((one) => one.seconds > 3 * typical);
    const line = (label, of) => ({ label, values: all.map(of), value: duration });
    return (h("section", null,
        h("h2", null, "Time of a step"),
        h("p", { class: "quiet" },
            count(x.length, "step"),
            ", typically ",
            duration(typical),
            slow.length > 0 && `; slow: ${slow.slice(-5).map((one) => `step ${one.step} (${duration(one.seconds)})`).join(", ")}`),
        h(Chart, { key: String(several), label: "Time of a step", x: x, lines: several ? [line("median", median), line("shortest rank", (one) => Math.min(...one)), line("longest rank", (one) => Math.max(...one))] : [line("seconds", median)] })));
}
function Phases({ shares, title }) {
    const total = shares.reduce((sum, one) => sum + one.share, 0) || 1;
    return (h("section", null,
        h("h2", null, title),
        h("div", { class: "bar", role: "img", "aria-label": shares.map((one) => `${one.name} ${percent(one.share / total)}`).join(", ") }, shares.map((one, i) => (h("span", { class: `ground${(i % 6) + 1}`, style: { width: `${(one.share / total) * 100}%` } })))),
        h("ul", { class: "plainlist" }, shares.map((one) => (h("li", null,
            plain(one.name, 60),
            ": ",
            percent(one.share / total),
            " ",
            h("span", { class: "quiet" }, plain(one.more ?? "", 80))))))));
}
function Sampled({ target }) {
    const [on, setOn] = useState(false);
    const sql = "SELECT phase, coalesce(module, activity, '') AS part, sum(share) AS share, sum(samples) AS samples FROM python.torch_phases GROUP BY 1, 2 ORDER BY share DESC LIMIT 14";
    const asked = usePolled(on ? target + " phases" : "", 3, async (signal) => records(await query(target, sql, signal)));
    const rows = asked.value?.filter((one) => numeric(one["share"])) ?? [];
    return (h("section", null,
        h(Switch, { label: "sample where the time of a step goes", on: on, set: setOn, hint: "samples the stacks for a second, again and again; nothing is loaded into the process" }),
        h(Trouble, { error: asked.error }),
        on && asked.value && !rows.length && h(Empty, null, "No PyTorch training step was seen in that second."),
        rows.length > 0 && (h(Phases, { title: "Where the last second went", shares: rows.map((one) => ({ name: String(one["phase"]), share: Number(one["share"]), more: `${one["part"] ?? ""}` })) }))));
}
function recorded(rows) {
    const sums = PHASES.map((name) => ({ name, share: rows.reduce((sum, one) => sum + (numeric(one[name]) ?? 0), 0) }));
    return sums.filter((one) => one.share > 0).map((one) => ({ ...one, more: duration(one.share / rows.length) + " a step" }));
}
const HOW = `import probing
probing.step()            # each step, in your loop
probing.log(loss=loss)`;
function HowTo({ pid }) {
    return (h(Empty, null,
        h("p", null, "This job logs nothing yet. Three lines of Python fill this screen:"),
        h("pre", null, HOW),
        h("p", null, "Without a change of the program, for PyTorch: steps, their phases, and the loss of whoever calls backward."),
        h("pre", null,
            "probing ",
            pid,
            " config probing.torch.profiling=on,exprs=loss@")));
}
export function TrainingScreen({ target }) {
    const logs = usePolled(target + " logs", 2, async (signal) => records(await query(target, "SELECT * FROM (SELECT * FROM python.training_logs ORDER BY timestamp DESC LIMIT 2000) ORDER BY timestamp", signal)));
    const timing = usePolled(target + " timing", 2, async (signal) => records(await query(target, `SELECT local_step AS step, rank, step_duration_sec AS seconds, ${PHASES.join(", ")} FROM (SELECT * FROM python.torch_step_timing ORDER BY timestamp DESC LIMIT 2000) ORDER BY timestamp`, signal)));
    const counted = usePolled(target + " counted", 2, async (signal) => records(await query(target, "SELECT step, previous_duration AS seconds FROM (SELECT * FROM python.steps ORDER BY timestamp DESC LIMIT 2000) WHERE previous_duration IS NOT NULL ORDER BY timestamp", signal)));
    const steps = timing.value?.length ? timing.value : (counted.value ?? []);
    const empty = logs.value?.length === 0 && timing.value?.length === 0 && counted.value?.length === 0;
    return (h(Fragment, null,
        h("h1", null, "Training"),
        h(Trouble, { error: logs.error ?? timing.error }),
        empty && h(HowTo, { pid: target.split(".")[0] }),
        logs.value && logs.value.length > 0 && h(Logs, { rows: logs.value }),
        steps.length > 1 && h(Steps, { rows: steps }),
        timing.value && timing.value.length > 0 && h(Phases, { title: "Phases of a step, recorded", shares: recorded(timing.value) }),
        !target.startsWith("file:") && h(Sampled, { target: target })));
}
