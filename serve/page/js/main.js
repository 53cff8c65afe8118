import { h, render } from "./preact.js";
import { useEffect, useState } from "./hooks.js";
import { has, net, takeToken } from "./net.js";
import { editor } from "./editor.js";
import { fragment, go, link, parse, set } from "./place.js";
import { usePlace, useWatch } from "./polled.js";
import { isShut, isStuck, likeliest, state, tell, watch, watched } from "./watch.js";
import { count, duration, plain } from "./format.js";
import { Overview } from "./overview.js";
import { processName } from "./names.js";
import { isJob, jobOf, jobTarget, sizeOf } from "./job_list.js";
import { verdictOf } from "./hang.js";
import { Empty, Trouble } from "./parts.js";
import { applyTheme, theme } from "./theme.js";
import { Keys, listenKeys } from "./keys.js";
export const screens = [
    { id: "overview", name: "Overview", icon: "◉", key: "o", whole: true, load: async () => Overview },
    { id: "stacks", name: "Stacks", icon: "≡", key: "s", load: async () => (await import("./stacks.js")).StacksScreen },
    { id: "profile", name: "Profile", icon: "▤", key: "p", load: async () => (await import("./profile.js")).ProfileScreen },
    { id: "training", name: "Training", icon: "∿", key: "t", load: async () => (await import("./training.js")).TrainingScreen },
    { id: "memory", name: "Memory", icon: "▥", key: "m", load: async () => (await import("./memory.js")).MemoryScreen },
    { id: "tensors", name: "Tensors", icon: "▦", key: "n", load: async () => (await import("./tensors.js")).TensorsScreen },
    { id: "crashes", name: "Crashes", icon: "✕", key: "c", whole: true, load: async () => (await import("./crashes.js")).CrashesScreen },
    { id: "sql", name: "SQL", icon: "⌕", key: "q", load: async () => (await import("./sql.js")).SqlScreen },
    { id: "tasks", name: "Tasks", icon: "⋔", key: "k", load: async () => (await import("./tasks.js")).TasksScreen },
    { id: "console", name: "Console", icon: "›", key: "e", load: async () => (await import("./console.js")).ConsoleScreen },
    { id: "settings", name: "Settings", icon: "⚙", key: ",", whole: true, load: async () => (await import("./settings.js")).SettingsScreen },
];
const alsoOfJobs = (screen) => screen === "crashes" || screen === "settings" || (screen === "sql" && has("/jobs/{}/query"));
const loadJob = async () => (await import("./job.js")).JobScreen;
function Rail({ place }) {
    return (h("nav", { class: "rail", "aria-label": "Screens" }, screens.map((one) => (h("a", { href: link({ target: place.target, screen: one.id }), "aria-current": one.id === place.screen ? "page" : undefined, title: `g ${one.key}` },
        h("span", { class: "icon", "aria-hidden": "true" }, one.icon),
        one.name)))));
}
function Chip({ target }) {
    const job = jobOf(state.jobs, target);
    if (job)
        return h("span", { class: verdictOf(job).hang?.hung ? "chip bad" : "chip" }, verdictOf(job).hang?.hung ? "hangs" : count(sizeOf(job), "rank"));
    if (target.startsWith("file:"))
        return h("span", { class: "chip" }, "file");
    const one = watched(target);
    if (!one)
        return h("span", { class: "chip bad" }, "ended");
    if (one.trouble)
        return h("span", { class: "chip" }, "cannot be looked at");
    if (isStuck(one))
        return h("span", { class: "chip bad" },
            "unchanged for ",
            duration(one.since));
    return h("span", { class: "chip good" }, one.main.length ? "moving" : "looking");
}
function Picker({ target, place }) {
    const job = jobOf(state.jobs, target);
    const known = watched(target) || job || !target;
    if (!state.processes.length && !state.jobs.length && known)
        return null;
    return (h("select", { "aria-label": "Process", value: watched(target)?.process.id ?? (job ? jobTarget(job) : target), onChange: (event) => go({ ...place, params: {}, target: event.currentTarget.value }) },
        !target && h("option", { value: "" }, "all processes"),
        !known && h("option", { value: target }, plain(target, 60)),
        state.jobs.map((one) => (h("option", { value: jobTarget(one) },
            plain(jobTarget(one), 60),
            " \u00B7 ",
            count(sizeOf(one), "rank")))),
        state.processes.map((one) => (h("option", { value: one.process.id }, plain(processName(one.process), 70))))));
}
function Coverage({ target }) {
    const stacks = watched(target)?.stacks;
    if (!stacks)
        return null;
    const unstable = stacks.threads.filter((one) => one.unstable).length;
    const ago = Math.max(0, Date.now() / 1000 - stacks.time);
    return (h("span", { class: "quiet coverage" },
        count(stacks.threads.length, "thread"),
        ", ",
        unstable,
        " unstable, ",
        duration(ago),
        " ago"));
}
function DebugButton({ target }) {
    const one = watched(target);
    const file = target.startsWith("file:");
    if (!editor || !(file || one))
        return null;
    const rank = one?.process.rank ?? null;
    return (h("button", { type: "button", class: "main", onClick: () => editor?.debug(target) },
        "Debug ",
        file ? "this file" : rank === null ? "this process" : `rank ${rank}`));
}
function Header({ target, place }) {
    const each = net.looks ? net.millis / net.looks : 0;
    return (h("header", null,
        h("a", { class: "skip", href: fragment() || "#/overview", onClick: (event) => (event.preventDefault(), document.querySelector("main")?.focus()) }, "Skip to the screen"),
        h("a", { class: "brand", href: "#/overview" }, "probing"),
        state.loaded && h(Picker, { target: target, place: place }),
        target && h(Chip, { target: target }),
        target && h(Coverage, { target: target }),
        h("span", { class: "gap" }),
        h("span", { class: "quiet", title: "nothing in a process is stopped for a look" },
            "an answer takes ",
            each.toFixed(1),
            " ms"),
        h(DebugButton, { target: target }),
        h("button", { type: "button", "aria-pressed": state.frozen, onClick: () => freeze(), title: "Space" }, state.frozen ? "Frozen" : "Freeze")));
}
export function freeze() {
    state.frozen = !state.frozen;
    tell();
}
function NoToken() {
    return (h(Empty, null,
        h("h1", null, "This page needs its token"),
        h("p", null, "The address that the server printed carries it after the #. This prints it again:"),
        h("pre", null, "probing serve --url"),
        state.refused && h(Trouble, { error: state.refused })));
}
function NoProcess() {
    return (h(Empty, null,
        h("h1", null, "No Python process is running"),
        h("p", null, "What you start shows up here by itself. A dump or a core is looked at when the server is given it:"),
        h("pre", null, "probing serve FILE")));
}
function Body({ place, target }) {
    const screen = screens.find((one) => one.id === place.screen);
    const [loaded, setLoaded] = useState(null);
    const [failed, setFailed] = useState(false);
    const ofJob = isJob(target) && !alsoOfJobs(place.screen);
    const id = (ofJob ? "job " : "") + (screen?.id ?? "");
    useEffect(() => {
        setFailed(false);
        (ofJob ? loadJob : screen?.load)?.().then((component) => setLoaded({ id, screen: component }), () => setFailed(true));
    }, [id]);
    if (!screen)
        return h(Empty, null,
            "There is no screen \u201C",
            plain(place.screen, 40),
            "\u201D.");
    if (failed)
        return h(Empty, null, "The server is another one by now, or gone. Load the page again.");
    if (!state.loaded)
        return h(Empty, null, "asking the server \u2026");
    if (!target && !screen.whole)
        return h(NoProcess, null);
    if (loaded?.id !== id)
        return null;
    const Loaded = loaded.screen;
    return h(Loaded, { key: id + target, target: target, place: place });
}
function Page() {
    useWatch();
    const place = usePlace();
    const screen = screens.find((one) => one.id === place.screen);
    const target = place.target || (screen?.whole ? "" : likeliest());
    const name = screen?.name ?? "";
    useEffect(() => {
        if (target && !place.target)
            set({}, target);
    }, [target, place.target]);
    useEffect(() => {
        const one = watched(target);
        document.title = `${name}${one ? " · " + plain(processName(one.process), 60) : ""} · probing`;
    });
    const shut = isShut();
    return (h("div", { class: "page" + (net.lostAt ? " lost" : "") },
        h(Header, { target: shut ? "" : target, place: place }),
        h(Rail, { place: place }),
        h("main", { tabIndex: -1, class: place.screen },
            net.lostAt > 0 && (h("p", { class: "banner", role: "alert" },
                "The server has not answered since ",
                new Date(net.lostAt).toLocaleTimeString(),
                ". This page asks again by itself; what it shows is old.")),
            !shut && net.facts?.warning && (h("p", { class: "banner", role: "note" }, plain(net.facts.warning, 300))),
            shut ? h(NoToken, null) : h(Body, { place: place, target: target })),
        h(Keys, { screens: screens, place: place })));
}
takeToken();
if (theme())
    applyTheme(theme());
addEventListener("hashchange", () => {
    if (!location.hash.startsWith("#token="))
        return;
    takeToken();
    state.refused = null;
    net.facts = null;
});
net.changed = tell;
listenKeys({ freeze, open: (screen) => go({ target: parse(fragment()).target, screen }), screens });
render(h(Page, null), document.getElementById("page"));
void watch();
