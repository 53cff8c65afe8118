// Questions to the server.  The token came in the address's fragment, which no server and no log sees; it goes in a header.
// Addresses are relative, so that a proxy may put the page under any path.  In a panel the editor asks, and shows who it is.
import { editor } from "./editor.js";
import type { Coverage } from "./job_list.js";

export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly remedy: string,
  ) {
    super(message);
  }
}

export interface ServerFacts {
  version: string;
  pid: number;
  grants: string[];
  limits: Record<string, number>;
  routes?: string[];
  warning?: string | null; // what its user should know of how it is reached
}

const place = "probing.token " + location.pathname;

export const net = {
  token: "", // "": none; it may be that none is needed
  forgotten: false, // the user wants this page to have none
  lostAt: 0, // ms since the epoch; 0: the server answers
  facts: null as ServerFacts | null,
  looks: 0,
  millis: 0, // that all answers took
  bytes: 0,
  changed: () => {},
};

function kept(): string {
  try {
    return localStorage.getItem(place) ?? "";
  } catch {
    return ""; // a private window may forbid it: the token lasts as long as the page
  }
}

function keep(token: string): void {
  try {
    localStorage.setItem(place, token);
  } catch {
    /* as above */
  }
}

/** Move the token from the address to where only this page finds it. */
export function takeToken(): void {
  if (editor) return;
  const found = /^#token=([^&]+)&?(.*)$/.exec(location.hash);
  net.token = found?.[1] ?? kept();
  if (!found) return;
  keep(net.token);
  net.forgotten = false;
  history.replaceState(null, "", location.pathname + location.search + "#" + (found[2] ?? ""));
}

export function forgetToken(): void {
  keep("");
  net.token = "";
  net.forgotten = true;
  net.changed();
}

function setLost(lost: boolean): void {
  if (lost === net.lostAt > 0) return;
  net.lostAt = lost ? Date.now() : 0;
  net.changed();
}

/** A browser writes each answer of 400 and more on its console, also one that is shown: the server tells the status in a header. */
const statusOf = (answer: Response): number => Number(answer.headers.get("probing-status") ?? answer.status);

async function refusal(answer: Response): Promise<Refused> {
  let told: { error?: { message?: string; remedy?: string } } = {};
  try {
    told = (await answer.json()) as typeof told;
  } catch {
    /* a proxy's own words */
  }
  return new Refused(statusOf(answer), told.error?.message ?? `the server answers ${statusOf(answer)}`, told.error?.remedy ?? "");
}

export interface Asked {
  method?: string;
  body?: unknown;
  signal?: AbortSignal | undefined;
  accept?: string;
  watches?: boolean; // for seconds, by its nature
}

export async function ask(path: string, asked: Asked = {}): Promise<Response> {
  const headers: Record<string, string> = { Accept: asked.accept ?? "application/json" };
  if (!editor) headers["Probing-Errors"] = "200";
  if (net.token) headers["Authorization"] = "Bearer " + net.token;
  if (asked.body !== undefined) headers["Content-Type"] = "application/json";
  const begin = performance.now();
  let answer: Response;
  try {
    answer = await (editor ? editor.fetch.bind(editor) : fetch)(path, {
      method: asked.method ?? "GET",
      headers,
      body: asked.body === undefined ? null : JSON.stringify(asked.body),
      signal: asked.signal ?? null,
      cache: "no-store",
      credentials: "same-origin",
    });
  } catch (error) {
    if (!asked.signal?.aborted) setLost(true);
    throw error;
  }
  setLost(false);
  if (!asked.watches) {
    net.looks++;
    net.millis += performance.now() - begin;
  }
  net.bytes += Number(answer.headers.get("content-length") ?? 0);
  if (statusOf(answer) >= 400) throw await refusal(answer);
  return answer;
}

export async function askJson<T>(path: string, asked: Asked = {}): Promise<T> {
  return (await (await ask(path, asked)).json()) as T;
}

/** The address of what a target answers; "@NAME": a job. */
export function at(target: string, what = "", query: Record<string, string> = {}): string {
  const words = new URLSearchParams(query).toString();
  const whose = target.startsWith("@") ? "jobs/" + encodeURIComponent(target.slice(1)) : "p/" + encodeURIComponent(target);
  return `api/v1/${whose}${what && "/" + what}${words && "?" + words}`;
}

/** Whether this server has a route; screens leave out what an older one lacks. */
export function has(route: string): boolean {
  return net.facts?.routes?.includes("/api/v1" + route) ?? false;
}

export interface Rows {
  columns: string[];
  rows: (string | number | null)[][];
  warning: string | null;
  truncated: boolean;
  coverage?: Coverage; // of a job
}

export function query(target: string, sql: string, signal?: AbortSignal): Promise<Rows> {
  return askJson<Rows>(at(target, "query"), { method: "POST", body: { sql }, signal });
}

/** Rows as objects. */
export function records(rows: Rows): Record<string, string | number | null>[] {
  return rows.rows.map((row) => Object.fromEntries(rows.columns.map((name, i) => [name, row[i] ?? null])));
}
