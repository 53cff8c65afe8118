// A job as the target: the verdict and a cell for each rank; the stacks of all ranks in one tree; the screens that are of one rank.
import { h, Fragment } from "./preact.js";
import { askJson, at, has } from "./net.js";
import { plain } from "./format.js";
import { link, set, type Place } from "./place.js";
import { usePolled, useWatch } from "./polled.js";
import { state, watched } from "./watch.js";
import { inState, jobOf, jobTarget, ranksIn, sizeOf, STATES, type Coverage, type JobRank, type RankedJob, type State } from "./job_list.js";
import { useVerdicts, verdictOf } from "./hang.js";
import { CoverageBar, JobCard } from "./verdict.js";
import { MAIN, RankTree } from "./ranks.js";
import type { Walker } from "./rank_tree.js";
import type { Frame } from "./looks.js";
import { Empty, Loading, Switch, Trouble } from "./parts.js";
import { JobFindings } from "./job_findings.js";
import { JobProfile } from "./job_profile.js";
import { JobMemory, JobTraining } from "./job_tables.js";
import type { ScreenProps } from "./main.js";

// ---- stacks of all ranks ----

/** Threads of one name that stand alike, of some ranks. */
interface Group {
  ranks: string;
  count: number; // of them
  threads: number;
  thread: string;
  frames: { kind: string; name: string; file: string; line: number }[]; // innermost first
}

interface Merged {
  rows: Group[];
  coverage: Coverage;
}

const frameOf = ({ kind, name, file, line }: Group["frames"][0]): Frame => ({ kind, name, file: kind === "native" ? null : file, line: line > 0 ? line : null, module: kind === "native" ? file : null });

const merged = (target: string, native: boolean, signal: AbortSignal): Promise<Merged> => askJson<Merged>(at(target, "stacks", native ? { native: "1" } : {}), { signal });

/** Python calls it so; where it does not, the one that most ranks have. */
function mainName(rows: Group[]): string {
  const ranks = new Map<string, number>();
  for (const one of rows) ranks.set(one.thread, (ranks.get(one.thread) ?? 0) + one.count);
  return ranks.has("MainThread") ? "MainThread" : ([...ranks].sort((a, b) => b[1] - a[1])[0]?.[0] ?? "");
}

function walkers(rows: Group[], thread: string): Walker[] {
  return rows
    .filter((one) => one.thread === thread)
    .flatMap((one) => {
      const frames = one.frames.map(frameOf).reverse();
      return ranksIn(one.ranks).map((rank): Walker => ({ rank, frames, since: null }));
    });
}

function Stacks({ target, place }: ScreenProps) {
  const native = place.params["native"] === "1";
  const asked = usePolled(`${target} merged ${native}`, 2, (signal) => merged(target, native, signal));
  const told = asked.value;
  const main = mainName(told?.rows ?? []);
  const all = walkers(told?.rows ?? [], place.params["thread"] || main);
  const answered = told ? inState(told.coverage, "answered") : [];
  const known = new Set(all.map((one) => one.rank));
  const names = [...new Set((told?.rows ?? []).map((one) => one.thread))].filter((one) => one !== main && one !== MAIN).sort();
  return (
    <>
      <h1>Stacks of {plain(target, 80)}</h1>
      <div class="tools">
        <Switch label="native" on={native} set={(on) => set({ native: on ? "1" : "" })} hint="C and C++ frames, too; stops single threads for about 0.1 ms" />
      </div>
      <Trouble error={asked.error} />
      {!told && !asked.error && <Loading />}
      {told && <CoverageBar told={told.coverage} />}
      {told && <RankTree walkers={all} expected={told.coverage.expected} missing={answered.filter((rank) => !known.has(rank))} why="it has no such thread" names={names.slice(0, 60)} place={place} />}
    </>
  );
}

// ---- a cell for each rank ----

const CELLS = 2048;

interface Cell {
  colour: number;
  text: string;
}

/** By rank: where its main thread is; ranks with the same stack have the same colour. */
function cells(told: Merged | null): Map<number, Cell> {
  const rows = told?.rows ?? [];
  const main = mainName(rows);
  const mine = rows.filter((one) => one.thread === main);
  return new Map(mine.flatMap((one, i) => ranksIn(one.ranks).map((rank) => [rank, { colour: i % 8, text: one.frames[0]?.name ?? "" }] as const)));
}

function stateOf(rank: number, told: Coverage | undefined): string {
  return told ? (STATES.find((state) => inState(told, state).includes(rank)) ?? "") : "";
}

function RankCell({ job, one, cell, told, blamed }: { job: RankedJob; one: JobRank; cell: Cell | undefined; told: Coverage | undefined; blamed: boolean }) {
  const here = one.target ? watched(one.target) : undefined;
  const gone = cell ? "" : stateOf(one.rank, told);
  const to = one.target ?? jobTarget(job, String(one.rank));
  return (
    <li class={`group${cell?.colour ?? 7}` + (blamed || (gone && gone !== "answered") ? " standing" : "")}>
      <a href={link({ target: to, screen: "stacks" })} title={plain(one.refused ?? `process ${one.pid ?? "?"} on ${one.host ?? "?"}`, 120)}>
        <b>{one.rank}</b>
        <span>{cell ? plain(cell.text, 20) : gone || " "}</span>
        {here && <meter aria-label={`CPU of rank ${one.rank}`} min={0} max={1} value={Math.min(1, here.share ?? 0)} />}
      </a>
    </li>
  );
}

