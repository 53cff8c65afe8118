/* The RAS service's JSON (NCCL 2.28.7 and later): see ras_report.h. */
#include <stdlib.h>
#include <string.h>

#include "comm/ras_report.h"

/* ncclResult_t */
enum { SUCCESS = 0, IN_PROGRESS = 7 };
static const char *const results[] = {
    NULL,
    "Unhandled CUDA error",
    "System error",
    "Internal error",
    "Invalid argument",
    "Invalid usage",
    "Remote process error",
    NULL, /* in progress */
};

static int64_t number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) ? json_integer_value(value) : -1;
}

static bool is_set(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

static const char *error_of(int64_t result)
{
    if (result == SUCCESS || result == IN_PROGRESS || result < 0)
        return NULL;
    return (size_t)result < sizeof results / sizeof *results ? results[result] : "Unexpected error";
}

/* As NCCL itself sums them up. */
enum { NOCOMM = 1, INIT = 2, RUNNING = 4, FINALIZE = 8, ABORT = 16 };
static const struct {
    unsigned bit;
    const char *name;
} states[] = {{ABORT, "ABORT"},
              {FINALIZE, "FINALIZE"},
              {RUNNING, "RUNNING"},
              {INIT, "INIT"},
              {NOCOMM, "NOCOMM"}};
enum { MISMATCH = 1, ERROR = 2, INCOMPLETE = 4 };
static const char *const errors[] = {"OK",
                                     "MISMATCH",
                                     "ERROR",
                                     "ERROR,MISMATCH",
                                     "INCOMPLETE",
                                     "INCOMPLETE,MISMATCH",
                                     "INCOMPLETE,ERROR",
                                     "INCOMPLETE,ERROR,MISMATCH"};

static const char *name_of(unsigned state)
{
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (state & states[i].bit)
            return states[i].name;
    return NULL;
}

static unsigned state_of(const json_t *status)
{
    return is_set(status, "abort_flag")                                          ? ABORT
           : is_set(status, "finalize_called") || is_set(status, "destroy_flag") ? FINALIZE
           : number(status, "init_state") == SUCCESS                             ? RUNNING
           : json_is_integer(json_object_get(status, "init_state"))              ? INIT
                                                                                 : 0;
}

struct reading {
    struct prb_ras_report *report;
    size_t comm;
    unsigned state, errors;
};

static struct prb_ras_rank *add_rank(const struct reading *reading, const json_t *one)
{
    struct prb_ras_rank *rank = prb_ras_add_rank(reading->report, reading->comm);
    const char *host = json_string_value(json_object_get(one, "host"));
    if (!rank)
        return NULL;
    rank->rank = number(one, "rank");
    rank->pid = number(one, "pid");
    rank->cuda_device = number(one, "cuda_dev");
    rank->nvml_device = number(one, "nvml_dev");
    rank->host = host && strcmp(host, "unknown") == 0 ? NULL : host;
    return rank;
}

static bool take_rank(struct reading *reading, const json_t *one)
{
    struct prb_ras_rank *rank = add_rank(reading, one);
    const json_t *status = json_object_get(one, "status");
    const json_t *counts = json_object_get(one, "collective_counts");
    unsigned state = state_of(status);
    if (!rank)
        return false;
    rank->status = name_of(state);
    rank->error = error_of(number(status, "init_state"));
    if (!rank->error)
        rank->error = error_of(number(status, "async_error"));
    reading->state |= state;
    reading->errors |= rank->error ? ERROR : 0;
    for (size_t i = 0; i < PRB_RAS_OPS; i++) {
        struct prb_ras_comm *comm = &reading->report->comms[reading->comm];
        int64_t count = rank->counts[i] = number(counts, prb_ras_ops[i]);
        if (comm->counts[i] >= 0 && count >= 0 && count != comm->counts[i])
            reading->errors |= MISMATCH;
        if (count > comm->counts[i])
            comm->counts[i] = count;
    }
    return true;
}

static bool take_missing(struct reading *reading, const json_t *one)
{
    struct prb_ras_rank *rank = add_rank(reading, one);
    const json_t *status = json_object_get(one, "status");
    bool dead = is_set(status, "considered_dead"), silent = is_set(status, "unresponsive");
    if (!rank)
        return false;
    rank->missing = true;
    rank->status = dead ? "DEAD" : silent ? "UNRESPONSIVE" : "NOCOMM";
    reading->errors |= dead || silent ? INCOMPLETE : MISMATCH;
    reading->state |= dead || silent ? 0 : NOCOMM;
    return true;
}

static bool take_comm(struct prb_ras_report *report, const json_t *one)
{
    struct reading reading = {.report = report, .comm = report->comm_count};
    struct prb_ras_comm *comm = prb_ras_add_comm(report);
    const char *hash = json_string_value(json_object_get(one, "hash"));
    char *end = NULL;
    const json_t *ranks = json_object_get(one, "ranks");
    const json_t *missing = json_object_get(one, "missing_ranks");
    if (!comm)
        return false;
    comm->json = one;
    comm->hash = hash ? strtoull(hash, &end, 16) : 0;
    comm->has_hash = end && end != hash && !*end;
    comm->size = number(one, "size");
    comm->missing = number(one, "missing_ranks_count");
    for (size_t i = 0; i < json_array_size(ranks); i++)
        if (!take_rank(&reading, json_array_get(ranks, i)))
            return false;
    for (size_t i = 0; i < json_array_size(missing); i++)
        if (!take_missing(&reading, json_array_get(missing, i)))
            return false;
    if (reading.state & (reading.state - 1))
        reading.errors |= MISMATCH;
    report->comms[reading.comm].status = name_of(reading.state);
    report->comms[reading.comm].errors = errors[reading.errors];
    return true;
}

bool prb_ras_read_json(const struct prb_buf *text, struct prb_ras_report *out,
                       struct prb_error *err)
{
    json_error_t why;
    out->root = json_loadb(text->data ? text->data : "", text->len, 0, &why);
    json_t *comms = json_object_get(out->root, "communicators");
    if (!json_is_array(comms))
        return prb_fail(err, PRB_CORRUPT, "the answer of NCCL's RAS service cannot be read: %s",
                        out->root ? "no communicators" : why.text);
    out->version = json_string_value(json_object_get(out->root, "nccl_version"));
    int64_t timeouts = number(json_object_get(out->root, "ras"), "timeouts_count");
    if (timeouts > 0)
        prb_buf_addf(&out->notes, "%lld processes did not answer NCCL's RAS service in time\n",
                     (long long)timeouts);
    for (size_t i = 0; i < json_array_size(comms); i++)
        if (!take_comm(out, json_array_get(comms, i)))
            return prb_nomem(err);
    return true;
}
