/* See crashes.h. */
#include "cli/fleet/crashes.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "cli/fleet/job.h"
#include "cli/print/out.h"
#include "fleet/crashes.h"
#include "format/format.h"

#define PULLS_MAX 64                   /* dumps at a time */
#define PULL_BYTES ((uint64_t)1 << 30) /* in all */

struct listing {
    const struct prb_job_crashes *how;
    const struct prb_fleet_crashes *crashes;
    struct prb_row_writer *writer;
    char **pulled; /* of each crash, or NULL */
};

static bool put(void *context, const char *text, size_t length)
{
    (void)context;
    return fwrite(text, 1, length, stdout) == length;
}

static bool is_equal(const struct prb_fleet_crash *a, const struct prb_fleet_crash *b)
{
    return *a->group && strcmp(a->group, b->group) == 0;
}

/* The first of its group. */
static bool is_first(const struct prb_fleet_crashes *crashes, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (is_equal(&crashes->items[i], &crashes->items[index]))
            return false;
    return true;
}

/* ---- rows ---- */

static struct prb_value text_value(const char *text)
{
    return (struct prb_value){.type = PRB_TEXT, .text = text, .length = strlen(text)};
}

static struct prb_value int_value(bool known, int64_t number)
{
    return (struct prb_value){
        .type = known ? PRB_INTEGER : PRB_NULL_VALUE, .integer = number, .text = ""};
}

static void time_text(double time, char out[32])
{
    time_t seconds = (time_t)time;
    struct tm parts;
    if (!gmtime_r(&seconds, &parts) || !strftime(out, 32, "%Y-%m-%d %H:%M:%S", &parts))
        strcpy(out, "?");
}

static bool print_each(const struct listing *list)
{
    static const char *const names[] = {"time", "rank", "pid",   "title", "place",
                                        "host", "path", "bytes", "told",  "pulled"};
    size_t columns = list->pulled ? 10 : 9;
    bool good = prb_row_write(list->writer, columns, names, NULL);
    for (size_t i = 0; good && i < list->crashes->count; i++) {
        const struct prb_fleet_crash *one = &list->crashes->items[i];
        char when[32];
        time_text(one->time, when);
        const char *pulled = list->pulled ? list->pulled[i] : NULL;
        const struct prb_value row[] = {text_value(when),
                                        int_value(one->rank >= 0, one->rank),
                                        int_value(one->pid, one->pid),
                                        text_value(one->title),
                                        text_value(one->place),
                                        text_value(one->host),
                                        text_value(one->path),
                                        int_value(true, (int64_t)one->bytes),
                                        int_value(true, one->told),
                                        pulled ? text_value(pulled) : int_value(false, 0)};
        good = prb_row_write(list->writer, columns, names, row);
    }
    return good;
}

struct group {
    struct prb_rank_set ranks;
    int64_t count;
    bool told; /* all of it */
};

static bool add_up(const struct prb_fleet_crashes *crashes, size_t first, struct group *out)
{
    *out = (struct group){.told = true};
    for (size_t i = first; i < crashes->count; i++) {
        const struct prb_fleet_crash *one = &crashes->items[i];
        if (i != first && !is_equal(&crashes->items[first], one))
            continue;
        if (one->rank >= 0 && !prb_rank_set_add(&out->ranks, one->rank, one->rank))
            return false;
        out->count++;
        out->told = out->told && one->told;
    }
    return true;
}

static bool print_groups(const struct listing *list)
{
    static const char *const names[] = {"first", "count", "ranks", "title", "place",
                                        "host",  "path",  "bytes", "told",  "pulled"};
    size_t columns = list->pulled ? 10 : 9;
    bool good = prb_row_write(list->writer, columns, names, NULL);
    for (size_t i = 0; good && i < list->crashes->count; i++) {
        const struct prb_fleet_crash *one = &list->crashes->items[i];
        struct group group = {0};
        char when[32];
        if (!is_first(list->crashes, i))
            continue;
        good = add_up(list->crashes, i, &group);
        PRB_AUTO_FREE char *ranks = prb_rank_set_text(&group.ranks);
        time_text(one->time, when);
        const char *pulled = list->pulled ? list->pulled[i] : NULL;
        const struct prb_value row[] = {text_value(when),
                                        int_value(true, group.count),
                                        text_value(ranks ? ranks : ""),
                                        text_value(one->title),
                                        text_value(one->place),
                                        text_value(one->host),
                                        text_value(one->path),
                                        int_value(true, (int64_t)one->bytes),
                                        int_value(true, group.told),
                                        pulled ? text_value(pulled) : int_value(false, 0)};
        good = good && prb_row_write(list->writer, columns, names, row);
        prb_rank_set_deinit(&group.ranks);
    }
    return good;
}

/* ---- fetching ---- */

/* Of equal crashes one whose host answers, the earliest. */
static size_t choose(const struct prb_fleet_crashes *crashes, size_t first)
{
    for (size_t i = first; i < crashes->count; i++)
        if ((i == first || is_equal(&crashes->items[first], &crashes->items[i])) &&
            !crashes->items[i].told)
            return i;
    return first;
}

