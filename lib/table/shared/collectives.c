/* The collectives of a job's ranks: see collectives.h. */
#include "table/shared/collectives.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/target.h"
#include "sql/db.h"
#include "table/shared/collective_numbers.h"
#include "table/shared/collective_order.h"
#include "table/shared/recorder.h"

#define ONE_CLOCK 1e-6 /* s: processes of one machine read one clock */
#define NEAR 3         /* spans on each side for which a collective says something, too */

PRB_DEFINE_AUTO_PTR(prb_process_list, struct prb_process_list, prb_process_list_free)

void prb_job_deinit(struct prb_job *job)
{
    for (size_t i = 0; i < job->rank_count; i++)
        prb_target_close(job->ranks[i].target);
    for (size_t i = 0; i < job->span_count; i++)
        prb_clocks_free(job->spans[i].clocks);
    free(job->ranks);
    free(job->items);
    free(job->transfers);
    free(job->spans);
    prb_arena_deinit(&job->texts);
}

/* ---- the ranks ---- */

static int by_rank(const void *a, const void *b)
{
    const struct prb_job_rank *x = a, *y = b;
    return x->rank != y->rank ? (x->rank > y->rank) - (x->rank < y->rank)
                              : (x->pid > y->pid) - (x->pid < y->pid);
}

static bool open_rank(struct prb_rows *rows, struct prb_job *job, const struct prb_process *process)
{
    struct prb_error why = {0};
    struct prb_target *target = prb_target_open_pid(process->pid, &why);
    if (target)
        job->ranks[job->rank_count++] =
            (struct prb_job_rank){.target = target, .pid = process->pid, .rank = process->rank};
    else
        prb_rows_warn(rows, "rank %d, process %d, is left out: %s", process->rank,
                      (int)process->pid, why.text);
    return target != NULL;
}

static bool open_ranks(struct prb_rows *rows, struct prb_job *job, struct prb_error *err)
{
    PRB_AUTO(prb_process_list) struct prb_process_list *list = prb_process_list(err);
    PRB_AUTO_FREE bool *chosen = list ? calloc(list->count + 1, sizeof *chosen) : NULL;
    if (!list)
        return false;
    job->ranks = calloc(list->count + 1, sizeof *job->ranks);
    if (!chosen || !job->ranks)
        return prb_nomem(err);
    prb_process_choose(list, (pid_t)prb_rows_target(rows)->info.pid, true, false, chosen);
    for (size_t i = 0; i < list->count; i++)
        if (chosen[i] && list->items[i].rank >= 0) {
            open_rank(rows, job, &list->items[i]);
            job->world_size = list->items[i].world_size;
        }
    qsort(job->ranks, job->rank_count, sizeof *job->ranks, by_rank);
    if (!job->rank_count)
        prb_rows_warn(rows, "process %d is not a rank of a job: no RANK in its environment",
                      (int)prb_rows_target(rows)->info.pid);
    return true;
}

/* ---- names ---- */

/* In these every rank waits for every other, whatever is written behind: all_gather_into_tensor. */
static const char *const waiting[] = {"all_reduce", "allreduce",      "all_gather",
                                      "allgather",  "reduce_scatter", "all_to_all",
                                      "alltoall",   "barrier",        "monitored_barrier"};

static const char *const transfers[] = {"send", "recv"};

static bool waits_for_all(const char *op)
{
    for (size_t i = 0; i < sizeof waiting / sizeof *waiting; i++)
        if (strncasecmp(op, waiting[i], strlen(waiting[i])) == 0)
            return true;
    return false;
}

/* "gloo:all_reduce", "nccl:_all_gather_base": the operation alone. */
static const char *operation(const char *name)
{
    const char *colon = strchr(name, ':');
    name = colon ? colon + 1 : name;
    return name + strspn(name, "_");
}

/* The text of a field, as one of those just before has it: most are alike. */
static const char *keep(struct prb_job *job, size_t field, const char *text)
{
    for (size_t i = job->count; i-- > 0 && job->count - i < 8;) {
        const char *there = *(const char *const *)((const char *)&job->items[i] + field);
        if (there && strcmp(there, text) == 0)
            return there;
    }
    return prb_arena_strdup(&job->texts, text);
}

