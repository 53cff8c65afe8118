/* probing snapshot: save the memory that decoding a target reads, to use it later or elsewhere. */
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <string.h>

#include "cli/fleet/job.h"
#include "cli/look/many.h"
#include "cli/print/out.h"
#include "fleet/objects.h"

enum { NATIVE, LOCALS, STOP, JSON, RANKS, SUBPROCESSES };

static const struct prb_option options[] = {
    [NATIVE] = {0, "native", NULL, "with registers and native stacks of all threads", NULL},
    [LOCALS] = {'l', "locals", NULL, "with what the values of local variables need", NULL},
    [STOP] = {0, "stop", NULL,
              "stop the Python threads meanwhile, so that all of it is from one moment", NULL},
    [JSON] = {'j', "json", NULL, "JSON: an object for each file", NULL},
    [RANKS] = PRB_OPTION_READ_RANKS,
    [SUBPROCESSES] = PRB_OPTION_READ_SUBPROCESSES,
    {0},
};

static void print_json(const char *path, uint64_t bytes, size_t moved)
{
    json_t *object = json_pack("{s:s, s:I, s:I}", "path", path, "bytes", (json_int_t)bytes, "moved",
                               (json_int_t)moved);
    if (object)
        json_dumpf(object, stdout, JSON_COMPACT);
    else
        fputs("{\"path\": null}", stdout); /* no UTF-8 */
    fputc('\n', stdout);
    json_decref(object);
}

static bool write_one(const struct prb_run *run, struct prb_target *target, const char *path,
                      struct prb_error *err)
{
    const struct prb_snapshot_options wanted = {
        .native = run->options[NATIVE].count,
        .locals = run->options[LOCALS].count,
        .stop = run->options[STOP].count,
    };
    size_t moved = 0;
    uint64_t bytes = 0;
    if (!prb_snapshot_write(target, path, &wanted, &bytes, &moved, err))
        return false;
    if (run->options[JSON].count) {
        print_json(path, bytes, moved);
        return true;
    }
    prb_out_text(stdout, path);
    char size[16];
    prb_out_bytes(size, sizeof size, (double)bytes);
    printf(": %s\n", size);
    if (moved)
        printf(
            "%zu threads went on while they were copied: their stacks may mix two moments (--stop "
            "keeps them still)\n",
            moved);
    return true;
}

/* stuck.snap of rank 3 is stuck.rank3.snap; the pid stands there where that does not tell. */
static char *path_of(const char *path, const struct prb_many *many, size_t index)
{
    const struct prb_one *one = &many->items[index];
    const char *name = strrchr(path, '/'), *dot = strrchr(name ? name : path, '.');
    int stem = dot && dot > (name ? name + 1 : path) ? (int)(dot - path) : (int)strlen(path);
    bool first = !index || many->items[index - 1].rank != one->rank;
    char rank[24] = "", pid[24] = "";
    char *text;
    if (one->rank >= 0)
        snprintf(rank, sizeof rank, ".rank%d", one->rank);
    if (one->rank < 0 || !first)
        snprintf(pid, sizeof pid, ".%d", (int)one->pid);
    return asprintf(&text, "%.*s%s%s%s", stem, path, rank, pid, path + stem) < 0 ? NULL : text;
}

/* One that ended meanwhile is left out with a note; the last error counts when all are. */
static bool write_many(const struct prb_run *run, struct prb_error *err)
{
    struct prb_error why = {0};
    size_t written = 0;
    PRB_AUTO(prb_many)
    struct prb_many *many =
        prb_many_open(run, run->options[RANKS].count, run->options[SUBPROCESSES].count, err);
    if (!many)
        return false;
    for (size_t i = 0; i < many->count; i++) {
        PRB_AUTO_FREE char *path = path_of(run->arguments[0], many, i);
        if (!path)
            return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
        if (write_one(run, many->items[i].target, path, &why))
            written++;
        else
            prb_many_left_out(&many->items[i], &why);
    }
    if (!written)
        *err = why;
    return written;
}

/* ---- the ranks of a job: files on their hosts ---- */

