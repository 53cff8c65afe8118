// What is said of a job: its coverage, and whether it hangs: the cause first, then who waits.
import { h, Fragment } from "./preact.js";
import { count, duration, plain } from "./format.js";
import { ranges } from "./names.js";
import { link } from "./place.js";
import { inState, jobTarget, ranksIn, shownRanks, sizeOf, STATES, type Coverage, type RankedJob } from "./job_list.js";
import { verdictOf, type Hang, type Part } from "./hang.js";

/** Each rank that was asked for is in one state: all of them, as a bar and in words. */
export function CoverageBar({ told }: { told: Coverage }) {
  const parts = STATES.map((state) => ({ state, ranks: inState(told, state) })).filter((one) => one.ranks.length);
  const answered = parts.find((one) => one.state === "answered")?.ranks.length ?? 0;
  const others = parts.filter((one) => one.state !== "answered");
  const reasons = [...new Set(told.failed.map((one) => one.reason).filter(Boolean))].slice(0, 3);
  return (
    <div class="covered">
      <div class="bar" role="img" aria-label={parts.map((one) => `${one.ranks.length} ${one.state}`).join(", ") || "no rank"}>
        {parts.map((one) => (
          <span class={"is" + one.state} style={{ width: `${(100 * one.ranks.length) / Math.max(1, told.expected)}%` }} />
        ))}
      </div>
      <p class={others.length ? "bad" : "quiet"}>
        {answered} of {count(told.expected, "rank")} answered
        {others.map((one) => `; ${one.state}: ${ranges(one.ranks)}`).join("")}
        {reasons.length > 0 && ` (${plain(reasons.join("; "), 300)})`}
        {told.late && `; late: ${shownRanks(told.late)}`}
        {told.truncated && `; cut short: ${shownRanks(told.truncated)}`}
      </p>
    </div>
  );
}

/** Where the page shows ranks: a process of this machine, or the ranks in one tree. */
function shows(job: RankedJob, part: Part): string {
  const ranks = ranksIn(part.ranks);
  const here = ranks.length === 1 ? job.ranks.find((one) => one.rank === ranks[0])?.target : null;
  return link(here ? { target: here, screen: "stacks", params: { locals: "1" } } : { target: jobTarget(job, part.ranks), screen: "stacks" });
}

const FRAMES = 6;

function One({ job, part, what, level }: { job: RankedJob; part: Part; what: string; level: string }) {
  const ranks = ranksIn(part.ranks);
  const chain = part.frames.slice(0, FRAMES).map((one) => `${plain(one.name, 60)} (${plain(one.file, 80)}:${one.line})`);
  return (
    <li class={level}>
      <span class="severity">{what}</span>
      <div>
        <a href={shows(job, part)}>
          {ranks.length === 1 ? "rank" : "ranks"} {ranges(ranks)} {what === "waiting" && "in "}
          {plain(part.text, 300)}
        </a>{" "}
        {ranks.length === 1 && part.pid > 0 && <span class="quiet">{plain(`${part.host ? part.host + ", " : ""}process ${part.pid}`, 100)}</span>}
        {level === "high" && chain.length > 0 && (
          <div class="fplace">
            {chain.join(" ← ")}
            {part.frames.length > FRAMES && " ← …"}
            {part.inside && `, in ${plain(part.inside, 60)}`}
          </div>
        )}
      </div>
    </li>
  );
}

function Parts({ job, hang }: { job: RankedJob; hang: Hang }) {
  return (
    <ul class="findings">
      {hang.hung && hang.cause.slice(0, 8).map((part) => <One job={job} part={part} what="cause" level="high" />)}
      {hang.slow.slice(0, 8).map((part) => (
        <One job={job} part={part} what="slow" level="medium" />
      ))}
      {hang.waiting.slice(0, 8).map((part) => (
        <One job={job} part={part} what="waiting" level="info" />
      ))}
    </ul>
  );
}

/** The verdict on a job, as a card; what is well in a line. */
export function JobCard({ job }: { job: RankedJob }) {
  const { hang, at, trouble } = verdictOf(job);
  const age = at ? Date.now() / 1000 - at : 0;
  const long = hang?.since === null || hang === null ? "" : `${hang.since_at_least ? "for at least " : "for "}${duration(hang.since + age)}`;
  const level = hang?.hung ? "high" : hang?.slow.length ? "medium" : "";
  return (
    <section class={"job " + level} aria-label={"Job " + plain(job.id, 60)}>
      <h2>
        <a href={link({ target: jobTarget(job), screen: "overview" })}>{plain(jobTarget(job), 80)}</a>{" "}
        <span class="quiet">
          {hang ? (hang.hung ? `hangs ${long}` : `goes on: ${plain(hang.summary, 200)}`) : trouble ? plain(trouble, 200) : `${count(sizeOf(job), "rank")}: two views are taken …`}
        </span>
      </h2>
      {hang && (hang.hung || hang.slow.length > 0) && <Parts job={job} hang={hang} />}
      {hang && <CoverageBar told={hang.coverage} />}
    </section>
  );
}

const isWell = (hang: Hang | null): boolean => !hang || (!hang.hung && !hang.slow.length && inState(hang.coverage, "answered").length === hang.coverage.expected);

/** On the overview of all processes: the jobs that hang, are slow, or are not whole. */
export function JobCards({ jobs }: { jobs: RankedJob[] }) {
  return (
    <>
      {jobs.filter((one) => !isWell(verdictOf(one).hang)).slice(0, 6).map((one) => (
        <JobCard key={one.id} job={one} />
      ))}
    </>
  );
}
