import { h } from "./preact.js";
import { askJson, at } from "./net.js";
import { plain } from "./format.js";
import { usePolled } from "./polled.js";
export async function localsOf(target, native, signal) {
    const words = { format: "pyspy", locals: "1", ...(native ? { native: "1" } : {}) };
    const told = await askJson(at(target, "stacks", words), { signal });
    return new Map(told.map((one) => [one.os_thread_id, one.frames.map((frame) => frame.locals ?? [])]));
}
export function useLocals(target, native) {
    return usePolled(target && `${target} ${native}`, 2, (signal) => localsOf(target, native, signal));
}
export function Locals({ values }) {
    if (!values.length)
        return null;
    return (h("dl", { class: "locals" }, values.map((one) => (h("div", null,
        h("dt", null,
            plain(one.name ?? "?", 60),
            " ",
            h("span", { class: "quiet" }, plain(one.type ?? "", 40))),
        h("dd", null, plain(one.repr ?? "", 400)))))));
}
