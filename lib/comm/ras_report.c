/* The report of NCCL's RAS service: see ras_report.h. */
#include "comm/ras_report.h"

#include <stdlib.h>
#include <string.h>

#define COMMS_MAX 65536
#define RANKS_MAX ((size_t)1 << 20)

const char *const prb_ras_ops[PRB_RAS_OPS] = {"Broadcast", "Reduce", "AllGather", "ReduceScatter",
                                              "AllReduce"};

void prb_ras_report_deinit(struct prb_ras_report *report)
{
    free(report->comms);
    free(report->ranks);
    json_decref(report->root);
    prb_buf_deinit(&report->notes);
    prb_arena_deinit(&report->texts);
}

static void forget(int64_t counts[PRB_RAS_OPS])
{
    for (size_t i = 0; i < PRB_RAS_OPS; i++)
        counts[i] = -1;
}

struct prb_ras_comm *prb_ras_add_comm(struct prb_ras_report *report)
{
    report->too_many = report->comm_count >= COMMS_MAX;
    if (report->too_many || !PRB_GROW(report->comms, report->comm_count, report->comm_cap))
        return NULL;
    struct prb_ras_comm *comm = &report->comms[report->comm_count++];
    *comm = (struct prb_ras_comm){.size = -1, .missing = -1};
    forget(comm->counts);
    return comm;
}

struct prb_ras_rank *prb_ras_add_rank(struct prb_ras_report *report, size_t comm)
{
    report->too_many = report->rank_count >= RANKS_MAX;
    if (report->too_many || !PRB_GROW(report->ranks, report->rank_count, report->rank_cap))
        return NULL;
    struct prb_ras_rank *rank = &report->ranks[report->rank_count++];
    *rank = (struct prb_ras_rank){
        .comm = comm, .rank = -1, .pid = -1, .cuda_device = -1, .nvml_device = -1};
    forget(rank->counts);
    return rank;
}

static int by_rank(const void *a, const void *b)
{
    const struct prb_ras_rank *x = a, *y = b;
    if (x->comm != y->comm)
        return x->comm < y->comm ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

static void take_more(int64_t *known, int64_t more) { *known = *known < 0 ? more : *known; }

/* A text names one rank in several places. */
static void merge(struct prb_ras_rank *into, const struct prb_ras_rank *more)
{
    take_more(&into->pid, more->pid);
    take_more(&into->cuda_device, more->cuda_device);
    take_more(&into->nvml_device, more->nvml_device);
    for (size_t i = 0; i < PRB_RAS_OPS; i++)
        take_more(&into->counts[i], more->counts[i]);
    into->host = into->host ? into->host : more->host;
    into->status = into->status ? into->status : more->status;
    into->error = into->error ? into->error : more->error;
    into->missing |= more->missing;
}

static void sort_ranks(struct prb_ras_report *report)
{
    size_t kept = 0;
    if (report->rank_count)
        qsort(report->ranks, report->rank_count, sizeof *report->ranks, by_rank);
    for (size_t i = 0; i < report->rank_count; i++)
        if (kept && !report->root && by_rank(&report->ranks[kept - 1], &report->ranks[i]) == 0)
            merge(&report->ranks[kept - 1], &report->ranks[i]);
        else
            report->ranks[kept++] = report->ranks[i];
    report->rank_count = kept;
}

/* A text counts those that did not answer, and names the others. */
static void count_missing(struct prb_ras_report *report)
{
    for (size_t i = 0, end; i < report->rank_count; i = end) {
        struct prb_ras_comm *comm = &report->comms[report->ranks[i].comm];
        int64_t missing = 0;
        for (end = i; end < report->rank_count && report->ranks[end].comm == report->ranks[i].comm;
             end++)
            missing += report->ranks[end].missing;
        if (missing > comm->missing)
            comm->missing = missing;
    }
}

bool prb_ras_report_read(struct prb_ras_answer *answer, struct prb_ras_report *out,
                         struct prb_error *err)
{
    *out = (struct prb_ras_report){0};
    bool read = answer->json ? prb_ras_read_json(&answer->text, out, err)
                             : prb_ras_read_text(&answer->text, out, err);
    if (out->too_many)
        read = prb_fail(err, PRB_CORRUPT,
                        "NCCL's RAS service tells of more communicators or ranks than can be");
    if (!read || !prb_buf_ok(&out->notes)) {
        prb_ras_report_deinit(out);
        *out = (struct prb_ras_report){0};
        return read ? prb_nomem(err) : false;
    }
    sort_ranks(out);
    count_missing(out);
    return true;
}

bool prb_ras_report_has(const struct prb_ras_report *report, int64_t pid)
{
    for (size_t i = 0; i < report->rank_count; i++)
        if (report->ranks[i].pid == pid)
            return true;
    return false;
}

int64_t prb_ras_behind(const struct prb_ras_report *report, const struct prb_ras_rank *rank)
{
    const struct prb_ras_comm *comm = &report->comms[rank->comm];
    int64_t most = -1;
    for (size_t i = 0; i < PRB_RAS_OPS; i++)
        if (rank->counts[i] >= 0 && comm->counts[i] - rank->counts[i] > most)
            most = comm->counts[i] - rank->counts[i];
    return most;
}