/** The ranks of each host in a row of its own, those that nobody reports last. */
function RankGrid({ job, told }: { job: RankedJob; told: Merged | null }) {
  const known = new Map(job.ranks.map((one) => [one.rank, one]));
  const size = Math.min(CELLS, sizeOf(job));
  const all = Array.from({ length: size }, (_, rank) => known.get(rank) ?? { rank, local_rank: null, pid: null, host: null, target: null, silent: false, gone: false, refused: "nobody reports this rank" });
  const hosts = [...new Set(all.map((one) => one.host))].sort((a, b) => Number(a === null) - Number(b === null));
  const where = cells(told);
  const blamed = new Set((verdictOf(job).hang?.cause ?? []).flatMap((part) => ranksIn(part.ranks)));
  return (
    <>
      <h2>
        Ranks <a href={link({ target: jobTarget(job), screen: "stacks" })}>their stacks in one tree</a>
      </h2>
      <div class="hosts">
        {hosts.map((host) => (
          <section>
            {hosts.length > 1 && <h3>{host === null ? "on no host that is known" : plain(host, 60)}</h3>}
            <ul class="ranks">
              {all
                .filter((one) => one.host === host)
                .map((one) => (
                  <RankCell key={one.rank} job={job} one={one} cell={where.get(one.rank)} told={told?.coverage} blamed={blamed.has(one.rank)} />
                ))}
            </ul>
          </section>
        ))}
      </div>
      {sizeOf(job) > CELLS && <p class="quiet">The first {CELLS} of {sizeOf(job)} ranks.</p>}
    </>
  );
}

function Overview({ target, job }: { target: string; job: RankedJob }) {
  useVerdicts(jobTarget(job));
  const asked = usePolled(`${target} merged`, 2, (signal) => merged(target, false, signal));
  const { hang } = verdictOf(job);
  const hung = hang?.hung;
  const fresh = asked.value?.coverage; // said apart where others answer than did for the verdict
  return (
    <>
      <h1 class={hung ? "bad" : ""}>
        {plain(jobTarget(job), 80)} {hung === undefined ? "" : hung ? "hangs" : "goes on"}
      </h1>
      <JobCard job={job} />
      <Trouble error={asked.error} />
      {fresh && fresh.answered !== hang?.coverage.answered && <CoverageBar told={fresh} />}
      {has("/jobs/{}/skills/{}") && <JobFindings job={job} target={target} shown={hang?.coverage ?? fresh} />}
      <RankGrid job={job} told={asked.value} />
    </>
  );
}

// ---- screens that are of one rank ----

/** What the list of ranks says: who is known, before any of them is asked. */
function listed(job: RankedJob): Coverage {
  const seen = new Set(job.ranks.map((one) => one.rank));
  const stateOf = (one: JobRank): State => (one.refused ? "failed" : one.gone ? "gone" : one.silent ? "silent" : "answered");
  const allIn = (wanted: State) => job.ranks.filter((one) => stateOf(one) === wanted);
  const ranksOf = (wanted: State): string => allIn(wanted).map((one) => one.rank).join();
  return {
    expected: sizeOf(job),
    answered: ranksOf("answered"),
    failed: allIn("failed").map((one) => ({ rank: one.rank, reason: one.refused })),
    missing: Array.from({ length: sizeOf(job) }, (_, rank) => rank).filter((rank) => !seen.has(rank)).join(),
    silent: ranksOf("silent"),
    gone: ranksOf("gone"),
    late: "",
    truncated: "",
  };
}

function OfOneRank({ job, place }: { job: RankedJob; place: Place }) {
  return (
    <>
      <h1>Which rank of {plain(jobTarget(job), 80)}?</h1>
      <CoverageBar told={listed(job)} />
      <p>This screen is of one rank:</p>
      <ul class="plainlist">
        {job.ranks.slice(0, CELLS).map((one) => (
          <li>
            {one.target ? <a href={link({ target: one.target, screen: place.screen })}>rank {one.rank}</a> : `rank ${one.rank}`}{" "}
            <span class="quiet">
              {plain(`process ${one.pid ?? "?"} on ${one.host ?? "?"}`, 100)}
              {!one.target && ", which a server on that machine shows"}
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}

export function JobScreen({ target, place }: ScreenProps) {
  useWatch();
  const job = jobOf(state.jobs, target);
  if (!job) return <Empty>No job {plain(target, 80)} is seen; when one of its ranks begins, it is here.</Empty>;
  if (place.screen === "overview") return <Overview target={target} job={job} />;
  if (place.screen === "stacks") return <Stacks target={target} place={place} />;
  if (place.screen === "profile" && has("/jobs/{}/profile")) return <JobProfile target={target} place={place} />;
  if (place.screen === "training" && has("/jobs/{}/query")) return <JobTraining target={target} job={job} place={place} />;
  if (place.screen === "memory" && has("/jobs/{}/query")) return <JobMemory target={target} job={job} place={place} />;
  return <OfOneRank job={job} place={place} />;
}
