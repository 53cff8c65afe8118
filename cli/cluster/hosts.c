/* probing cluster jobs, nodes, ranks: who is on the bus. */
#include <stdio.h>
#include <string.h>

#include "cli/cluster/cluster.h"
#include "cli/print/out.h"
#include "format/format.h"

PRB_DEFINE_AUTO(prb_cluster_hosts, struct prb_cluster_hosts, prb_cluster_hosts_deinit)

#define CELLS_MAX 8

static const char user[] = "user";

/* Where rows go: to a table for people, or, with --format, as rows of SQL do. */
struct listing {
    struct prb_grid *grid;
    struct prb_row_writer *writer;
    const char *const *names;
    struct prb_value row[CELLS_MAX];
    size_t columns, cells;
    bool failed;
};

static bool put(void *context, const char *text, size_t length)
{
    (void)context;
    return fwrite(text, 1, length, stdout) == length;
}

static bool begin(struct listing *listing, const struct prb_run *run, const char *const *names,
                  size_t columns, struct prb_error *err)
{
    const char *format = run->options[PRB_CLUSTER_FORMAT].text;
    const struct prb_row_options options = {
        .write = put, .columns = prb_out_columns(), .color = prb_out_is_colored()};
    listing->names = names;
    listing->columns = columns;
    if (format && strcmp(format, "table") != 0) {
        listing->writer = prb_row_writer_new(format, &options, err);
        return listing->writer && prb_row_write(listing->writer, columns, names, NULL);
    }
    listing->grid = prb_grid_new(names, columns);
    return listing->grid || prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
}

static void add(struct listing *listing, const struct prb_value *value)
{
    listing->row[listing->cells++] = *value;
    if (listing->cells < listing->columns)
        return;
    listing->cells = 0;
    listing->failed |=
        !prb_row_write(listing->writer, listing->columns, listing->names, listing->row);
}

static void add_text(struct listing *listing, const char *text)
{
    const struct prb_value value = {.type = PRB_TEXT, .text = text, .length = strlen(text)};
    if (listing->grid)
        listing->failed |= !prb_grid_adds(listing->grid, text);
    else
        add(listing, &value);
}

static void add_number(struct listing *listing, int number)
{
    const struct prb_value value = {.type = PRB_INTEGER, .integer = number, .text = ""};
    if (listing->grid)
        listing->failed |= !prb_grid_addf(listing->grid, "%d", number);
    else
        add(listing, &value);
}

/* NULL where it is not known. */
static void add_real(struct listing *listing, bool known, double number)
{
    const struct prb_value value = {
        .type = known ? PRB_REAL : PRB_NULL_VALUE, .real = number, .text = ""};
    add(listing, &value);
}

static bool end(struct listing *listing, struct prb_error *err)
{
    bool good = !listing->failed || prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    if (good && listing->grid)
        prb_grid_print(listing->grid, stdout, prb_out_columns(), prb_out_is_colored());
    else if (good)
        good = prb_row_writer_end(listing->writer, err);
    prb_grid_free(listing->grid);
    prb_row_writer_free(listing->writer);
    return good;
}

static bool same_job(const struct prb_fleet_member *a, const struct prb_fleet_member *b)
{
    return strcmp(a->job, b->job) == 0 && a->uid == b->uid;
}

/* "0-3,7" of a host; which may be none. */
static char *ranks_of(const struct prb_cluster_host *host, const struct prb_fleet_member *of)
{
    PRB_AUTO(prb_rank_set) struct prb_rank_set ranks = {0};
    for (size_t i = 0; i < host->count; i++)
        if (host->members[i].ended <= 0 && (!of || same_job(&host->members[i], of)))
            prb_rank_set_add(&ranks, host->members[i].rank, host->members[i].rank);
    return prb_rank_set_text(&ranks);
}

static const char *state_of(const struct prb_cluster_host *host)
{
    return host->silent ? "silent" : "answers";
}

static bool nodes(const struct prb_run *run, const struct prb_cluster_hosts *hosts,
                  struct prb_error *err)
{
    static const char *const shown[] = {"host", "state", "release", "pid", "clock", "ranks"};
    static const char *const names[] = {"host",  "state",        "release",    "pid",
                                        "ranks", "clock_offset", "clock_error"};
    const char *format = run->options[PRB_CLUSTER_FORMAT].text;
    bool grid = !format || strcmp(format, "table") == 0;
    struct listing list = {0};
    if (!begin(&list, run, grid ? shown : names, grid ? 6 : 7, err))
        return false;
    for (size_t i = 0; i < hosts->count; i++) {
        const struct prb_cluster_host *one = &hosts->items[i];
        PRB_AUTO_FREE char *ranks = ranks_of(one, NULL);
        char clock[64] = "";
        if (!one->silent)
            snprintf(clock, sizeof clock, "%+.3f s ± %.3f", one->clock, one->clock_error);
        add_text(&list, one->host);
        add_text(&list, state_of(one));
        add_text(&list, one->release);
        add_number(&list, one->pid);
        if (grid)
            add_text(&list, clock);
        add_text(&list, ranks ? ranks : "");
        if (grid)
            continue;
        add_real(&list, !one->silent, one->clock);
        add_real(&list, !one->silent, one->clock_error);
    }
    return end(&list, err);
}

