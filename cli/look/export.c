/* probing export: what a job recorded, as a file for another program. */
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/fleet/job.h"
#include "cli/look/database.h"
#include "cli/options.h"
#include "cli/print/out.h"
#include "inject/control.h"

#define STEPS_MOST 1e6
#define RECORDING "probing.torch.profiling"
#define FIRST_STEP 10.0 /* s that it may take, where recording has just been turned on */
#define LOOK 0.1        /* s, between two looks whether it has rows */

enum { LAST, SECONDS, OUTPUT, FORMAT, JSON, RANKS, SUBPROCESSES };

static const struct prb_option options[] = {
    [LAST] = {'l', "last", "STEPS", "the last so many steps, 20 if not given", NULL},
    [SECONDS] = {'d', "duration", "SECONDS", "instead of steps: the last so many seconds", NULL},
    [OUTPUT] = {'o', "output", "FILE", "where to; - is standard output; a folder for tensorboard",
                NULL},
    [FORMAT] = {'f', "format", "FORMAT", "its format; if not given by the file's name, or perfetto",
                NULL},
    [JSON] = {0, "json", NULL, "the same as --format chrome", NULL},
    [RANKS] = PRB_OPTION_READ_RANKS,
    [SUBPROCESSES] = PRB_OPTION_READ_SUBPROCESSES,
    {0},
};

static bool format_at(size_t index, struct prb_file_format *out)
{
    const struct prb_export_format *format = prb_export_formats()[index];
    if (format)
        *out = (struct prb_file_format){format->name, format->doc, format->suffixes};
    return format;
}

static const struct prb_export_format *format_of(const struct prb_run *run, struct prb_error *err)
{
    const char *wanted = run->options[FORMAT].text, *path = run->options[OUTPUT].text;
    const struct prb_export_format *first = prb_export_formats()[0], *found;
    if (!wanted && run->options[JSON].count)
        wanted = "chrome";
    found = wanted ? prb_export_format_find(wanted)
            : path ? prb_export_format_of_file(path)
                   : first;
    if (found || !wanted)
        return found ? found : first;
    prb_usage_format(run, wanted, err);
    return NULL;
}

/* "steps-1234-20260131-120000.pftrace" */
static void choose_path(const struct prb_run *run, const struct prb_export_format *format,
                        const struct prb_export_options *wanted, char *out, size_t cap)
{
    const char *given = run->options[OUTPUT].text, *suffix = format->suffixes;
    char when[32] = "", pid[16] = "";
    time_t now = time(NULL);
    struct tm parts;
    if (given) {
        snprintf(out, cap, "%s", given);
        return;
    }
    if (wanted->pid)
        snprintf(pid, sizeof pid, "-%d", (int)wanted->pid);
    if (localtime_r(&now, &parts))
        strftime(when, sizeof when, "%Y%m%d-%H%M%S", &parts);
    snprintf(out, cap, "steps%s-%s%.*s", pid, when, (int)strcspn(suffix, " "), suffix);
}

/* Whose rows those are that do not say it: an ended process has only its own. */
static bool describe(const struct prb_database *database, struct prb_export_options *wanted,
                     struct prb_process_list **list, struct prb_error *err)
{
    if (!database->target)
        return true;
    wanted->pid = prb_target_info(database->target)->pid;
    if (prb_target_info(database->target)->kind != PRB_TARGET_PROCESS)
        return true;
    if (!(*list = prb_process_list(err)))
        return false;
    const struct prb_process *process = prb_process_find(*list, wanted->pid);
    if (process) {
        wanted->rank = process->rank;
        wanted->command = process->command;
    }
    return true;
}

static void report(const struct prb_export_format *format, const char *path,
                   const struct prb_exported *done)
{
    char text[600], more[120] = "";
    if (done->slices)
        snprintf(more, sizeof more, ", %zu slices", done->slices);
    if (done->values)
        snprintf(more + strlen(more), sizeof more - strlen(more), ", %zu values", done->values);
    if (done->arrows)
        snprintf(more + strlen(more), sizeof more - strlen(more), ", %zu arrows", done->arrows);
    snprintf(text, sizeof text, "%.300s: %s; %zu step%s of %zu process%s%s", path, format->doc,
             done->steps, done->steps == 1 ? "" : "s", done->processes,
             done->processes == 1 ? "" : "es", more);
    prb_out_note(text);
    if (done->left_out) {
        snprintf(text, sizeof text,
                 "%llu rows are left out: without a time, or too many for a file",
                 (unsigned long long)done->left_out);
        prb_out_note(text);
    }
}

PRB_DEFINE_AUTO_PTR(prb_control, struct prb_control, prb_control_close)

/* Whether a process's steps are recorded, so that the first of them is still to come. */
static bool records(pid_t pid)
{
    PRB_AUTO_FREE char *value = NULL;
    PRB_AUTO(prb_control)
    struct prb_control *control = pid ? prb_control_open(pid, NULL) : NULL;
    return control && prb_control_config_get(control, RECORDING, &value, NULL) &&
           strcasecmp(value, "off") != 0;
}

