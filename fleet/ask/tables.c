/*
 * The asker's own tables.  What they need of the ranks is asked by a connection of its own when the
 * statement reads them, so it is of another moment than the other tables of the statement.
 */
#include "fleet/ask/tables.h"

#include <math.h>
#include <string.h>

#include "fleet/cluster.h"
#include "sql/db.h"
#include "table/comm_metrics.h"
#include "table/shared/thread_columns.h"

PRB_DEFINE_AUTO(prb_cluster_hosts, struct prb_cluster_hosts, prb_cluster_hosts_deinit)

enum { NODES, RANKS, GROUPS, COMM_METRICS, TABLES };

struct own;
struct own_table {
    struct prb_table table; /* first */
    struct own *own;
};
struct own {
    struct prb_table_source source; /* first */
    struct prb_own_tables how;
    struct prb_db *db; /* of the ranks; NULL: not opened yet */
    struct prb_coverage coverage;
    bool listed;
    struct own_table tables[TABLES];
    const struct prb_table *list[TABLES];
};

static struct own *own_of(const struct prb_rows *rows)
{
    return ((const struct own_table *)prb_rows_table(rows))->own;
}

/* ---- asking the ranks ---- */

static bool keep_coverage(struct own *own, struct prb_error *err)
{
    struct prb_error why = {0};
    bool whole = prb_coverage_check(&own->coverage, &why);
    if (!own->how.coverage->count || prb_coverage_whole(own->how.coverage)) {
        prb_coverage_deinit(own->how.coverage);
        *own->how.coverage = own->coverage;
        own->coverage = (struct prb_coverage){0};
    }
    if (!whole && own->how.strict && err)
        *err = why;
    return whole || !own->how.strict;
}

static bool ask_ranks(struct own *own, const char *sql, prb_row_fn *each, void *context,
                      struct prb_error *err)
{
    prb_coverage_deinit(&own->coverage);
    if (!own->db && !(own->db = own->how.open(own->how.fleet, &own->coverage, err)))
        return false;
    return prb_db_query(own->db, sql, each, context, err);
}

/* Of the Flight Recorder, which not every rank has: these are left out with a note. */
static bool ask_recorders(struct own *own, struct prb_rows *rows, const char *sql, prb_row_fn *each,
                          void *context)
{
    struct prb_error why = {0};
    bool good = ask_ranks(own, sql, each, context, &why);
    if (good && prb_coverage_check(&own->coverage, &why))
        return true;
    prb_rows_warn(rows, "the Flight Recorder of some ranks was not read: %s", why.text);
    return good;
}

/* ---- cluster.nodes ---- */

static const struct prb_column node_columns[] = {
    {"host", PRB_TEXT, "", "the node's name, unique in the job"},
    {"state", PRB_TEXT, "", "of its agent: answers, silent"},
    {"release", PRB_TEXT, "", "of its agent"},
    {"pid", PRB_INTEGER, "id", "of its agent; NULL: there is none"},
    {"ranks", PRB_TEXT, "", "of the job, on it: 0-3,7"},
    {"clock_offset", PRB_REAL, "s", "its clock less this host's; NULL: silent"},
    {"clock_error", PRB_REAL, "s", "how much that may be wrong: half a round trip"},
    {0},
};

static bool put_ranks(struct prb_rows *rows, const struct prb_cluster_host *host, const char *job)
{
    PRB_AUTO(prb_rank_set) struct prb_rank_set ranks = {0};
    for (size_t i = 0; i < host->count; i++)
        if (host->members[i].ended <= 0 && strcmp(host->members[i].job, job) == 0 &&
            !prb_rank_set_add(&ranks, host->members[i].rank, host->members[i].rank))
            return false;
    PRB_AUTO_FREE char *text = prb_rank_set_text(&ranks);
    prb_row_text(rows, text);
    return text;
}