static struct prb_collective *add(struct prb_job *job, size_t rank, const char *name,
                                  const char *group, int64_t seq, double begin)
{
    if (!PRB_GROW(job->items, job->count, job->cap))
        return NULL;
    const char *op = operation(name);
    struct prb_collective one = {
        .rank = rank,
        .begin = begin,
        .end = NAN,
        .group = group ? keep(job, offsetof(struct prb_collective, group), group) : NULL,
        .op = keep(job, offsetof(struct prb_collective, op), op),
        .backend = "",
        .seq = seq,
        .number = -1,
        .waits = waits_for_all(op)};
    if (!one.op || (group && !one.group))
        return NULL;
    job->items[job->count] = one;
    return &job->items[job->count++];
}

/* ---- python.comm_collective ---- */

/* The same in an array of its own: nothing numbers them. */
static bool add_transfer(struct prb_job *job, size_t rank, const char *op, double begin, double end)
{
    if (!PRB_GROW(job->transfers, job->transfer_count, job->transfer_cap))
        return false;
    job->ranks[rank].observed = true;
    job->transfers[job->transfer_count++] = (struct prb_collective){.rank = rank,
                                                                    .begin = begin,
                                                                    .end = end,
                                                                    .op = op,
                                                                    .seq = -1,
                                                                    .number = -1,
                                                                    .source = "observer"};
    return true;
}

struct observed {
    struct prb_job *job;
    size_t rank;
};

/* A row of the statement below. */
enum { BEGIN, DURATION, OP, GROUP, SEQ, BACKEND, NUMBER, COLUMNS };

#define OBSERVED                                                                                   \
    "timestamp, duration_ms, op, \"group\", CASE source WHEN 'observer' THEN collective_seq_id "   \
    "ELSE seq END, backend, CASE source WHEN 'observer' THEN seq END"

static double number(const struct prb_value *value)
{
    return value->type == PRB_REAL      ? value->real
           : value->type == PRB_INTEGER ? (double)value->integer
                                        : NAN;
}

static int64_t integer(const struct prb_value *value)
{
    return value->type == PRB_INTEGER && value->integer >= 0 ? value->integer : -1;
}

static bool take_row(void *context, size_t columns, const char *const *names,
                     const struct prb_value *row)
{
    const struct observed *observed = context;
    (void)names;
    if (!row)
        return columns == COLUMNS;
    char group[24];
    snprintf(group, sizeof group, "%lld", (long long)row[GROUP].integer);
    double begin = number(&row[BEGIN]);
    if (!isfinite(begin) || row[OP].type != PRB_TEXT)
        return true;
    for (size_t i = 0; i < sizeof transfers / sizeof *transfers; i++)
        if (strcmp(operation(row[OP].text), transfers[i]) == 0)
            return add_transfer(observed->job, observed->rank, transfers[i], begin,
                                begin + number(&row[DURATION]) / 1e3);
    struct prb_collective *one = add(observed->job, observed->rank, row[OP].text,
                                     row[GROUP].type == PRB_TEXT      ? row[GROUP].text
                                     : row[GROUP].type == PRB_INTEGER ? group
                                                                      : NULL,
                                     integer(&row[SEQ]), begin);
    if (!one)
        return false;
    one->end = begin + number(&row[DURATION]) / 1e3;
    one->source = "observer";
    one->number = integer(&row[NUMBER]);
    if (row[BACKEND].type == PRB_TEXT &&
        !(one->backend =
              keep(observed->job, offsetof(struct prb_collective, backend), row[BACKEND].text)))
        return false;
    observed->job->ranks[observed->rank].observed = true;
    return true;
}

/* A rank without that table has no rows of it.  The observer's own seq is of no group: which number a
 * collective has in its group says the Flight Recorder. */
static void take_observed(struct prb_job *job, size_t rank)
{
    struct prb_error why;
    struct observed observed = {job, rank};
    struct prb_db *db = prb_db_open(job->ranks[rank].target, &why);
    if (db &&
        !prb_db_query(db, "SELECT " OBSERVED " FROM python.comm_collective ORDER BY timestamp",
                      take_row, &observed, &why))
        why.code = PRB_OK;
    if (db)
        prb_db_close(db);
}

