import { hidden } from "./editor.js";
import { useEffect } from "./hooks.js";
import { askJson, at, has, Refused } from "./net.js";
import { reason, stands, state, STUCK, tell, watched } from "./watch.js";
const QUICK = ["health", "nan", "hang"];
const AGAIN = 120;
const SOONEST = 8;
const SEVERITIES = ["high", "medium", "low", "info"];
export const severity = (one) => (SEVERITIES.indexOf(one.severity) + 5) % 5;
const diagnoses = new Map();
const first = new Map();
export function diagnosisOf(one) {
    const id = one.process.id;
    const known = diagnoses.get(id) ?? { findings: [], at: 0, whole: false, asking: false, trouble: "" };
    diagnoses.set(id, known);
    return known;
}
const identity = (id, one) => `${id} ${one.skill} ${one.severity} ${one.finding.replace(/[\d.]+/g, "#")}`;
export const seenSince = (one, finding) => first.get(identity(one.process.id, finding)) ?? Date.now() / 1000;
export const isHang = (finding) => finding.skill === "hang" && finding.severity !== "info" && finding.finding.startsWith("the main thread has not moved");
function take(one, findings, whole, begun) {
    const known = diagnosisOf(one);
    const id = one.process.id;
    known.findings = findings.sort((a, b) => severity(a) - severity(b));
    known.at = begun;
    known.whole = whole;
    known.trouble = "";
    if (findings.some((finding) => finding.skill === "hang") && !findings.some(isHang)) {
        const now = watched(id);
        if (now)
            now.moves = begun;
    }
    const now = new Set(findings.map((finding) => identity(id, finding)));
    for (const key of first.keys())
        if (key.startsWith(id + " ") && !now.has(key))
            first.delete(key);
    for (const key of now)
        if (!first.has(key))
            first.set(key, Date.now() / 1000);
}
const run = async (one, skill, signal) => {
    const told = await askJson(at(one.process.id, "skills/" + skill), { method: "POST", body: {}, signal, watches: true });
    return told.findings.map((finding) => ({ ...finding, skill: finding.skill ?? skill }));
};
async function diagnose(one, whole, signal) {
    const known = diagnosisOf(one);
    const begun = Date.now() / 1000;
    known.asking = true;
    tell();
    try {
        const all = [];
        for (const skill of whole ? ["diagnose"] : QUICK) {
            all.push(...(await run(one, skill, signal)));
            if (!whole && !known.whole)
                take(one, [...all], false, begun);
            tell();
        }
        if (whole)
            take(one, all, true, begun);
    }
    catch (error) {
        if (error instanceof Refused) {
            known.trouble = error.message;
            known.at = begun;
            known.whole = true;
        }
    }
    known.asking = false;
    tell();
}
function urgency(one, quick) {
    const known = diagnosisOf(one);
    const now = Date.now() / 1000;
    if (known.asking || one.trouble || one.process.id.endsWith(".0") || one.stacks === null)
        return 0;
    if (reason(one) === "waits for work")
        return 0;
    if (quick)
        return known.at ? 0 : 1 + one.since;
    if (!known.at)
        return 0;
    const age = now - known.at;
    if (!known.whole)
        return 1000 + one.since;
    if (age < SOONEST)
        return 0;
    const stoppedSince = stands(one) && known.at < now - one.since + STUCK / 2;
    const movedSince = known.findings.some(isHang) && one.since < age;
    return stoppedSince || movedSince ? 500 + one.since : age > AGAIN ? age : 0;
}
function next(quick) {
    const [best] = state.processes.map((one) => ({ one, urgency: urgency(one, quick) })).sort((a, b) => b.urgency - a.urgency);
    return best && best.urgency > 0 ? best.one : undefined;
}
export function diagnoseAgain() {
    for (const one of state.processes)
        diagnosisOf(one).at = 0;
    tell();
}
export function useDiagnoses() {
    useEffect(() => {
        const abort = new AbortController();
        const work = async (quick) => {
            while (!abort.signal.aborted) {
                const one = has("/p/{}/skills/{}") && !hidden() && !state.frozen ? next(quick) : undefined;
                if (one)
                    await diagnose(one, !quick, abort.signal);
                else
                    await new Promise((done) => setTimeout(done, 300));
            }
        };
        void work(true);
        void work(false);
        return () => abort.abort();
    }, []);
}