static bool fill_nodes(struct prb_rows *rows, struct prb_error *err)
{
    struct own *own = own_of(rows);
    const struct prb_fleet_info *info = prb_fleet_info(own->how.fleet);
    bool agents = strcmp(info->transport, "local") != 0;
    PRB_AUTO(prb_cluster_hosts) struct prb_cluster_hosts hosts = {0};
    if (!prb_fleet_hosts(own->how.fleet, &hosts, err))
        return false;
    for (size_t i = 0; i < hosts.count; i++) {
        const struct prb_cluster_host *one = &hosts.items[i];
        prb_row_begin(rows);
        prb_row_text(rows, one->host);
        prb_row_text(rows, one->silent ? "silent" : "answers");
        prb_row_text(rows, one->release);
        prb_row_int_unless(rows, agents ? one->pid : -1, -1);
        if (!put_ranks(rows, one, info->job))
            return prb_nomem(err);
        if (one->silent)
            continue;
        prb_row_real(rows, one->clock);
        prb_row_real(rows, one->clock_error);
    }
    return true;
}

/* ---- cluster.ranks ---- */

static const struct prb_column rank_columns[] = {
    {"rank", PRB_INTEGER, "id", "of 0 to world_size - 1, as far as they are asked for"},
    {"host", PRB_TEXT, "", "the node that it runs on"},
    {"pid", PRB_INTEGER, "id", "of its process, on its host"},
    {"state", PRB_TEXT, "",
     "answers; silent: its host is; gone: its process ended; failed; missing: nobody is it"},
    {"reason", PRB_TEXT, "", "why it cannot be asked"},
    {"local_rank", PRB_INTEGER, "id", "on its host"},
    {"node_rank", PRB_INTEGER, "id", "the number of its host, by their lowest ranks"},
    {"role", PRB_TEXT, "", "as its launcher names it (ROLE_NAME)"},
    {"world_size", PRB_INTEGER, "count", "ranks of the job"},
    {"attempt", PRB_INTEGER, "", "of its launcher, from 0"},
    {"started", PRB_REAL, "s", "its process, since the epoch, by its host's clock"},
    {0},
};

static bool is_silent(const struct prb_cluster_hosts *hosts, const char *host)
{
    for (size_t i = 0; i < hosts->count; i++)
        if (strcmp(hosts->items[i].host, host) == 0)
            return hosts->items[i].silent;
    return false;
}

static const struct prb_fleet_member *member_of(const struct prb_fleet_info *info, int rank)
{
    for (size_t i = 0; i < info->member_count; i++)
        if (info->members[i].rank == rank)
            return &info->members[i];
    return NULL;
}

/* Hosts are numbered by their lowest rank; members are by rank. */
static int node_of(const struct prb_fleet_info *info, const struct prb_fleet_member *member)
{
    int number = -1;
    for (size_t i = 0; i < info->member_count; i++) {
        size_t before = 0;
        while (strcmp(info->members[before].host, info->members[i].host) != 0)
            before++;
        number += before == i;
        if (strcmp(info->members[i].host, member->host) == 0)
            break;
    }
    return number;
}

static void put_rank(struct prb_rows *rows, const struct prb_fleet_info *info,
                     const struct prb_cluster_hosts *hosts, int rank)
{
    const struct prb_fleet_member *one = member_of(info, rank);
    prb_row_begin(rows);
    prb_row_int(rows, rank);
    prb_row_text(rows, one ? one->host : NULL);
    prb_row_int_unless(rows, one ? one->pid : -1, -1);
    prb_row_text(rows, !one                          ? "missing"
                       : one->ended > 0              ? "gone"
                       : one->refused[0]             ? "failed"
                       : is_silent(hosts, one->host) ? "silent"
                                                     : "answers");
    prb_row_text(rows, one && one->refused[0] ? one->refused : NULL);
    prb_row_int_unless(rows, one ? one->local_rank : -1, -1);
    prb_row_int_unless(rows, one ? node_of(info, one) : -1, -1);
    prb_row_text(rows, one && one->role[0] ? one->role : NULL);
    prb_row_int(rows, info->world_size);
    if (!one)
        return;
    prb_row_int(rows, one->attempt);
    prb_row_real(rows, one->started);
}

