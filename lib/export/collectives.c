/*
 * Collectives: python.comm_collective.  Of one that several ranks took part in, each rank's slice
 * has an arrow to that of the rank that began last: the one that the others waited for.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "export/export.h"

enum { TIME, DURATION_MS, OP, GROUP, SEQ, ID, RANKS, SOURCE };
static const char *const columns[] = {
    "timestamp",         "duration_ms", "op",    "group",        "seq",   "collective_seq_id",
    "participate_ranks", "source",      "bytes", "tensor_shape", "dtype", "async_op",
    "backend",           NULL};

/* One rank's part in a collective. */
struct one {
    uint64_t key; /* the same for all ranks of the collective */
    uint32_t event;
    const struct prb_export_process *process;
};

struct collected {
    struct one *items;
    size_t count, cap;
};

static void collected_deinit(struct collected *all) { free(all->items); }
PRB_DEFINE_AUTO(collected, struct collected, collected_deinit)

/* PyTorch's number, the same in all ranks: an observer counts from when it began to record. */
static int64_t number_of(const struct prb_value *row)
{
    const char *source = prb_export_text(&row[SOURCE]);
    return prb_export_integer(&row[source && strcmp(source, "observer") == 0 ? ID : SEQ]);
}

/* 0: it cannot be told which one it is. */
static uint64_t key_of(const struct prb_value *row)
{
    const char *op = prb_export_text(&row[OP]), *group = prb_export_text(&row[GROUP]);
    const char *ranks = prb_export_text(&row[RANKS]);
    int64_t group_number = prb_export_integer(&row[GROUP]);
    int64_t seq = number_of(row);
    char text[600];
    if (!op || seq == INT64_MIN)
        return 0;
    int length = snprintf(text, sizeof text, "%.120s|%" PRId64 "|%.120s|%" PRId64 "|%.300s", op,
                          seq, group ? group : "", group_number, ranks ? ranks : "");
    return prb_hash_bytes(text, (size_t)length);
}

static bool take(struct prb_export *export, struct prb_export_process *process,
                 const struct prb_value *row, void *context)
{
    struct collected *all = context;
    const char *op = prb_export_text(&row[OP]);
    uint32_t track = prb_export_track_of(export, process, PRB_EXPORT_COLLECTIVES, 0, "collectives");
    double ms = prb_export_real(&row[DURATION_MS]);
    uint32_t event = prb_export_slice(export, track, op ? op : "collective",
                                      prb_export_real(&row[TIME]), ms * 1e-3, 0);
    prb_export_note(export, "group", &row[GROUP]);
    prb_export_note(export, "seq", &row[SEQ]);
    prb_export_note(export, columns[ID], &row[ID]);
    for (size_t i = SOURCE; columns[i]; i++)
        prb_export_note(export, columns[i], &row[i]);
    if (isnan(ms))
        prb_trace_note_text(&export->trace, "end", "not known");
    uint64_t key = key_of(row);
    if (!key || event == PRB_TRACE_NONE)
        return !export->failed;
    if (!PRB_GROW(all->items, all->count, all->cap))
        return !(export->failed = true);
    all->items[all->count++] = (struct one){key, event, process};
    return !export->failed;
}

static int by_key(const void *a, const void *b)
{
    const struct one *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->event < y->event ? -1 : x->event > y->event;
}

/* Several ranks' parts of one collective. */
static void point_to_last(struct prb_export *export, const struct one *items, size_t count)
{
    const struct prb_trace_event *events = export->trace.events;
    const struct one *last = items;
    for (size_t i = 1; i < count; i++)
        if (events[items[i].event].begin > events[last->event].begin)
            last = &items[i];
    for (size_t i = 0; i < count; i++)
        if (items[i].process != last->process &&
            events[items[i].event].begin < events[last->event].begin)
            prb_trace_add_arrow(&export->trace, items[i].event, last->event);
}

bool prb_export_collectives(struct prb_export *export, struct prb_error *err)
{
    PRB_AUTO(collected) struct collected all = {0};
    if (!prb_export_rows(export, "python.comm_collective", columns, false, take, &all, err))
        return false;
    if (all.count)
        qsort(all.items, all.count, sizeof *all.items, by_key);
    for (size_t first = 0, end; first < all.count; first = end) {
        for (end = first; end < all.count; end++)
            if (all.items[end].key != all.items[first].key)
                break;
        point_to_last(export, &all.items[first], end - first);
    }
    return true;
}
