import { h, Fragment } from "./preact.js";
import { useRef, useState } from "./hooks.js";
import { query, records } from "./net.js";
import { number } from "./format.js";
import { usePolled, useWatch } from "./polled.js";
import { collectives, earliest, logs, numeric, slowest, steps, variables } from "./training_data.js";
import { Collective, Logged, Memory, Phases, Rates, Shares, slowColumns, StepTime, Variables } from "./training_charts.js";
import { TimeSlider, useTimeWindow } from "./time_window.js";
import { TurnOn } from "./turn_on.js";
import { watched } from "./watch.js";
import { link } from "./place.js";
import { Empty, Switch, Table, Trouble } from "./parts.js";
function Sampled({ target }) {
    const [on, setOn] = useState(false);
    const sql = `SELECT phase, coalesce(module, activity, '') AS part, sum(share) AS share, max(items_per_second) AS items, max(steps_per_second) AS steps
FROM python.torch_phases GROUP BY 1, 2 ORDER BY share DESC LIMIT 14`;
    const asked = usePolled(on ? target + " phases" : "", 3, async (signal) => records(await query(target, sql, signal)));
    const rows = asked.value?.filter((row) => numeric(row["share"])) ?? [];
    const items = numeric(rows[0]?.["items"]);
    const steps = numeric(rows[0]?.["steps"]);
    return (h("section", null,
        h(Switch, { label: "sample where the time of a step goes", on: on, set: setOn, hint: "samples the stacks for a second, again and again; nothing is loaded into the process" }),
        h(Trouble, { error: asked.error }),
        on && asked.value && !rows.length && h(Empty, null, "No PyTorch training step was seen in that second."),
        (items || steps) && (h("p", null,
            steps && `${number(Number(steps.toPrecision(3)))} steps a second`,
            items && `${steps ? ", " : ""}${number(Number(items.toPrecision(3)))} samples a second from its DataLoader`)),
        rows.length > 0 && h(Shares, { title: "Where the last second went", shares: rows.map((row) => ({ name: String(row["phase"]), share: Number(row["share"]), more: `${row["part"] ?? ""}` })) })));
}
function Watch({ target, done }) {
    const [names, setNames] = useState("loss@");
    return (h("section", null,
        h("h2", null, "Variables"),
        h("label", { class: "switch" },
            "Watch",
            " ",
            h("input", { type: "text", value: names, "aria-label": "Variables to watch", placeholder: "loss@train, self.lr@Trainer.step", onInput: (event) => setNames(event.currentTarget.value) })),
        h("p", { class: "quiet" },
            h("code", null, "loss@train"),
            ": the variable ",
            h("code", null, "loss"),
            " of the function ",
            h("code", null, "train"),
            ", at the end of each step; ",
            h("code", null, "loss@"),
            ": of whoever calls backward."),
        h(TurnOn, { target: target, setting: "probing.torch.profiling", value: names && `on,exprs=${names}`, label: "Watch these", done: done })));
}
const HOW = `import probing
probing.step()            # each step, in your loop
probing.log(loss=loss)    # and what else you log`;
function Nothing({ target, done }) {
    return (h("section", { class: "empty" },
        h("h2", null, "Steps, phases and loss are not recorded yet"),
        h("p", null, "For PyTorch, without a change of the program: steps, what they go into, and the loss of whoever calls backward."),
        h(TurnOn, { target: target, setting: "probing.torch.profiling", value: "on,exprs=loss@", label: "Record training", done: done }),
        h("details", { class: "bare" },
            h("summary", null, "For any program: three lines of Python"),
            h("pre", null, HOW))));
}
async function load(target, span, signal) {
    const told = await Promise.all([steps(target, span, signal), slowest(target, span, signal), logs(target, span, signal), variables(target, span, signal), collectives(target, span, signal), earliest(target, signal)]);
    return { steps: told[0], slow: told[1], logs: told[2], variables: told[3], collectives: told[4], first: told[5] };
}
export function TrainingScreen({ target }) {
    useWatch();
    const window = useTimeWindow();
    const file = target.startsWith("file:");
    const key = `${target} training ${window.width} ${window.live ? "" : window.until}`;
    const asked = usePolled(key, window.live ? 2 : 0, (signal) => {
        const until = window.live ? Date.now() / 1000 : window.until;
        return load(target, { from: until - window.width, until, live: window.live }, signal);
    });
    const last = useRef(null);
    last.current = asked.value ?? last.current;
    const told = last.current;
    const first = told && told.first < Infinity ? told.first : Math.max(watched(target)?.process.started ?? 0, Date.now() / 1000 - 600);
    const span = { ...window, from: Math.max(window.from, Math.min(first, window.until - 10)) };
    const any = told && (told.steps.rows.length || told.logs.names.length || told.variables.size || told.collectives.rows.length);
    const ever = told !== null && told.first < Infinity;
    return (h(Fragment, null,
        h("h1", null, "Training"),
        h(Trouble, { error: asked.error }),
        told && told.logs.badSince !== null && (h("p", { class: "trouble", role: "alert" },
            h("b", null,
                "The loss is no number from step ",
                told.logs.badSince,
                " on."),
            " ",
            h("a", { href: link({ target, screen: "tensors", params: { statistics: "1" } }) }, "Tensors shows which parameter has NaN first."))),
        told && !ever && !file && h(Nothing, { target: target, done: asked.again }),
        h(TimeSlider, { window: window, first: first }),
        ever && !any && h("p", { class: "banner" }, "Nothing was recorded in these minutes."),
        told && (h("div", { class: "cells" },
            told.steps.rows.length > 0 && h(StepTime, { told: told.steps, span: span }),
            told.steps.phases && h(Phases, { told: told.steps, span: span }),
            h(Logged, { told: told.logs, span: span }),
            h(Variables, { told: told.variables, span: span }),
            h(Rates, { told: told.steps, logged: told.logs, span: span }),
            h(Collective, { told: told.collectives, span: span }),
            !file && h(Memory, { target: target, span: span }))),
        told && told.slow.length > 0 && (h("section", null,
            h("h2", null, "Longest steps"),
            h(Table, { label: "Longest steps", columns: slowColumns, rows: told.slow }))),
        !file && h(Sampled, { target: target }),
        ever && !told?.variables.size && !file && h(Watch, { target: target, done: asked.again }),
        ever && !told?.steps.phases && !file && h(TurnOn, { target: target, setting: "probing.torch.profiling", value: "on", label: "Record the phases of PyTorch's steps", done: asked.again })));
}
