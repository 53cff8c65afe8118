/* probing cluster jobs, nodes, ranks: who is on the bus. */
#include <stdio.h>
#include <string.h>

#include "cli/cluster/cluster.h"
#include "cli/print/out.h"

PRB_DEFINE_AUTO(prb_cluster_hosts, struct prb_cluster_hosts, prb_cluster_hosts_deinit)

static bool print_grid(struct prb_grid *grid, bool good, struct prb_error *err)
{
    if (!good)
        return prb_cli_fail(err, PRB_NOMEM, "", "out of memory");
    prb_grid_print(grid, stdout, prb_out_columns(), prb_out_is_colored());
    return true;
}

/* "0-3,7" of a host; which may be none. */
static char *ranks_of(const struct prb_cluster_host *host, const char *job)
{
    PRB_AUTO(prb_rank_set) struct prb_rank_set ranks = {0};
    for (size_t i = 0; i < host->count; i++)
        if (host->members[i].ended <= 0 && (!job || strcmp(host->members[i].job, job) == 0))
            prb_rank_set_add(&ranks, host->members[i].rank, host->members[i].rank);
    return prb_rank_set_text(&ranks);
}

static const char *state_of(const struct prb_cluster_host *host)
{
    return host->silent ? "silent" : "answers";
}

static bool nodes(const struct prb_cluster_hosts *hosts, struct prb_error *err)
{
    static const char *const names[] = {"host", "state", "release", "pid", "clock", "ranks"};
    PRB_AUTO(prb_grid)
    struct prb_grid *grid = prb_grid_new(names, sizeof names / sizeof *names);
    bool good = grid != NULL;
    for (size_t i = 0; i < hosts->count && good; i++) {
        const struct prb_cluster_host *one = &hosts->items[i];
        PRB_AUTO_FREE char *ranks = ranks_of(one, NULL);
        good =
            prb_grid_adds(grid, one->host) && prb_grid_adds(grid, state_of(one)) &&
            prb_grid_adds(grid, one->release) && prb_grid_addf(grid, "%d", one->pid) &&
            (one->silent ? prb_grid_adds(grid, "")
                         : prb_grid_addf(grid, "%+.3f s ± %.3f", one->clock, one->clock_error)) &&
            prb_grid_adds(grid, ranks ? ranks : "");
    }
    return print_grid(grid, good, err);
}

static bool ranks(const struct prb_cluster_hosts *hosts, struct prb_error *err)
{
    static const char *const names[] = {"job", "rank", "host", "pid", "state"};
    PRB_AUTO(prb_grid)
    struct prb_grid *grid = prb_grid_new(names, sizeof names / sizeof *names);
    bool good = grid != NULL;
    for (size_t i = 0; i < hosts->count && good; i++) {
        const struct prb_cluster_host *host = &hosts->items[i];
        for (size_t k = 0; k < host->count && good; k++) {
            const struct prb_fleet_member *one = &host->members[k];
            good = prb_grid_adds(grid, one->job) && prb_grid_addf(grid, "%d", one->rank) &&
                   prb_grid_adds(grid, host->host) && prb_grid_addf(grid, "%d", (int)one->pid) &&
                   prb_grid_adds(grid, one->refused[0]  ? one->refused
                                       : one->ended > 0 ? "gone"
                                                        : state_of(host));
        }
    }
    return print_grid(grid, good, err);
}

static bool is_first(const struct prb_cluster_hosts *hosts, size_t host, size_t member)
{
    const char *job = hosts->items[host].members[member].job;
    for (size_t i = 0; i <= host; i++)
        for (size_t k = 0; k < (i == host ? member : hosts->items[i].count); k++)
            if (strcmp(hosts->items[i].members[k].job, job) == 0)
                return false;
    return true;
}

static bool add_job(struct prb_grid *grid, const struct prb_cluster_hosts *hosts, const char *job)
{
    PRB_AUTO(prb_rank_set) struct prb_rank_set all = {0};
    unsigned on = 0;
    int world = -1;
    for (size_t i = 0; i < hosts->count; i++) {
        bool here = false;
        for (size_t k = 0; k < hosts->items[i].count; k++) {
            const struct prb_fleet_member *one = &hosts->items[i].members[k];
            if (strcmp(one->job, job) != 0 || one->ended > 0)
                continue;
            here = true;
            world = one->world_size > world ? one->world_size : world;
            prb_rank_set_add(&all, one->rank, one->rank);
        }
        on += here;
    }
    PRB_AUTO_FREE char *text = prb_rank_set_text(&all);
    return prb_grid_addf(grid, "@%s", job) && prb_grid_addf(grid, "%d", world) &&
           prb_grid_addf(grid, "%u", on) && prb_grid_adds(grid, text ? text : "");
}

static bool jobs(const struct prb_cluster_hosts *hosts, struct prb_error *err)
{
    static const char *const names[] = {"job", "ranks", "hosts", "known"};
    PRB_AUTO(prb_grid)
    struct prb_grid *grid = prb_grid_new(names, sizeof names / sizeof *names);
    bool good = grid != NULL;
    for (size_t i = 0; i < hosts->count; i++)
        for (size_t k = 0; k < hosts->items[i].count && good; k++)
            good = !is_first(hosts, i, k) || add_job(grid, hosts, hosts->items[i].members[k].job);
    return print_grid(grid, good, err);
}

bool prb_cli_cluster_hosts(const struct prb_run *run, struct prb_error *err)
{
    PRB_AUTO(prb_cluster_hosts) struct prb_cluster_hosts hosts = {0};
    if (!prb_cluster_hosts(run->globals[PRB_GLOBAL_BUS].text, &hosts, err))
        return false;
    return strcmp(run->arguments[0], "nodes") == 0   ? nodes(&hosts, err)
           : strcmp(run->arguments[0], "ranks") == 0 ? ranks(&hosts, err)
                                                     : jobs(&hosts, err);
}

bool prb_cli_cluster_print_own(struct prb_error *err)
{
    PRB_AUTO(prb_cluster_hosts) struct prb_cluster_hosts own = {0};
    if (!prb_cluster_own(&own, err))
        return false;
    for (size_t i = 0; i < own.items[0].count; i++) {
        if (!is_first(&own, 0, i))
            continue;
        PRB_AUTO_FREE char *text = ranks_of(&own.items[0], own.items[0].members[i].job);
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