static char *job_args(const struct prb_run *run)
{
    const char *path = run->arguments[0];
    char here[PATH_MAX];
    PRB_AUTO_FREE char *whole = NULL;
    if (*path != '/' && getcwd(here, sizeof here) && asprintf(&whole, "%s/%s", here, path) >= 0)
        path = whole;
    json_t *args =
        json_pack("{s:s, s:b, s:b, s:b}", "path", path, "native", run->options[NATIVE].count > 0,
                  "locals", run->options[LOCALS].count > 0, "stop", run->options[STOP].count > 0);
    char *text = args ? json_dumps(args, JSON_COMPACT) : NULL;
    json_decref(args);
    return text;
}

/* As every answer of a job: rows, and who answered. */
static void print_job_json(const struct prb_rank_objects *objects,
                           const struct prb_coverage *coverage)
{
    fputs("{\"rows\": ", stdout);
    prb_rank_objects_json(objects, stdout);
    fputs(",\n\"coverage\": ", stdout);
    prb_coverage_json(coverage, stdout);
    fputs("}\n", stdout);
}

static bool write_job(const struct prb_run *run, struct prb_error *err)
{
    PRB_AUTO_FREE char *args = job_args(run);
    PRB_AUTO(prb_fleet) struct prb_fleet *fleet = prb_run_open_job(run, err);
    PRB_AUTO(prb_coverage) struct prb_coverage coverage = {0};
    PRB_AUTO(prb_rank_objects) struct prb_rank_objects objects = {0};
    if (fleet && !args)
        return prb_cli_fail(err, PRB_USAGE, "", "the path is not UTF-8");
    if (!fleet || !prb_fleet_ask(fleet, "snapshot", args, &objects, &coverage, err) ||
        !prb_run_covered(run, &coverage, err))
        return false;
    prb_rank_objects_sort(&objects);
    if (run->options[JSON].count) {
        print_job_json(&objects, &coverage);
        return true;
    }
    for (size_t i = 0; i < objects.count; i++) {
        const json_t *one = json_array_get(objects.items[i].list, 0);
        const char *path = json_string_value(json_object_get(one, "path"));
        json_int_t moved = json_integer_value(json_object_get(one, "moved"));
        char size[16];
        prb_out_bytes(size, sizeof size, (double)json_integer_value(json_object_get(one, "bytes")));
        printf("rank %d (", objects.items[i].rank);
        prb_out_text(stdout, objects.items[i].host);
        fputs("): ", stdout);
        prb_out_text(stdout, path ? path : "?");
        printf(": %s\n", size);
        if (moved > 0)
            printf("  %lld threads went on while they were copied (--stop keeps them still)\n",
                   (long long)moved);
    }
    prb_out_coverage(&coverage);
    return true;
}

static bool run_snapshot(const struct prb_run *run, struct prb_error *err)
{
    if (prb_run_job(run) && !run->options[RANKS].count && !run->options[SUBPROCESSES].count)
        return write_job(run, err);
    if (run->options[RANKS].count || run->options[SUBPROCESSES].count)
        return write_many(run, err);
    PRB_AUTO(prb_target) struct prb_target *target = prb_run_open(run, err);
    return target && write_one(run, target, run->arguments[0], err);
}

const struct prb_command prb_command_snapshot = {
    .name = "snapshot",
    .aliases = "",
    .summary = "save stacks and what they need to a small file",
    .arguments = "FILE",
    .arguments_min = 1,
    .arguments_max = 1,
    .target = PRB_USES_TARGET,
    .description =
        "Writes the memory that the other commands read, and the texts of /proc, to FILE: a core "
        "file of some megabytes "
        "that `probing -t FILE` (and gdb) opens on any machine, long after the process ended. "
        "With --ranks or --subprocesses each process has a file of its own: FILE with .rank0 (or "
        "its pid) before the suffix. With -t @JOB the files are on the hosts of the ranks; on "
        "other hosts than this one it needs their agents to allow control.",
    .options = options,
    .examples = "probing 12345 snapshot stuck.snap --locals --native\n"
                "probing -t @ snapshot /tmp/stuck.snap  # a file for each rank of the job\n"
                "probing -t stuck.snap backtrace --locals\n",
    .run = run_snapshot,
};
