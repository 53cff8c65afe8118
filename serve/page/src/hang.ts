// Whether a job hangs, who is to blame, who waits: as `probing -t @JOB hang` says.  A look at a job takes seconds, so jobs are asked one
// after another while somebody looks at the overview.
import { useEffect } from "./hooks.js";
import { hidden } from "./editor.js";
import { askJson, at, has } from "./net.js";
import { isStuck, state, tell, watched } from "./watch.js";
import { jobTarget, type Coverage, type RankedJob } from "./job_list.js";

export interface Part {
  ranks: string;
  host: string;
  pid: number;
  kind: string;
  text: string;
  operation: string;
  site: string;
  inside: string;
  frames: { name: string; file: string; line: number }[]; // innermost first
}

export interface Hang {
  hung: boolean;
  summary: string;
  span: number; // s between the two views
  since: number | null; // s
  since_at_least: boolean;
  recorders: number; // ranks whose Flight Recorder was read
  cause: Part[];
  waiting: Part[];
  slow: Part[];
  coverage: Coverage;
}

interface Verdict {
  hang: Hang | null;
  at: number; // s since the epoch; 0: never
  trouble: string;
}

const AGAIN = 60; // s
const SOON = 10; // s

const verdicts = new Map<string, Verdict>();

export const verdictOf = (job: RankedJob): Verdict => verdicts.get(job.id) ?? { hang: null, at: 0, trouble: "" };

export const hungJobs = (): RankedJob[] => state.jobs.filter((one) => verdictOf(one).hang?.hung);

/** While all ranks are here and move, nothing has to be asked: it stops single threads for some 0.1 ms. */
function isDue(job: RankedJob, chosen: string): boolean {
  const { at, hang } = verdictOf(job);
  const age = Date.now() / 1000 - at;
  const here = job.ranks.map((one) => (one.target ? watched(one.target) : undefined));
  const stuck = here.filter((one) => one !== undefined && isStuck(one));
  const fresh = stuck.some((one) => one!.since < age); // since the last verdict
  if (job.ranks.length < 2) return false;
  if (hang?.hung || fresh) return age > SOON;
  return (stuck.length > 0 || here.includes(undefined) || chosen === jobTarget(job)) && age > AGAIN;
}

async function ask(job: RankedJob, signal: AbortSignal): Promise<void> {
  const begun = Date.now() / 1000;
  try {
    const hang = await askJson<Hang>(at(jobTarget(job), "hang"), { signal, watches: true });
    verdicts.set(job.id, { hang, at: begun, trouble: "" });
  } catch (error) {
    if (!signal.aborted) verdicts.set(job.id, { hang: null, at: begun, trouble: (error as Error).message });
  }
  tell();
}

export function useVerdicts(chosen: string): void {
  useEffect(() => {
    const abort = new AbortController();
    const work = async (): Promise<void> => {
      while (!abort.signal.aborted) {
        const job = has("/jobs/{}/hang") && !hidden() && !state.frozen ? state.jobs.find((one) => isDue(one, chosen)) : undefined;
        if (job) await ask(job, abort.signal);
        else await new Promise((done) => setTimeout(done, 300));
      }
    };
    void work();
    return () => abort.abort();
  }, [chosen]);
}
