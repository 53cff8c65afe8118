/* probing memory: how much memory processes have, what they may have, and how it changes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/fleet/job.h"
#include "cli/look/many.h"
#include "cli/look/watch.h"
#include "cli/options.h"
#include "cli/print/out.h"

#define WATCH_SECONDS 2.0
#define WATCH_LEAST 0.1
#define MB 1048576.0

PRB_DEFINE_AUTO_PTR(prb_db, struct prb_db, prb_db_close)

enum { WATCH, FORMAT, RANKS, SUBPROCESSES };

static const struct prb_option options[] = {
    [WATCH] = {'w', "watch", "[SECONDS]",
               "again every two seconds, or as often as this says, with what has changed", NULL},
    [FORMAT] = {'f', "format", "FORMAT", "the row of memory_usage as table, json, jsonl or csv",
                PRB_ROW_FORMATS},
    [RANKS] = PRB_OPTION_READ_RANKS,
    [SUBPROCESSES] = PRB_OPTION_READ_SUBPROCESSES,
    {0},
};

/* The columns of the statement, and of struct process below; NAN: NULL. */
enum { RESIDENT, OWN, FILES, SHARED, SWAP, PEAK, USED, LIMIT, NUMBERS };
#define COLUMNS "memory_mb, anon, file, shared, swap, peak, cgroup_used, cgroup_limit"
#define NEWEST(by) "WHERE timestamp > now() - 10 GROUP BY " by " HAVING max(timestamp)"
#define GPU "FROM gpu_processes " NEWEST("1, 2, 4") " ORDER BY 2"
/* The processes of this machine, and the ranks of a job, where a pid is one of its host. */
static const struct {
    const char *memory, *gpu, *rows;
} statements[] = {
    {"SELECT pid, rank, '', " COLUMNS " FROM memory_usage " NEWEST("pid") " ORDER BY rank, pid",
     "SELECT gpu_pid, gpu_id, memory_mb, '' " GPU, "SELECT * FROM memory_usage " NEWEST("pid")},
    {"SELECT pid, _rank, _host, " COLUMNS
     " FROM memory_usage " NEWEST("_rank, pid") " ORDER BY _rank, pid",
     "SELECT gpu_pid, gpu_id, memory_mb, _host " GPU,
     "SELECT * FROM memory_usage " NEWEST("_rank, pid")},
};

struct process {
    pid_t pid;
    char host[80];           /* of a job's rank */
    int rank;                /* -1: none */
    double numbers[NUMBERS]; /* MB */
    double first;            /* its resident memory when the command began to watch */
    double gpu;              /* of all GPUs; NAN: none, or not known */
};

struct view {
    struct prb_db *db;
    bool job; /* the ranks of a job */
    bool watch;
    double begin; /* s, monotonic: of the first screen */
    struct process *processes;
    size_t count;
    bool failed;
};

static double number_of(const struct prb_value *value)
{
    return value->type == PRB_REAL      ? value->real
           : value->type == PRB_INTEGER ? (double)value->integer
                                        : NAN;
}

static const char *text_of(const struct prb_value *value)
{
    return value->type == PRB_TEXT ? value->text : "";
}

static struct process *find(struct view *view, pid_t pid, const char *host)
{
    for (size_t i = 0; i < view->count; i++)
        if (view->processes[i].pid == pid && strcmp(view->processes[i].host, host) == 0)
            return &view->processes[i];
    return NULL;
}

static bool take_row(void *context, size_t columns, const char *const *names,
                     const struct prb_value *row)
{
    struct view *view = context;
    (void)columns, (void)names;
    if (!row)
        return true;
    struct process *process = find(view, (pid_t)row[0].integer, text_of(&row[2]));
    bool known = process != NULL;
    if (!known) {
        struct process *more =
            realloc(view->processes, (view->count + 1) * sizeof *view->processes);
        if (!more) {
            view->failed = true;
            return false;
        }
        view->processes = more;
        process = &more[view->count++];
        *process = (struct process){.pid = (pid_t)row[0].integer};
        snprintf(process->host, sizeof process->host, "%s", text_of(&row[2]));
    }
    process->rank = row[1].type == PRB_INTEGER ? (int)row[1].integer : -1;
    process->gpu = NAN;
    for (size_t i = 0; i < NUMBERS; i++)
        process->numbers[i] = number_of(&row[3 + i]);
    if (!known)
        process->first = process->numbers[RESIDENT];
    return true;
}