/* ---- the Flight Recorder ---- */

static bool take_entry(struct prb_job *job, size_t rank, const json_t *entry)
{
    const char *name = json_string_value(json_object_get(entry, "profiling_name"));
    const char *group =
        json_string_value(json_array_get(json_object_get(entry, "process_group"), 0));
    json_int_t created = json_integer_value(json_object_get(entry, "time_created_ns"));
    json_int_t completed =
        json_integer_value(json_object_get(entry, "time_discovered_completed_ns"));
    if (!name || !group || created <= 0 || json_is_true(json_object_get(entry, "is_p2p")))
        return true;
    struct prb_collective *one =
        add(job, rank, name, group, json_integer_value(json_object_get(entry, "collective_seq_id")),
            (double)created / 1e9);
    if (!one)
        return false;
    (void)completed; /* when torch's watchdog saw it, up to its period later */
    one->source = "recorder";
    return true;
}

static bool take_recorded(struct prb_rows *rows, struct prb_job *job, size_t rank,
                          struct prb_error *err)
{
    PRB_AUTO(prb_recording) struct prb_recording recording = {0};
    struct prb_error why = {0};
    size_t i, k;
    json_t *recorder, *entry;
    if (!prb_recording_take(rows, job->ranks[rank].target, &recording, &why)) {
        prb_rows_warn(rows, "rank %d: %s", job->ranks[rank].rank, why.text);
        return true;
    }
    json_array_foreach(recording.texts, i, recorder)
        json_array_foreach(json_object_get(recorder, "entries"), k,
                           entry) if (!take_entry(job, rank, entry)) return prb_nomem(err);
    return true;
}

/* ---- which is which ---- */

static int by_collective(const void *a, const void *b)
{
    const struct prb_collective *x = a, *y = b;
    int group = strcmp(x->group, y->group), op = strcmp(x->op, y->op);
    if (group || op)
        return group ? group : op;
    if (x->seq != y->seq)
        return x->seq < y->seq ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

size_t prb_job_parts(const struct prb_job *job, size_t first)
{
    const struct prb_collective *one = &job->items[first];
    size_t end = first + 1;
    while (end < job->count && job->items[end].seq == one->seq &&
           strcmp(job->items[end].group, one->group) == 0 &&
           strcmp(job->items[end].op, one->op) == 0)
        end++;
    return end - first;
}

/* Without those that nothing names, and whose rank is there twice (another round of the same numbers). */
static void sort_out(struct prb_rows *rows, struct prb_job *job)
{
    size_t kept = 0, unnamed = 0;
    for (size_t i = 0; i < job->count; i++)
        if (job->items[i].group && job->items[i].seq != -1)
            job->items[kept++] = job->items[i];
        else
            unnamed++;
    job->count = kept;
    if (unnamed)
        prb_rows_warn(rows,
                      "%zu of %zu collectives are left out: the Flight Recorder does not hold "
                      "which ones they are%s",
                      unnamed, unnamed + kept,
                      kept ? "" : "; without it that is told by time, in jobs of two ranks alone");
    qsort(job->items, job->count, sizeof *job->items, by_collective);
}

/* ---- clocks ---- */

static double span_of(double time)
{
    return (double)((int64_t)(time / PRB_CLOCK_SPAN)) * PRB_CLOCK_SPAN;
}

static int by_begin(const void *a, const void *b)
{
    const struct prb_clock_span *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->moment > y->moment) - (x->moment < y->moment);
}

static int by_span(const void *a, const void *b)
{
    double x = ((const struct prb_clock_span *)a)->begin;
    double y = ((const struct prb_clock_span *)b)->begin;
    return (x > y) - (x < y);
}

/* One that is not between collectives is nearest to some. */
static const struct prb_clock_span *nearest_span(const struct prb_job *job, double time)
{
    const struct prb_clock_span *nearest = NULL;
    for (size_t i = 0; i < job->span_count; i++)
        if (!nearest || fabs(job->spans[i].moment - time) < fabs(nearest->moment - time))
            nearest = &job->spans[i];
    return nearest;
}