static void say_pull(const struct prb_run *run, const char *what, const struct prb_error *why)
{
    PRB_AUTO_FREE char *line = NULL;
    *run->status = prb_code_exit(PRB_PARTIAL);
    if (asprintf(&line, "not fetched: %s", why ? why->text : what) > 0)
        prb_out_note(line);
}

/* One of each group.  What does not come is said; the rest comes. */
static bool pull(const struct prb_run *run, struct prb_fleet *fleet, struct listing *list,
                 struct prb_error *err)
{
    const struct prb_fleet_crashes *crashes = list->crashes;
    uint64_t bytes = 0;
    unsigned count = 0;
    if (mkdir(list->how->pull, 0700) != 0 && errno != EEXIST)
        return prb_cli_fail(err, PRB_IO, "", "%s: %s", list->how->pull, strerror(errno));
    if (!(list->pulled = calloc(crashes->count + 1, sizeof *list->pulled)))
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    for (size_t i = 0; i < crashes->count; i++) {
        struct prb_error why = {0};
        bool there;
        if (!is_first(crashes, i))
            continue;
        const struct prb_fleet_crash *one = &crashes->items[choose(crashes, i)];
        if (count++ >= PULLS_MAX || bytes + one->bytes > PULL_BYTES) {
            say_pull(run, "the rest: so many are fetched at once, again fetches no more", NULL);
            break;
        }
        list->pulled[i] = prb_fleet_crash_pull(fleet, one, list->how->pull, &there, &why);
        if (!list->pulled[i])
            say_pull(run, NULL, &why);
        else
            bytes += one->bytes;
    }
    return true;
}

/* ---- all of it ---- */

static bool print(const struct prb_run *run, struct listing *list,
                  const struct prb_coverage *coverage, struct prb_error *err)
{
    const char *format = list->how->format ? list->how->format : "table";
    bool json = strcmp(format, "json") == 0;
    const struct prb_row_options options = {
        .write = put, .columns = prb_out_columns(), .color = prb_out_is_colored()};
    PRB_AUTO(prb_row_writer)
    struct prb_row_writer *writer = prb_row_writer_new(format, &options, err);
    if (!(list->writer = writer))
        return false;
    if (json)
        fputs("{\"rows\": ", stdout);
    if (!(list->how->all ? print_each(list) : print_groups(list)))
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    if (!prb_row_writer_end(writer, err))
        return false;
    if (json) {
        fputs(", \"coverage\": ", stdout);
        prb_coverage_json(coverage, stdout);
        fputs("}\n", stdout);
    } else if (coverage->count && !prb_coverage_whole(coverage)) {
        prb_out_coverage(coverage);
    }
    if (list->crashes->left_out) {
        char note[80];
        snprintf(note, sizeof note, "%zu older crash dumps are left out", list->crashes->left_out);
        prb_out_note(note);
    }
    (void)run;
    return true;
}

static void end(struct listing *list)
{
    for (size_t i = 0; list->pulled && i < list->crashes->count; i++)
        free(list->pulled[i]);
    free(list->pulled);
}

/* No agent knows the job any more. */
static bool print_told(const struct prb_run *run, const char *address,
                       const struct prb_job_crashes *how, const struct prb_error *why,
                       struct prb_error *err)
{
    PRB_AUTO(prb_fleet_crashes) struct prb_fleet_crashes crashes = {0};
    struct prb_coverage nobody = {0};
    struct prb_error none = {0};
    if (!prb_fleet_crashes_told(address, run->globals[PRB_GLOBAL_BUS].text, &crashes, &none)) {
        *err = *why;
        return false;
    }
    *run->status = prb_code_exit(PRB_PARTIAL);
    if (run->globals[PRB_GLOBAL_STRICT].count)
        return prb_cli_fail(err, PRB_PARTIAL, "",
                            "no host has ranks of this job any more; the bus remembers %zu crashes",
                            crashes.count);
    struct listing list = {.how = how, .crashes = &crashes};
    if (!print(run, &list, &nobody, err))
        return false;
    prb_out_note("no host has ranks of this job any more: these are what the bus remembers of "
                 "the last day");
    return true;
}

bool prb_job_crash_list(const struct prb_run *run, const struct prb_job_crashes *how,
                        struct prb_error *err)
{
    PRB_AUTO(prb_fleet_crashes) struct prb_fleet_crashes crashes = {0};
    PRB_AUTO(prb_coverage) struct prb_coverage coverage = {0};
    struct listing list = {.how = how, .crashes = &crashes};
    struct prb_error why = {0};
    const char *address = prb_run_job(run) ? prb_run_job(run) : "@";
    PRB_AUTO(prb_fleet) struct prb_fleet *fleet = prb_run_open_job_over(run, address, &why);
    if (!fleet && why.code == PRB_NOT_FOUND)
        return print_told(run, address, how, &why, err);
    if (!fleet) {
        *err = why;
        return false;
    }
    bool good = prb_fleet_crashes_take(fleet, &crashes, &coverage, err) &&
                prb_run_covered(run, &coverage, err) &&
                (!how->pull || pull(run, fleet, &list, err)) && print(run, &list, &coverage, err);
    end(&list);
    return good;
}
