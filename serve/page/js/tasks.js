import { h, Fragment } from "./preact.js";
import { askJson, at } from "./net.js";
import { set } from "./place.js";
import { count, plain } from "./format.js";
import { usePolled } from "./polled.js";
import { Empty, Filter, FrameLine, Loading, OpenSource, Trouble } from "./parts.js";
const idOf = (one) => (typeof one === "number" ? one : one.id);
function trees(tasks) {
    const byId = new Map(tasks.map((one) => [one.id, one]));
    const seen = new Set();
    const make = (task, above) => {
        seen.add(task.id);
        const inside = new Set([...above, task.id]);
        const below = task.awaits.map((one) => byId.get(idOf(one))).filter((one) => one !== undefined);
        return { task, cycle: above.has(task.id), below: above.has(task.id) ? [] : below.map((one) => make(one, inside)) };
    };
    const roots = tasks.filter((one) => !one.awaited_by.some((link) => byId.has(idOf(link)))).map((one) => make(one, new Set()));
    const rest = [];
    for (const one of tasks)
        if (!seen.has(one.id))
            rest.push(make(one, new Set()));
    return [...roots, ...rest];
}
const words = (task) => `${task.name ?? ""} ${task.coroutine ?? ""} ${task.frames.map((one) => one.name).join(" ")}`.toLowerCase();
const holds = (node, q) => words(node.task).includes(q) || node.below.some((one) => holds(one, q));
function Branch({ node, target, q }) {
    const { task } = node;
    if (q && !holds(node, q))
        return null;
    return (h("li", null,
        h("details", { class: "bare" },
            h("summary", null,
                h("b", null, plain(task.name ?? "task", 60)),
                " ",
                h("span", { class: "fname" }, plain(task.coroutine ?? "", 80)),
                " ",
                h("span", { class: "chip" }, plain(task.state, 30)),
                task.waits_for && h("span", { class: "quiet" },
                    " waits for ",
                    plain(task.waits_for, 120)),
                node.cycle && h("span", { class: "chip bad" }, "waits for itself")),
            h("ol", { class: "frames" }, task.frames.map((frame) => (h("li", null,
                h(FrameLine, { frame: frame }),
                " ",
                h(OpenSource, { target: target, frame: frame })))))),
        node.below.length > 0 && (h("ul", null, node.below.map((one) => (h(Branch, { key: one.task.id, node: one, target: target, q: q })))))));
}
export function TasksScreen({ target, place }) {
    const tasks = usePolled(target, 1, (signal) => askJson(at(target, "tasks"), { signal }));
    const q = place.params["q"] ?? "";
    return (h(Fragment, null,
        h("h1", null, "Tasks"),
        h("div", { class: "tools" },
            h(Filter, { label: "Task, coroutine or frame", value: q, set: (q) => set({ q }) }),
            tasks.value && h("span", { class: "quiet" }, count(tasks.value.length, "task"))),
        h(Trouble, { error: tasks.error }),
        !tasks.value && !tasks.error && h(Loading, null),
        tasks.value?.length === 0 && h(Empty, null, "No asyncio task is alive in this process."),
        tasks.value && (h("ul", { class: "tree" }, trees(tasks.value).map((one) => (h(Branch, { key: one.task.id, node: one, target: target, q: q.toLowerCase() })))))));
}