static struct prb_clock_span *find_span(const struct prb_job *job, double time)
{
    struct prb_clock_span key = {.begin = span_of(time)};
    return bsearch(&key, job->spans, job->span_count, sizeof key, by_span);
}

static bool make_spans(struct prb_job *job, struct prb_error *err)
{
    job->spans = calloc(job->count + 1, sizeof *job->spans);
    if (!job->spans)
        return prb_nomem(err);
    for (size_t i = 0; i < job->count; i += prb_job_parts(job, i))
        job->spans[job->span_count++] = (struct prb_clock_span){
            .begin = span_of(job->items[i].begin), .moment = job->items[i].begin};
    qsort(job->spans, job->span_count, sizeof *job->spans, by_begin);
    size_t kept = 0;
    for (size_t i = 0, end; i < job->span_count; i = end) {
        for (end = i; end < job->span_count && job->spans[end].begin == job->spans[i].begin; end++)
            ;
        double middle = (job->spans[i].moment + job->spans[end - 1].moment) / 2;
        job->spans[kept] = job->spans[i];
        job->spans[kept++].moment = middle;
    }
    job->span_count = kept;
    for (size_t i = 0; i < kept; i++)
        if (!(job->spans[i].clocks = prb_clocks_new(job->rank_count, job->spans[i].moment, err)))
            return false;
    return true;
}

/* The bounds of one collective, for its own span and those near it. */
static void add_bounds(struct prb_job *job, size_t first, size_t count)
{
    struct prb_clock_part parts[PRB_CLOCK_RANKS_MAX];
    const struct prb_collective *items = &job->items[first];
    size_t known = 0, used = 0;
    for (size_t i = 0; i < count && used < PRB_CLOCK_RANKS_MAX; i++) {
        if (i && items[i].rank == items[i - 1].rank)
            return; /* twice the same number: which is which cannot be told */
        parts[used++] = (struct prb_clock_part){items[i].rank, items[i].begin, items[i].end};
        known += isfinite(items[i].end);
    }
    for (int beside = -NEAR; items->waits && known && beside <= NEAR; beside++) {
        struct prb_clock_span *span = find_span(job, items->begin + beside * PRB_CLOCK_SPAN);
        if (!span)
            continue;
        prb_clocks_add(span->clocks, parts, used);
        span->bounds += beside == 0;
    }
}

static bool solve(struct prb_rows *rows, struct prb_job *job, bool one_machine,
                  struct prb_error *err)
{
    if (!make_spans(job, err))
        return false;
    for (size_t i = 0, count; i < job->count; i += count) {
        count = prb_job_parts(job, i);
        if (count > 1)
            add_bounds(job, i, count);
    }
    for (size_t i = 0; i < job->span_count; i++)
        if (!prb_clocks_solve(job->spans[i].clocks, one_machine ? ONE_CLOCK : 0)) {
            prb_clocks_free(job->spans[i].clocks);
            job->spans[i].clocks = NULL;
            prb_rows_warn(rows, "the ranks' collectives contradict each other: their clocks are "
                                "not known, or their numbers do not belong together");
        }
    return true;
}

bool prb_job_offset(const struct prb_job *job, const struct prb_collective *first, size_t of,
                    size_t from, double *offset_out, double *error_out)
{
    const struct prb_clock_span *span = find_span(job, first->begin);
    span = span ? span : nearest_span(job, first->begin);
    if (!span || !span->clocks || !prb_clocks_offset(span->clocks, of, from, offset_out, error_out))
        return false;
    if (*error_out > ONE_CLOCK) /* two clocks, which may have drifted since */
        *error_out += fabs(first->begin - span->moment) * PRB_CLOCK_DRIFT;
    return true;
}

/* ---- rows that somebody else has ---- */

/* The rank of a row, which is the cell behind the others; rows come by rank. */
static bool find_rank(struct prb_job *job, const struct prb_value *cell, size_t *out)
{
    if (cell->type != PRB_INTEGER || cell->integer < 0 || cell->integer > INT32_MAX)
        return false;
    int rank = (int)cell->integer;
    if (!job->rank_count || job->ranks[job->rank_count - 1].rank != rank) {
        struct prb_job_rank *ranks =
            reallocarray(job->ranks, job->rank_count + 1, sizeof *job->ranks);
        if (!ranks)
            return false;
        job->ranks = ranks;
        job->ranks[job->rank_count++] = (struct prb_job_rank){.rank = rank};
    }
    *out = job->rank_count - 1;
    return true;
}

