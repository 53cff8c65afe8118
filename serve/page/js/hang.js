import { useEffect } from "./hooks.js";
import { hidden } from "./editor.js";
import { askJson, at, has } from "./net.js";
import { isStuck, state, tell, watched } from "./watch.js";
import { jobTarget } from "./job_list.js";
const AGAIN = 60;
const SOON = 10;
const verdicts = new Map();
export const verdictOf = (job) => verdicts.get(job.id) ?? { hang: null, at: 0, trouble: "" };
export const hungJobs = () => state.jobs.filter((one) => verdictOf(one).hang?.hung);
function isDue(job, chosen) {
    const { at, hang } = verdictOf(job);
    const age = Date.now() / 1000 - at;
    const here = job.ranks.map((one) => (one.target ? watched(one.target) : undefined));
    const stuck = here.filter((one) => one !== undefined && isStuck(one));
    const fresh = stuck.some((one) => one.since < age);
    if (job.ranks.length < 2)
        return false;
    if (hang?.hung || fresh)
        return age > SOON;
    return (stuck.length > 0 || here.includes(undefined) || chosen === jobTarget(job)) && age > AGAIN;
}
async function ask(job, signal) {
    const begun = Date.now() / 1000;
    try {
        const hang = await askJson(at(jobTarget(job), "hang"), { signal, watches: true });
        verdicts.set(job.id, { hang, at: begun, trouble: "" });
    }
    catch (error) {
        if (!signal.aborted)
            verdicts.set(job.id, { hang: null, at: begun, trouble: error.message });
    }
    tell();
}
export function useVerdicts(chosen) {
    useEffect(() => {
        const abort = new AbortController();
        const work = async () => {
            while (!abort.signal.aborted) {
                const job = has("/jobs/{}/hang") && !hidden() && !state.frozen ? state.jobs.find((one) => isDue(one, chosen)) : undefined;
                if (job)
                    await ask(job, abort.signal);
                else
                    await new Promise((done) => setTimeout(done, 300));
            }
        };
        void work();
        return () => abort.abort();
    }, [chosen]);
}
