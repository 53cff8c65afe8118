// One WebSocket for all that is live.  It is opened by the first subscription and opened again when it breaks.
import { useEffect, useRef, useState } from "./hooks.js";
import { net, Refused } from "./net.js";
import { editor, hidden, type Line } from "./editor.js";
import { state } from "./watch.js";

interface Message {
  id: number;
  ok?: boolean;
  time?: number;
  value?: unknown;
  same?: boolean;
  error?: { code: string; message: string; remedy: string; retryable: boolean };
}

interface Taker {
  value: (value: unknown, time: number) => void;
  failed: (error: Error) => void;
  same?: (time: number) => void; // it is still the value before
  pieces?: boolean; // each value goes on where the one before ended: none is left out while the page is frozen
}

interface Subscription extends Taker {
  words: Record<string, unknown>;
  held?: unknown; // came while the page was frozen
}

const subscriptions = new Map<number, Subscription>();
let socket: Line | null = null;
let ready = false;
let next = 2;
let pause = 500;

export const hasLive = (): boolean => net.facts?.routes?.includes("/api/v1/live") ?? false;

function send(words: Record<string, unknown>): void {
  if (ready) socket?.send(JSON.stringify(words));
}

function give(one: Subscription, message: Message): void {
  const time = message.time ?? 0;
  if (message.value !== undefined) one.held = message.value;
  if (state.frozen && !one.pieces) return;
  const value = one.held;
  delete one.held;
  if (value !== undefined) one.value(value, time);
  else if (message.same) one.same?.(time);
}

function take(message: Message): void {
  if (message.id === 1) {
    ready = true;
    pause = 500;
    for (const [id, one] of subscriptions) send({ id, op: "sub", ...one.words });
    return;
  }
  const one = subscriptions.get(message.id);
  if (message.error && one) {
    if (!message.error.retryable) subscriptions.delete(message.id);
    one.failed(new Refused(0, message.error.message, message.error.remedy));
  } else if (one) {
    give(one, message);
  }
}

function connect(): Line {
  if (editor) return editor.connect();
  const address = new URL("api/v1/live", location.href);
  address.protocol = address.protocol.replace("http", "ws");
  address.hash = "";
  return new WebSocket(address);
}

function open(): void {
  if (socket || !subscriptions.size) return;
  const one = connect();
  socket = one;
  one.onopen = () => one.send(JSON.stringify({ id: 1, op: "token", token: net.token }));
  one.onmessage = (event) => take(JSON.parse(event.data as string) as Message);
  one.onclose = () => {
    if (socket !== one) return;
    socket = null;
    ready = false;
    setTimeout(open, pause);
    pause = Math.min(10000, pause * 2);
  };
}

function close(): void {
  const one = socket;
  socket = null;
  ready = false;
  if (one instanceof WebSocket && one.readyState === WebSocket.CONNECTING) one.onopen = () => one.close(); // else the browser complains
  else one?.close();
}

/** A hidden tab costs nothing; what it showed is asked for anew when it is seen. */
addEventListener("visibilitychange", () => (hidden() ? close() : open()));

export function subscribe(words: Record<string, unknown>, taker: Taker): () => void {
  const id = next++;
  subscriptions.set(id, { words, ...taker });
  send({ id, op: "sub", ...words });
  if (!hidden()) open();
  return () => {
    if (subscriptions.delete(id)) send({ id, op: "unsub" });
    if (!subscriptions.size) close();
  };
}

/**
 * Give each value of a topic to `take`, and to `same` when it is still the value before, as long as the words stay; null: nothing is
 * asked.  Returns why it ended.
 */
export function useLive(words: Record<string, unknown> | null, take: Taker["value"], same: (time: number) => void): Error | null {
  const [error, setError] = useState<Error | null>(null);
  const latest = useRef({ take, same });
  latest.current = { take, same };
  const key = words ? JSON.stringify(words) : "";
  useEffect(() => {
    setError(null);
    if (!words) return;
    return subscribe(words, { value: (value, time) => latest.current.take(value, time), same: (time) => latest.current.same(time), failed: setError });
  }, [key]);
  return error;
}