static bool take_observed_row(void *context, size_t columns, const char *const *names,
                              const struct prb_value *row)
{
    struct observed observed = {.job = context};
    if (!row)
        return columns == COLUMNS + 1;
    return !find_rank(context, &row[COLUMNS], &observed.rank) ||
           take_row(&observed, COLUMNS, names, row);
}

enum { RECORDED_NAME, RECORDED_GROUP, RECORDED_SEQ, RECORDED_CREATED, RECORDED_RANK };

static bool take_recorded_row(void *context, size_t columns, const char *const *names,
                              const struct prb_value *row)
{
    struct prb_job *job = context;
    size_t rank;
    (void)names;
    if (!row)
        return columns == RECORDED_RANK + 1;
    if (row[RECORDED_NAME].type != PRB_TEXT || row[RECORDED_GROUP].type != PRB_TEXT ||
        row[RECORDED_SEQ].type != PRB_INTEGER || row[RECORDED_CREATED].type != PRB_INTEGER ||
        !find_rank(job, &row[RECORDED_RANK], &rank))
        return true;
    struct prb_collective *one =
        add(job, rank, row[RECORDED_NAME].text, row[RECORDED_GROUP].text, row[RECORDED_SEQ].integer,
            (double)row[RECORDED_CREATED].integer / 1e9);
    if (one)
        one->source = "recorder";
    return one;
}

static bool settle(struct prb_rows *rows, struct prb_job *out, bool one_machine,
                   struct prb_error *err)
{
    if (!prb_job_number(out, one_machine, err))
        return false;
    sort_out(rows, out);
    size_t all = out->count, taken_out;
    if (!prb_job_put_in_order(out, &taken_out, err))
        return false;
    if (taken_out)
        prb_rows_warn(rows,
                      "%zu of %zu collectives are left out: they ran beside others, and which is "
                      "which is not known",
                      taken_out, all);
    return solve(rows, out, one_machine, err);
}

bool prb_job_take_from(struct prb_rows *rows, const struct prb_job_source *source,
                       struct prb_job *out, struct prb_error *err)
{
    out->world_size = source->world_size;
    if (!source->query(source->context,
                       "SELECT " OBSERVED ", rank FROM python.comm_collective "
                       "ORDER BY rank, timestamp",
                       take_observed_row, out, err))
        return false;
    if (!out->rank_count && /* no rank has any: what torch itself recorded */
        !source->query(source->context,
                       "SELECT profiling_name, pg_name, collective_seq_id, time_created_ns, rank "
                       "FROM python.torch_nccl_flight_record WHERE is_p2p = 0 AND "
                       "time_created_ns > 0 ORDER BY rank, record_id",
                       take_recorded_row, out, err))
        return false;
    return settle(rows, out, source->one_machine, err);
}

/* ---- all ---- */

static void note_nothing(struct prb_rows *rows, const struct prb_job *job)
{
    if (job->rank_count == 1)
        prb_rows_warn(rows, "one rank of the job runs on this machine: nobody here waits for it");
    else if (job->rank_count && !job->count && !job->transfer_count)
        prb_rows_warn(rows, "no collective of a rank is recorded: `config "
                            "probing.torch.profiling=on` of each rank, or of -t @JOB, records "
                            "them from now on");
}

bool prb_job_take(struct prb_rows *rows, struct prb_job *out, struct prb_error *err)
{
    if (prb_target_info(prb_rows_target(rows))->kind != PRB_TARGET_PROCESS)
        return prb_fail(err, PRB_USAGE, "the ranks of a job are processes that live");
    if (!open_ranks(rows, out, err))
        return false;
    bool observed = false;
    for (size_t i = 0; i < out->rank_count; i++) {
        take_observed(out, i);
        observed |= out->ranks[i].observed;
    }
    for (size_t i = 0; !observed && out->rank_count > 1 && i < out->rank_count; i++)
        if (!take_recorded(rows, out, i, err))
            return false;
    note_nothing(rows, out);
    return settle(rows, out, true, err);
}