static bool fill_ranks(struct prb_rows *rows, struct prb_error *err)
{
    struct own *own = own_of(rows);
    const struct prb_fleet_info *info = prb_fleet_info(own->how.fleet);
    PRB_AUTO(prb_cluster_hosts) struct prb_cluster_hosts hosts = {0};
    if (!prb_fleet_hosts(own->how.fleet, &hosts, err))
        return false;
    for (int rank = prb_rank_set_next(info->asked, -1); rank >= 0;
         rank = prb_rank_set_next(info->asked, rank))
        put_rank(rows, info, &hosts, rank);
    return true;
}

/* ---- cluster.groups ---- */

static const struct prb_column group_columns[] = {
    {"name", PRB_TEXT, "", "process group of torch.distributed: the same in all ranks"},
    {"description", PRB_TEXT, "", "what the program calls it: default_pg and the like"},
    {"ranks", PRB_TEXT, "", "whose Flight Recorder names it: 0-3,7"},
    {"size", PRB_INTEGER, "count", "how many these are"},
    {"called_least", PRB_INTEGER, "", "the last collective that the rank which is behind called"},
    {"called_most", PRB_INTEGER, "", "… that the rank which is ahead called"},
    {"completed_least", PRB_INTEGER, "", "the last one that was over in the rank behind"},
    {"completed_most", PRB_INTEGER, "", "… in the rank ahead; NULL: torch does not say"},
    {0},
};

/* Of the rows of one group, which come together. */
struct grouping {
    struct prb_rows *rows;
    char *name, *description;
    struct prb_rank_set ranks;
    int64_t called[2], completed[2]; /* least, most; -1: not known */
    bool failed;
};
enum { GROUP_NAME, GROUP_DESCRIPTION, GROUP_RANK, GROUP_CALLED, GROUP_COMPLETED };

static void end_group(struct grouping *grouping)
{
    struct prb_rows *rows = grouping->rows;
    PRB_AUTO_FREE char *ranks = prb_rank_set_text(&grouping->ranks);
    if (grouping->name) {
        prb_row_begin(rows);
        prb_row_text(rows, grouping->name);
        prb_row_text(rows, grouping->description);
        prb_row_text(rows, ranks);
        prb_row_int(rows, prb_rank_set_size(&grouping->ranks));
        for (int i = 0; i < 2; i++)
            prb_row_int_unless(rows, grouping->called[i], -1);
        for (int i = 0; i < 2; i++)
            prb_row_int_unless(rows, grouping->completed[i], -1);
    }
    free(grouping->name);
    free(grouping->description);
    prb_rank_set_deinit(&grouping->ranks);
    *grouping = (struct grouping){
        .rows = rows, .called = {-1, -1}, .completed = {-1, -1}, .failed = grouping->failed};
}

static void widen(int64_t bounds[2], const struct prb_value *value)
{
    if (value->type != PRB_INTEGER)
        return;
    if (bounds[0] < 0 || value->integer < bounds[0])
        bounds[0] = value->integer;
    if (value->integer > bounds[1])
        bounds[1] = value->integer;
}

static bool take_group(void *context, size_t columns, const char *const *names,
                       const struct prb_value *row)
{
    struct grouping *grouping = context;
    (void)columns, (void)names;
    if (!row || row[GROUP_NAME].type != PRB_TEXT || row[GROUP_RANK].type != PRB_INTEGER)
        return true;
    if (!grouping->name || strcmp(grouping->name, row[GROUP_NAME].text) != 0) {
        end_group(grouping);
        grouping->name = strdup(row[GROUP_NAME].text);
        if (row[GROUP_DESCRIPTION].type == PRB_TEXT)
            grouping->description = strdup(row[GROUP_DESCRIPTION].text);
    }
    int rank = (int)row[GROUP_RANK].integer;
    grouping->failed = grouping->failed || !grouping->name || rank < 0 ||
                       !prb_rank_set_add(&grouping->ranks, rank, rank);
    widen(grouping->called, &row[GROUP_CALLED]);
    widen(grouping->completed, &row[GROUP_COMPLETED]);
    return !grouping->failed;
}

