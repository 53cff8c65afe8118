import { useEffect, useRef, useState } from "./hooks.js";
import { net, Refused } from "./net.js";
import { editor, hidden } from "./editor.js";
import { state } from "./watch.js";
const subscriptions = new Map();
let socket = null;
let ready = false;
let next = 2;
let pause = 500;
export const hasLive = () => net.facts?.routes?.includes("/api/v1/live") ?? false;
function send(words) {
    if (ready)
        socket?.send(JSON.stringify(words));
}
function give(one, message) {
    const time = message.time ?? 0;
    if (message.value !== undefined)
        one.held = message.value;
    if (state.frozen && !one.pieces)
        return;
    const value = one.held;
    delete one.held;
    if (value !== undefined)
        one.value(value, time);
    else if (message.same)
        one.same?.(time);
}
function take(message) {
    if (message.id === 1) {
        ready = true;
        pause = 500;
        for (const [id, one] of subscriptions)
            send({ id, op: "sub", ...one.words });
        return;
    }
    const one = subscriptions.get(message.id);
    if (message.error && one) {
        if (!message.error.retryable)
            subscriptions.delete(message.id);
        one.failed(new Refused(0, message.error.message, message.error.remedy));
    }
    else if (one) {
        give(one, message);
    }
}
function connect() {
    if (editor)
        return editor.connect();
    const address = new URL("api/v1/live", location.href);
    address.protocol = address.protocol.replace("http", "ws");
    address.hash = "";
    return new WebSocket(address);
}
function open() {
    if (socket || !subscriptions.size)
        return;
    const one = connect();
    socket = one;
    one.onopen = () => one.send(JSON.stringify({ id: 1, op: "token", token: net.token }));
    one.onmessage = (event) => take(JSON.parse(event.data));
    one.onclose = () => {
        if (socket !== one)
            return;
        socket = null;
        ready = false;
        setTimeout(open, pause);
        pause = Math.min(10000, pause * 2);
    };
}
function close() {
    const one = socket;
    socket = null;
    ready = false;
    if (one instanceof WebSocket && one.readyState === WebSocket.CONNECTING)
        one.onopen = () => one.close();
    else
        one?.close();
}
addEventListener("visibilitychange", () => (hidden() ? close() : open()));
export function subscribe(words, taker) {
    const id = next++;
    subscriptions.set(id, { words, ...taker });
    send({ id, op: "sub", ...words });
    if (!hidden())
        open();
    return () => {
        if (subscriptions.delete(id))
            send({ id, op: "unsub" });
        if (!subscriptions.size)
            close();
    };
}
export function useLive(words, take, same) {
    const [error, setError] = useState(null);
    const latest = useRef({ take, same });
    latest.current = { take, same };
    const key = words ? JSON.stringify(words) : "";
    useEffect(() => {
        setError(null);
        if (!words)
            return;
        return subscribe(words, { value: (value, time) => latest.current.take(value, time), same: (time) => latest.current.same(time), failed: setError });
    }, [key]);
    return error;
}