static bool take_gpu(void *context, size_t columns, const char *const *names,
                     const struct prb_value *row)
{
    struct process *process = row ? find(context, (pid_t)row[0].integer, text_of(&row[3])) : NULL;
    (void)columns, (void)names;
    if (process && row[2].type == PRB_REAL)
        process->gpu = (isnan(process->gpu) ? 0 : process->gpu) + row[2].real;
    return true;
}

/* ---- a screen ---- */

static bool add_mb(struct prb_grid *grid, double mb)
{
    char text[32] = "";
    if (!isnan(mb))
        prb_out_bytes(text, sizeof text, mb * MB);
    return prb_grid_add(grid, text, strlen(text), true);
}

static bool add_change(struct prb_grid *grid, double mb)
{
    char bytes[32], text[40];
    prb_out_bytes(bytes, sizeof bytes, fabs(mb) * MB);
    snprintf(text, sizeof text, "%s%s", mb < 0 ? "-" : "+", bytes);
    return prb_grid_add(grid, text, strlen(text), true);
}

static bool add_limit(struct prb_grid *grid, double used, double limit)
{
    char of[32], text[64] = "";
    if (!isnan(limit) && limit > 0 && !isnan(used)) {
        prb_out_bytes(of, sizeof of, limit * MB);
        snprintf(text, sizeof text, "%.0f %% of %s", 100 * used / limit, of);
    }
    return prb_grid_add(grid, text, strlen(text), true);
}

/* Which columns are shown beyond those that every process has. */
struct shown {
    bool host, rank, gpu, limit;
};

static struct shown what_is_known(const struct view *view)
{
    struct shown shown = {0};
    for (size_t i = 0; i < view->count; i++) {
        shown.host |= strcmp(view->processes[i].host, view->processes[0].host) != 0;
        shown.rank |= view->processes[i].rank >= 0;
        shown.gpu |= !isnan(view->processes[i].gpu);
        shown.limit |= !isnan(view->processes[i].numbers[LIMIT]);
    }
    return shown;
}

static bool add_process(struct prb_grid *grid, const struct view *view, const struct shown *shown,
                        const struct process *process, double seconds)
{
    char number[16] = "";
    bool good = prb_grid_addf(grid, "%d", (int)process->pid);
    if (process->rank >= 0)
        snprintf(number, sizeof number, "%d", process->rank);
    if (shown->host)
        good = good && prb_grid_adds(grid, process->host);
    if (shown->rank)
        good = good && prb_grid_add(grid, number, strlen(number), true);
    for (size_t i = RESIDENT; i <= PEAK; i++)
        good = good && add_mb(grid, process->numbers[i]);
    if (shown->limit)
        good = good && add_limit(grid, process->numbers[USED], process->numbers[LIMIT]);
    if (shown->gpu)
        good = good && add_mb(grid, process->gpu);
    if (view->watch) {
        double change = process->numbers[RESIDENT] - process->first;
        good = good && add_change(grid, change) &&
               add_change(grid, seconds > 0 ? change * 60 / seconds : 0);
    }
    return good;
}

static struct prb_grid *make_grid(const struct view *view, const struct shown *shown)
{
    const char *names[16] = {"pid"};
    size_t count = 1;
    if (shown->host)
        names[count++] = "host";
    if (shown->rank)
        names[count++] = "rank";
    static const char *const numbers[] = {"resident", "own", "files", "shared", "swap", "peak"};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        names[count++] = numbers[i];
    if (shown->limit)
        names[count++] = "group";
    if (shown->gpu)
        names[count++] = "gpu";
    if (view->watch) {
        names[count++] = "change";
        names[count++] = "a minute";
    }
    return prb_grid_new(names, count);
}