/* The column with the user is left out of the table where all ranks are of one. */
static size_t columns_of(const struct prb_run *run, const struct prb_cluster_hosts *hosts,
                         size_t columns)
{
    const char *format = run->options[PRB_CLUSTER_FORMAT].text;
    const struct prb_fleet_member *first = NULL;
    for (size_t i = 0; i < hosts->count; i++)
        for (size_t k = 0; k < hosts->items[i].count; k++) {
            first = first ? first : &hosts->items[i].members[k];
            if (hosts->items[i].members[k].uid != first->uid)
                return columns;
        }
    return format && strcmp(format, "table") != 0 ? columns : columns - 1;
}

static void add_user(struct listing *list, uid_t uid)
{
    if (list->names[list->columns - 1] == user)
        add_number(list, (int)uid);
}

static bool ranks(const struct prb_run *run, const struct prb_cluster_hosts *hosts,
                  struct prb_error *err)
{
    static const char *const names[] = {"job", "rank", "host", "pid", "state", user};
    struct listing list = {0};
    if (!begin(&list, run, names, columns_of(run, hosts, sizeof names / sizeof *names), err))
        return false;
    for (size_t i = 0; i < hosts->count; i++) {
        const struct prb_cluster_host *host = &hosts->items[i];
        for (size_t k = 0; k < host->count; k++) {
            const struct prb_fleet_member *one = &host->members[k];
            add_text(&list, one->job);
            add_number(&list, one->rank);
            add_text(&list, host->host);
            add_number(&list, (int)one->pid);
            add_text(&list, one->refused[0]  ? one->refused
                            : one->ended > 0 ? "gone"
                                             : state_of(host));
            add_user(&list, one->uid);
        }
    }
    return end(&list, err);
}

/* Of a job's ranks that run: one all of whose ranks have ended is none that can be asked. */
static bool is_first(const struct prb_cluster_hosts *hosts, size_t host, size_t member)
{
    const struct prb_fleet_member *of = &hosts->items[host].members[member];
    if (of->ended > 0)
        return false;
    for (size_t i = 0; i <= host; i++)
        for (size_t k = 0; k < (i == host ? member : hosts->items[i].count); k++)
            if (same_job(&hosts->items[i].members[k], of) && hosts->items[i].members[k].ended <= 0)
                return false;
    return true;
}

static void add_job(struct listing *list, const struct prb_cluster_hosts *hosts,
                    const struct prb_fleet_member *of)
{
    PRB_AUTO(prb_rank_set) struct prb_rank_set all = {0};
    char name[140];
    int world = -1, on = 0;
    for (size_t i = 0; i < hosts->count; i++) {
        bool here = false;
        for (size_t k = 0; k < hosts->items[i].count; k++) {
            const struct prb_fleet_member *one = &hosts->items[i].members[k];
            if (!same_job(one, of) || one->ended > 0)
                continue;
            here = true;
            world = one->world_size > world ? one->world_size : world;
            prb_rank_set_add(&all, one->rank, one->rank);
        }
        on += here;
    }
    PRB_AUTO_FREE char *text = prb_rank_set_text(&all);
    snprintf(name, sizeof name, "@%s", of->job);
    add_text(list, name);
    add_number(list, world);
    add_number(list, on);
    add_text(list, text ? text : "");
    add_user(list, of->uid);
}

static bool jobs(const struct prb_run *run, const struct prb_cluster_hosts *hosts,
                 struct prb_error *err)
{
    static const char *const names[] = {"job", "ranks", "hosts", "known", user};
    struct listing list = {0};
    if (!begin(&list, run, names, columns_of(run, hosts, sizeof names / sizeof *names), err))
        return false;
    for (size_t i = 0; i < hosts->count; i++)
        for (size_t k = 0; k < hosts->items[i].count; k++)
            if (is_first(hosts, i, k))
                add_job(&list, hosts, &hosts->items[i].members[k]);
    return end(&list, err);
}

bool prb_cli_cluster_hosts(const struct prb_run *run, struct prb_error *err)
{
    PRB_AUTO(prb_cluster_hosts) struct prb_cluster_hosts hosts = {0};
    if (!prb_cluster_hosts(run->globals[PRB_GLOBAL_BUS].text, &hosts, err))
        return false;
    return strcmp(run->arguments[0], "nodes") == 0   ? nodes(run, &hosts, err)
           : strcmp(run->arguments[0], "ranks") == 0 ? ranks(run, &hosts, err)
                                                     : jobs(run, &hosts, err);
}

bool prb_cli_cluster_print_own(struct prb_error *err)
{
    PRB_AUTO(prb_cluster_hosts) struct prb_cluster_hosts own = {0};
    if (!prb_cluster_own(&own, err))
        return false;
    for (size_t i = 0; i < own.items[0].count; i++) {
        if (!is_first(&own, 0, i))
            continue;
        PRB_AUTO_FREE char *text = ranks_of(&own.items[0], &own.items[0].members[i]);
        fputs(text && text[strspn(text, "0123456789")] ? "ranks " : "rank ", stdout);
        fputs(text ? text : "", stdout);
        fputs(" of @", stdout);
        prb_out_text(stdout, own.items[0].members[i].job);
        putchar('\n');
    }
    if (!own.items[0].count)
        puts("no rank runs here yet");
    return true;
}