static bool fill_groups(struct prb_rows *rows, struct prb_error *err)
{
    struct grouping grouping = {.rows = rows, .called = {-1, -1}, .completed = {-1, -1}};
    ask_recorders(own_of(rows), rows,
                  "SELECT pg_name, pg_desc, rank, last_enqueued_collective, "
                  "last_completed_collective FROM python.torch_nccl_pg_status ORDER BY pg_name, "
                  "rank",
                  take_group, &grouping);
    end_group(&grouping);
    return !grouping.failed || prb_nomem(err);
}

/* ---- comm_metrics ---- */

struct collecting {
    struct own *own;
    struct prb_rows *rows;
    bool observed; /* the first question was asked: what the probes' observers have */
};

static bool collect(void *context, const char *sql, prb_row_fn *each, void *each_context,
                    struct prb_error *err)
{
    struct collecting *collecting = context;
    if (collecting->observed) {
        ask_recorders(collecting->own, collecting->rows, sql, each, each_context);
        return true;
    }
    collecting->observed = true;
    return ask_ranks(collecting->own, sql, each, each_context, err) &&
           keep_coverage(collecting->own, err);
}

static bool fill_comm_metrics(struct prb_rows *rows, struct prb_error *err)
{
    struct collecting collecting = {.own = own_of(rows), .rows = rows};
    const struct prb_fleet_info *info = prb_fleet_info(collecting.own->how.fleet);
    const struct prb_job_source source = {.query = collect,
                                          .context = &collecting,
                                          .one_machine = info->hosts == 1,
                                          .world_size = info->world_size};
    PRB_AUTO(prb_job) struct prb_job job = {.world_size = info->world_size};
    return prb_job_take_from(rows, &source, &job, err) && prb_comm_metrics_rows(rows, &job, err);
}

/* ---- the source ---- */

static bool changed(struct prb_table_source *source)
{
    struct own *own = (struct own *)source;
    bool first = !own->listed;
    own->listed = true;
    return first;
}

static bool list(struct prb_table_source *source, const struct prb_table *const **out,
                 size_t *count_out, struct prb_error *err)
{
    (void)err;
    *out = ((struct own *)source)->list;
    *count_out = TABLES;
    return true;
}

static void free_own(struct prb_table_source *source)
{
    struct own *own = (struct own *)source;
    prb_db_close(own->db);
    prb_coverage_deinit(&own->coverage);
    free(own);
}

static const struct prb_table tables[TABLES] = {
    [NODES] = {.schema = "cluster",
               .name = "nodes",
               .doc = "the hosts on the bus, and their agents",
               .columns = node_columns,
               .fill = fill_nodes},
    [RANKS] = {.schema = "cluster",
               .name = "ranks",
               .doc = "the ranks of the job: where each is, and whether it can be asked",
               .columns = rank_columns,
               .fill = fill_ranks},
    [GROUPS] = {.schema = "cluster",
                .name = "groups",
                .doc = "the process groups of torch.distributed, and how far their ranks are",
                .columns = group_columns,
                .fill = fill_groups},
    [COMM_METRICS] = {.schema = "main",
                      .name = "comm_metrics",
                      .doc = "who waited for whom in the collectives of all ranks of the job, and "
                             "in what two ranks sent each other",
                      .fill = fill_comm_metrics},
};

struct prb_table_source *prb_own_tables_source(const struct prb_own_tables *how,
                                               struct prb_error *err)
{
    struct own *own = calloc(1, sizeof *own);
    if (!own)
        return PRB_NULL(prb_nomem(err));
    own->how = *how;
    own->source = (struct prb_table_source){.changed = changed, .list = list, .free = free_own};
    for (size_t i = 0; i < TABLES; i++) {
        own->tables[i] = (struct own_table){.table = tables[i], .own = own};
        own->list[i] = &own->tables[i].table;
    }
    own->tables[COMM_METRICS].table.columns = prb_table_comm_metrics.columns;
    return &own->source;
}