static bool draw(void *context, FILE *out, struct prb_error *err)
{
    struct view *view = context;
    struct prb_error no_gpu = {0};
    double now = prb_clock_s();
    if (!prb_db_query(view->db, statements[view->job].memory, take_row, view, err))
        return view->failed ? prb_cli_fail(err, PRB_NOMEM, "", "out of memory") : false;
    if (!prb_db_query(view->db, statements[view->job].gpu, take_gpu, view, &no_gpu))
        prb_out_note(no_gpu.text);
    if (view->begin <= 0)
        view->begin = now;
    struct shown shown = what_is_known(view);
    PRB_AUTO(prb_grid) struct prb_grid *grid = make_grid(view, &shown);
    bool good = grid != NULL;
    for (size_t i = 0; good && i < view->count; i++)
        good = add_process(grid, view, &shown, &view->processes[i], now - view->begin);
    if (!good)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    prb_grid_print(grid, out, prb_out_columns(), prb_out_is_colored());
    return true;
}

/* ---- the command ---- */

static bool show(const struct prb_run *run, struct prb_db *db, pid_t pid, double seconds,
                 struct prb_error *err)
{
    struct view view = {.db = db, .watch = seconds > 0};
    (void)run;
    bool good = seconds > 0 ? prb_watch(pid, seconds, draw, &view, err) : draw(&view, stdout, err);
    free(view.processes);
    return good;
}

static bool of_job(const struct prb_run *run, double seconds, struct prb_error *err)
{
    PRB_AUTO(prb_coverage) struct prb_coverage coverage = {0};
    PRB_AUTO(prb_fleet) struct prb_fleet *fleet = NULL;
    PRB_AUTO(prb_db) struct prb_db *db = prb_run_job_db(run, &fleet, &coverage, err);
    struct view view = {.db = db, .job = true, .watch = seconds > 0};
    bool good =
        db && (seconds > 0 ? prb_watch(0, seconds, draw, &view, err) : draw(&view, stdout, err));
    free(view.processes);
    if (!good || !prb_run_covered(run, &coverage, err))
        return false;
    prb_out_coverage(&coverage);
    return true;
}

static bool run_memory(const struct prb_run *run, struct prb_error *err)
{
    bool ranks = run->options[RANKS].count, subprocesses = run->options[SUBPROCESSES].count;
    double seconds = run->options[WATCH].count ? WATCH_SECONDS : 0; /* 0: once */
    if (!prb_run_number(run, WATCH, WATCH_LEAST, PRB_SECONDS_MOST, &seconds, err))
        return false;
    if (run->options[FORMAT].count) {
        if (seconds > 0)
            return prb_usage(run, err, "--format prints once: leave out --watch");
        bool job = prb_run_job(run) && !ranks && !subprocesses;
        return prb_query_print_of(run, statements[job].rows, run->options[FORMAT].text, ranks,
                                  subprocesses, false, err);
    }
    if (prb_run_job(run) && !ranks && !subprocesses)
        return of_job(run, seconds, err);
    if (ranks || subprocesses) {
        PRB_AUTO(prb_many) struct prb_many *many = prb_many_open(run, ranks, subprocesses, err);
        PRB_AUTO(prb_db) struct prb_db *db = many ? prb_many_db(many, err) : NULL;
        return db && show(run, db, 0, seconds, err);
    }
    PRB_AUTO(prb_target) struct prb_target *target = prb_run_open(run, err);
    PRB_AUTO(prb_db) struct prb_db *db = target ? prb_db_open(target, err) : NULL;
    return db && show(run, db, prb_target_info(target)->pid, seconds, err);
}

const struct prb_command prb_command_memory = {
    .name = "memory",
    .aliases = "mem",
    .summary = "how much memory the process has, and may have",
    .arguments = "",
    .target = PRB_USES_TARGET,
    .description =
        "Resident memory and what it is made of: own (heaps and stacks), files (libraries and "
        "mapped data), shared (memory that worker processes share); what is swapped out, and the "
        "most that was resident. Where its control group limits memory: how much of the limit is "
        "used, by all processes of the group. On NVIDIA's GPUs what the driver says that the "
        "process has.\n\n"
        "--watch shows how resident memory changes from the first screen on, and how much that is "
        "a minute. Which types of objects grow: `probing query \"SELECT * FROM "
        "python.objects_diff(10)\"`.\n\n"
        "The same as rows: the tables memory_usage, system.cgroup, gpu_metrics and gpu_processes.",
    .options = options,
    .examples = "probing 12345 memory --watch\n"
                "probing 12345 memory --ranks  # of all ranks of the job on this host\n"
                "probing -t @ memory  # of all ranks on all its hosts\n",
    .run = run_memory,
};
