// What the skills find in each process, as `probing skill run` and agents are told it.  Processes are asked one after another, while
// somebody looks at the overview: first what answers at once, then all skills, which look for some ten seconds.
import { hidden } from "./editor.js";
import { useEffect } from "./hooks.js";
import { askJson, at, has, Refused } from "./net.js";
import { reason, stands, state, STUCK, tell, watched, type Watched } from "./watch.js";

export interface Finding {
  severity: string; // high, medium, low, info
  finding: string;
  where: string | null;
  next: string | null;
  skill: string;
}

export interface Diagnosis {
  findings: Finding[];
  at: number; // s since the epoch: when it was begun; 0: never
  whole: boolean; // by all skills
  asking: boolean;
  trouble: string;
}

const QUICK = ["health", "nan", "hang"];
const AGAIN = 120; // s
const SOONEST = 8; // s
const SEVERITIES = ["high", "medium", "low", "info"];

export const severity = (one: { severity: string }): number => (SEVERITIES.indexOf(one.severity) + 5) % 5;

const diagnoses = new Map<string, Diagnosis>();
const first = new Map<string, number>(); // when a finding was first seen, by process, skill and words without numbers

export function diagnosisOf(one: Watched): Diagnosis {
  const id = one.process.id;
  const known = diagnoses.get(id) ?? { findings: [], at: 0, whole: false, asking: false, trouble: "" };
  diagnoses.set(id, known);
  return known;
}

const identity = (id: string, one: Finding): string => `${id} ${one.skill} ${one.severity} ${one.finding.replace(/[\d.]+/g, "#")}`;

/** Since when a finding is there, as far as this page has seen; s since the epoch. */
export const seenSince = (one: Watched, finding: Finding): number => first.get(identity(one.process.id, finding)) ?? Date.now() / 1000;

/** That the main thread does not move: how long by now, the page sees by itself. */
export const isHang = (finding: Finding): boolean => finding.skill === "hang" && finding.severity !== "info" && finding.finding.startsWith("the main thread has not moved");

function take(one: Watched, findings: Finding[], whole: boolean, begun: number): void {
  const known = diagnosisOf(one);
  const id = one.process.id;
  known.findings = findings.sort((a, b) => severity(a) - severity(b));
  known.at = begun;
  known.whole = whole;
  known.trouble = "";
  if (findings.some((finding) => finding.skill === "hang") && !findings.some(isHang)) {
    const now = watched(id); // the list of processes is another one by now
    if (now) now.moves = begun;
  }
  const now = new Set(findings.map((finding) => identity(id, finding)));
  for (const key of first.keys()) if (key.startsWith(id + " ") && !now.has(key)) first.delete(key);
  for (const key of now) if (!first.has(key)) first.set(key, Date.now() / 1000);
}

const run = async (one: Watched, skill: string, signal: AbortSignal): Promise<Finding[]> => {
  const told = await askJson<{ findings: Finding[] }>(at(one.process.id, "skills/" + skill), { method: "POST", body: {}, signal, watches: true });
  return told.findings.map((finding) => ({ ...finding, skill: finding.skill ?? skill }));
};

async function diagnose(one: Watched, whole: boolean, signal: AbortSignal): Promise<void> {
  const known = diagnosisOf(one);
  const begun = Date.now() / 1000;
  known.asking = true;
  tell();
  try {
    const all: Finding[] = [];
    for (const skill of whole ? ["diagnose"] : QUICK) {
      all.push(...(await run(one, skill, signal)));
      if (!whole && !known.whole) take(one, [...all], false, begun);
      tell();
    }
    if (whole) take(one, all, true, begun);
  } catch (error) {
    if (error instanceof Refused) {
      known.trouble = error.message;
      known.at = begun;
      known.whole = true;
    }
  }
  known.asking = false;
  tell();
}

/** How much it is wanted to look at a process; 0: not now. */
function urgency(one: Watched, quick: boolean): number {
  const known = diagnosisOf(one);
  const now = Date.now() / 1000;
  if (known.asking || one.trouble || one.process.id.endsWith(".0") || one.stacks === null) return 0;
  if (reason(one) === "waits for work") return 0; // it would be asked for each worker of each rank
  if (quick) return known.at ? 0 : 1 + one.since;
  if (!known.at) return 0;
  const age = now - known.at;
  if (!known.whole) return 1000 + one.since;
  if (age < SOONEST) return 0;
  const stoppedSince = stands(one) && known.at < now - one.since + STUCK / 2;
  const movedSince = known.findings.some(isHang) && one.since < age;
  return stoppedSince || movedSince ? 500 + one.since : age > AGAIN ? age : 0;
}

function next(quick: boolean): Watched | undefined {
  const [best] = state.processes.map((one) => ({ one, urgency: urgency(one, quick) })).sort((a, b) => b.urgency - a.urgency);
  return best && best.urgency > 0 ? best.one : undefined;
}

/** Ask again now. */
export function diagnoseAgain(): void {
  for (const one of state.processes) diagnosisOf(one).at = 0;
  tell();
}

/** Two at a time: the server has other questions, too. */
export function useDiagnoses(): void {
  useEffect(() => {
    const abort = new AbortController();
    const work = async (quick: boolean): Promise<void> => {
      while (!abort.signal.aborted) {
        const one = has("/p/{}/skills/{}") && !hidden() && !state.frozen ? next(quick) : undefined;
        if (one) await diagnose(one, !quick, abort.signal);
        else await new Promise((done) => setTimeout(done, 300));
      }
    };
    void work(true);
    void work(false);
    return () => abort.abort();
  }, []);
}
