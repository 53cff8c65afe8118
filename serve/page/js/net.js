import { editor } from "./editor.js";
export class Refused extends Error {
    status;
    remedy;
    constructor(status, message, remedy) {
        super(message);
        this.status = status;
        this.remedy = remedy;
    }
}
const place = "probing.token " + location.pathname;
export const net = {
    token: "",
    forgotten: false,
    lostAt: 0,
    facts: null,
    looks: 0,
    millis: 0,
    bytes: 0,
    changed: () => { },
};
function kept() {
    try {
        return localStorage.getItem(place) ?? "";
    }
    catch {
        return "";
    }
}
function keep(token) {
    try {
        localStorage.setItem(place, token);
    }
    catch {
    }
}
export function takeToken() {
    if (editor)
        return;
    const found = /^#token=([^&]+)&?(.*)$/.exec(location.hash);
    net.token = found?.[1] ?? kept();
    if (!found)
        return;
    keep(net.token);
    net.forgotten = false;
    history.replaceState(null, "", location.pathname + location.search + "#" + (found[2] ?? ""));
}
export function forgetToken() {
    keep("");
    net.token = "";
    net.forgotten = true;
    net.changed();
}
function setLost(lost) {
    if (lost === net.lostAt > 0)
        return;
    net.lostAt = lost ? Date.now() : 0;
    net.changed();
}
const statusOf = (answer) => Number(answer.headers.get("probing-status") ?? answer.status);
async function refusal(answer) {
    let told = {};
    try {
        told = (await answer.json());
    }
    catch {
    }
    return new Refused(statusOf(answer), told.error?.message ?? `the server answers ${statusOf(answer)}`, told.error?.remedy ?? "");
}
export async function ask(path, asked = {}) {
    const headers = { Accept: asked.accept ?? "application/json" };
    if (!editor)
        headers["Probing-Errors"] = "200";
    if (net.token)
        headers["Authorization"] = "Bearer " + net.token;
    if (asked.body !== undefined)
        headers["Content-Type"] = "application/json";
    const begin = performance.now();
    let answer;
    try {
        answer = await (editor ? editor.fetch.bind(editor) : fetch)(path, {
            method: asked.method ?? "GET",
            headers,
            body: asked.body === undefined ? null : JSON.stringify(asked.body),
            signal: asked.signal ?? null,
            cache: "no-store",
            credentials: "same-origin",
        });
    }
    catch (error) {
        if (!asked.signal?.aborted)
            setLost(true);
        throw error;
    }
    setLost(false);
    if (!asked.watches) {
        net.looks++;
        net.millis += performance.now() - begin;
    }
    net.bytes += Number(answer.headers.get("content-length") ?? 0);
    if (statusOf(answer) >= 400)
        throw await refusal(answer);
    return answer;
}
export async function askJson(path, asked = {}) {
    return (await (await ask(path, asked)).json());
}
export function at(target, what = "", query = {}) {
    const words = new URLSearchParams(query).toString();
    const whose = target.startsWith("@") ? "jobs/" + encodeURIComponent(target.slice(1)) : "p/" + encodeURIComponent(target);
    return `api/v1/${whose}${what && "/" + what}${words && "?" + words}`;
}
export function has(route) {
    return net.facts?.routes?.includes("/api/v1" + route) ?? false;
}
export function query(target, sql, signal) {
    return askJson(at(target, "query"), { method: "POST", body: { sql }, signal });
}
export function records(rows) {
    return rows.rows.map((row) => Object.fromEntries(rows.columns.map((name, i) => [name, row[i] ?? null])));
}
