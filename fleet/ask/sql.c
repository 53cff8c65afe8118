/* SQL over the rows of all ranks: fleet/rows, asked by prb_fleet_ask. */
#include "fleet/sql.h"

#include <string.h>

#include "fleet/ask/tables.h"
#include "fleet/message/kind.h"
#include "fleet/rows/rows.h"
#include "table/registry.h"

struct asking {
    struct prb_fleet *fleet;
    bool strict;
    struct prb_coverage *coverage;
    bool rows;               /* the coverage is of a question for rows */
    const struct prb_db *db; /* whose settings hold */
};

/* Of each host the lowest rank that is asked: it has what is of the whole job there. */
static char *firsts_of(struct prb_fleet *fleet)
{
    const struct prb_fleet_info *info = prb_fleet_info(fleet);
    PRB_AUTO(prb_rank_set) struct prb_rank_set firsts = {0};
    for (size_t i = 0; i < info->member_count; i++) {
        const struct prb_fleet_member *one = &info->members[i];
        bool first = prb_rank_set_has(info->asked, one->rank);
        for (size_t k = 0; k < i && first; k++)
            first = strcmp(info->members[k].host, one->host) != 0 ||
                    !prb_rank_set_has(info->asked, info->members[k].rank);
        if (first)
            prb_rank_set_add(&firsts, one->rank, one->rank);
    }
    return prb_rank_set_text(&firsts);
}

static char *with_firsts(struct prb_fleet *fleet, const char *args, struct prb_error *err)
{
    PRB_AUTO_FREE char *firsts = firsts_of(fleet);
    PRB_AUTO(json_t) json_t *json = json_loads(args, 0, NULL);
    if (!firsts || !json || json_object_set_new(json, "first", json_string(firsts)) != 0)
        return PRB_NULL(prb_nomem(err));
    char *text = json_dumps(json, JSON_COMPACT);
    return text ? text : PRB_NULL(prb_nomem(err));
}

/* Of the ranks that the statement needs, those that are asked. */
static bool choose(const struct asking *asking, const struct prb_answers *answers,
                   struct prb_rank_set *out)
{
    const struct prb_rank_set *all = prb_fleet_info(asking->fleet)->asked;
    for (int rank = prb_rank_set_next(all, -1); rank >= 0; rank = prb_rank_set_next(all, rank))
        if ((!answers->wants || answers->wants(answers->what, rank)) &&
            !prb_rank_set_add(out, rank, rank))
            return false;
    return true;
}

/* What their launcher calls them on their host; hosts are numbered by their lowest rank. */
static void set_places(const struct prb_fleet_info *info, struct prb_answers *answers)
{
    for (size_t i = 0; i < answers->count; i++) {
        struct prb_answer *answer = &answers->items[i];
        int hosts = -1;
        for (size_t k = 0; k < info->member_count && answer->node_rank < 0; k++) {
            const struct prb_fleet_member *one = &info->members[k];
            size_t before = 0;
            while (before < k && strcmp(info->members[before].host, one->host) != 0)
                before++;
            hosts += before == k;
            if (strcmp(one->host, answer->host) == 0)
                answer->node_rank = hosts;
        }
        for (size_t k = 0; k < info->member_count; k++)
            if (info->members[k].rank == answer->rank) {
                answer->local_rank = info->members[k].local_rank;
                snprintf(answer->role, sizeof answer->role, "%s", info->members[k].role);
            }
    }
}

/* The last question's, unless one for rows before it was not answered by all: which tables there are
 * is asked of ranks whose rows nobody wants, too. */
static void keep_coverage(struct asking *asking, struct prb_coverage *latest, bool rows)
{
    if (asking->coverage->count && asking->rows && !prb_coverage_whole(asking->coverage))
        return;
    asking->rows = rows;
    prb_coverage_deinit(asking->coverage);
    *asking->coverage = *latest;
    *latest = (struct prb_coverage){0};
}