/* A job records from its next step on: who turned that on, and asks at once, is waited with for it. */
static bool write_when_there(struct prb_db *db, const struct prb_export_format *format,
                             const struct prb_export_options *wanted, const char *path,
                             struct prb_exported *done, struct prb_error *err)
{
    bool waits = false;
    for (double until = prb_clock_s() + FIRST_STEP;;) {
        if (prb_export_write(db, format, wanted, path, done, err))
            return true;
        if (err->code != PRB_NOT_FOUND || err->sys || (!waits && !records(wanted->pid)))
            return false;
        if (!waits)
            prb_out_note("recording is on: waiting for the first step");
        waits = true;
        if (prb_clock_s() >= until)
            return prb_cli_fail(err, PRB_NOT_FOUND, "ask again later",
                                "recording is on, and no step has ended in %.0f s", FIRST_STEP);
        prb_clock_sleep_until(prb_clock_s() + LOOK);
    }
}

static bool write_all(const struct prb_run *run, struct prb_db *db,
                      const struct prb_export_format *format,
                      const struct prb_export_options *wanted, struct prb_error *err)
{
    struct prb_exported done;
    char path[4096];
    choose_path(run, format, wanted, path, sizeof path);
    if (!write_when_there(db, format, wanted, path, &done, err))
        return false;
    if (done.note[0])
        prb_out_note(done.note);
    if (strcmp(path, "-") != 0)
        report(format, path, &done);
    return true;
}

PRB_DEFINE_AUTO_PTR(prb_db, struct prb_db, prb_db_close)

/* All ranks of a job, of all its hosts: each row says whose it is. */
static bool export_job(const struct prb_run *run, const struct prb_export_format *format,
                       const struct prb_export_options *wanted, struct prb_error *err)
{
    PRB_AUTO(prb_coverage) struct prb_coverage coverage = {0};
    PRB_AUTO(prb_fleet) struct prb_fleet *fleet = NULL;
    PRB_AUTO(prb_db) struct prb_db *db = prb_run_job_db(run, &fleet, &coverage, err);
    if (!db || !write_all(run, db, format, wanted, err) || !prb_run_covered(run, &coverage, err))
        return false;
    if (!prb_coverage_whole(&coverage))
        prb_out_coverage(&coverage);
    return true;
}

PRB_DEFINE_AUTO_PTR(prb_process_list, struct prb_process_list, prb_process_list_free)

static bool run_export(const struct prb_run *run, struct prb_error *err)
{
    struct prb_export_options wanted = {.rank = -1};
    double steps = 0;
    bool ranks = run->options[RANKS].count, subprocesses = run->options[SUBPROCESSES].count;
    const struct prb_export_format *format = format_of(run, err);
    if (!format || !prb_run_number(run, LAST, 1, STEPS_MOST, &steps, err) ||
        !prb_run_number(run, SECONDS, PRB_SECONDS_LEAST, PRB_SECONDS_MOST, &wanted.seconds, err))
        return false;
    if (steps > 0 && wanted.seconds > 0)
        return prb_usage(run, err, "--last and --duration exclude each other");
    wanted.steps = (unsigned)steps;
    if (prb_run_job(run) && !ranks && !subprocesses)
        return export_job(run, format, &wanted, err);
    PRB_AUTO(prb_database) struct prb_database database = {0};
    PRB_AUTO(prb_process_list) struct prb_process_list *list = NULL;
    return prb_database_open(run, ranks, subprocesses, &database, err) &&
           describe(&database, &wanted, &list, err) &&
           write_all(run, database.db, format, &wanted, err);
}

const struct prb_command prb_command_export = {
    .name = "export",
    .aliases = "",
    .summary = "the steps that a job recorded, as a timeline for Perfetto",
    .arguments = "",
    .target = PRB_USES_TARGET_IF_GIVEN,
    .description =
        "Writes what the tables of the target have of its last steps: steps and their phases, "
        "calls of modules by depth, collectives with an arrow from each rank to the one that began "
        "last, spans, and as values over time what was logged, memory and GPUs. It reads "
        "python.torch_step_timing, python.torch_trace, python.comm_collective, python.spans, "
        "python.steps, training_logs, memory_usage and gpu_metrics, whichever have rows.\n\n"
        "--format or the file's name says which format. tensorboard makes a folder, of all that "
        "was logged unless --last or --duration says less.\n\n"
        "With -t @JOB it is one timeline of all ranks of the job, of all its hosts, each by its "
        "host's clock; the status is 15 when not all ranks answered, and with --strict nothing is "
        "written then.",
    .options = options,
    .format = format_at,
    .examples = "probing 1234 export --last 20 -o steps.pftrace\n"
                "probing 1234 export --ranks --duration 5 -o steps.json\n"
                "probing -t @llama export -o llama.pftrace\n"
                "probing 1234 export --format tensorboard -o runs/1234\n",
    .run = run_export,
};