static bool ask(void *context, const char *kind, const char *args, struct prb_answers *answers,
                struct prb_error *err)
{
    struct asking *asking = context;
    PRB_AUTO(prb_coverage) struct prb_coverage coverage = {0};
    bool rows = strcmp(kind, "rows") == 0;
    PRB_AUTO(prb_rank_set) struct prb_rank_set ranks = {0};
    if (!choose(asking, answers, &ranks))
        return prb_nomem(err);
    PRB_AUTO_FREE char *text = rows ? with_firsts(asking->fleet, args, err) : strdup(args);
    double budget = asking->db ? asking->db->settings.cluster_query_budget : 0;
    if (!text ||
        !prb_fleet_ask_within(asking->fleet, &ranks, kind, text, budget, answers, &coverage, err))
        return false;
    set_places(prb_fleet_info(asking->fleet), answers);
    if (answers->over.code)
        return prb_fail(err, PRB_TIMEOUT, "%s", answers->over.text);
    struct prb_error why = {0};
    bool whole = prb_coverage_check(&coverage, &why);
    keep_coverage(asking, &coverage, rows);
    if (whole || (answers->count && !(rows && asking->strict)))
        return true;
    if (err)
        *err = why;
    return false;
}

#define SETTINGS "probing.cluster."

/* PROBING_CLUSTER_MAX_ROWS sets probing.cluster.max_rows, and so on. */
static bool take_environment(struct prb_settings *settings, struct prb_error *err)
{
    for (size_t i = 0; i < prb_settings_count(); i++) {
        const char *name = prb_settings_get(settings, i).name;
        char variable[80] = "", must[80];
        if (strncmp(name, SETTINGS, strlen(SETTINGS)) != 0)
            continue;
        for (size_t k = 0; name[k] && k + 1 < sizeof variable; k++)
            variable[k] = name[k] == '.'   ? '_'
                          : name[k] >= 'a' ? (char)(name[k] - 'a' + 'A')
                                           : name[k];
        const char *text = getenv(variable);
        if (text && *text && !prb_settings_set(settings, i, text, must, sizeof must))
            return prb_fail(err, PRB_USAGE, "%s must be %s, not \"%s\"", variable, must, text);
    }
    return true;
}

/* The tables of the ranks alone. */
static struct prb_db *open_ranks(struct prb_fleet *fleet, bool strict,
                                 struct prb_coverage *coverage, struct prb_error *err)
{
    struct asking *asking = calloc(1, sizeof *asking);
    if (!asking)
        return PRB_NULL(prb_nomem(err));
    *asking = (struct asking){.fleet = fleet, .strict = strict, .coverage = coverage};
    const struct prb_rows_asker asker = {
        .context = asking, .ask = ask, .free = free, .own = "comm_metrics"};
    struct prb_table_source *source = prb_rows_source(&asker, err);
    PRB_AUTO(prb_db) struct prb_db *db = source ? prb_db_open_schema(err) : NULL;
    if (!db) {
        if (source)
            source->free(source);
        return NULL;
    }
    asking->db = db;
    return prb_db_add_source(db, source, err) && take_environment(&db->settings, err)
               ? PRB_STEAL(db)
               : NULL;
}

static struct prb_db *open_beside(struct prb_fleet *fleet, struct prb_coverage *coverage,
                                  struct prb_error *err)
{
    return open_ranks(fleet, false, coverage, err);
}

struct prb_db *prb_fleet_db(struct prb_fleet *fleet, bool strict, struct prb_coverage *coverage,
                            struct prb_error *err)
{
    const struct prb_own_tables own = {
        .fleet = fleet, .strict = strict, .coverage = coverage, .open = open_beside};
    PRB_AUTO(prb_db) struct prb_db *db = open_ranks(fleet, strict, coverage, err);
    struct prb_table_source *source = db ? prb_own_tables_source(&own, err) : NULL;
    return source && prb_db_add_source(db, source, err) ? PRB_STEAL(db) : NULL;
}
