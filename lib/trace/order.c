/*
 * A timeline put in order: slices of a track nest, and those that overlap otherwise get tracks of
 * their own ("… 2").  Times that are the same but for rounding are made the same: an inner slice
 * never ends after the one around it, a slice never begins before the one before it has ended.
 */
#include <stdlib.h>
#include <string.h>

#include "trace/trace.h"

#define LANES_MAX 64
#define DEPTH_MAX 1024

/* Slices that are open at one moment. */
struct lane {
    uint32_t open[DEPTH_MAX];
    size_t depth;
    uint32_t track;
};

/* ---- the order of events ---- */

/* qsort has no context of its own; qsort_r's is the trace. */
static int by_time(const void *a, const void *b, void *context)
{
    const struct prb_trace *trace = context;
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const struct prb_trace_event *x = &trace->events[i], *y = &trace->events[k];
    if (x->track != y->track)
        return x->track < y->track ? -1 : 1;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end)
        return x->end > y->end ? -1 : 1; /* the outer one first */
    if (x->depth != y->depth)
        return x->depth < y->depth ? -1 : 1;
    return i < k ? -1 : i > k;
}

static int by_track(const void *a, const void *b)
{
    const struct prb_trace_value *x = a, *y = b;
    if (x->track != y->track)
        return x->track < y->track ? -1 : 1;
    return x->time < y->time ? -1 : x->time > y->time;
}

static bool make_order(struct prb_trace *trace)
{
    free(trace->order);
    trace->order = malloc((trace->event_count + 1) * sizeof *trace->order);
    if (!trace->order)
        return false;
    for (size_t i = 0; i < trace->event_count; i++)
        trace->order[i] = (uint32_t)i;
    qsort_r(trace->order, trace->event_count, sizeof *trace->order, by_time, trace);
    return true;
}

/* An outer slice whose begin was rounded up past that of its first inner one goes before it. */
static void lift_outer(struct prb_trace *trace, size_t first, size_t end)
{
    for (size_t i = first + 1; i < end; i++)
        for (size_t k = i; k > first; k--) {
            struct prb_trace_event *outer = &trace->events[trace->order[k]];
            const struct prb_trace_event *inner = &trace->events[trace->order[k - 1]];
            uint32_t moved = trace->order[k];
            if (outer->depth >= inner->depth || outer->begin - inner->begin > PRB_TRACE_SAME_NS ||
                outer->end + PRB_TRACE_SAME_NS < inner->end)
                break;
            outer->begin = inner->begin;
            trace->order[k] = trace->order[k - 1];
            trace->order[k - 1] = moved;
        }
}

/* ---- lanes ---- */

/* Close what has ended, and take the slice in if it nests.  False: it overlaps an open one. */
static bool take(struct prb_trace *trace, struct lane *lane, struct prb_trace_event *event)
{
    while (lane->depth) {
        struct prb_trace_event *top = &trace->events[lane->open[lane->depth - 1]];
        bool inside = event->end <= top->end && event->begin < top->end;
        if (inside || event->begin + PRB_TRACE_SAME_NS < top->end)
            break;
        if (top->end > event->begin)
            top->end = event->begin;
        lane->depth--;
    }
    if (lane->depth == DEPTH_MAX)
        return false;
    if (!lane->depth)
        return true;
    const struct prb_trace_event *top = &trace->events[lane->open[lane->depth - 1]];
    if (event->end > top->end + PRB_TRACE_SAME_NS)
        return false;
    if (event->end > top->end)
        event->end = top->end;
    return true;
}

static uint32_t make_lane(struct prb_trace *trace, uint32_t of, size_t number)
{
    const struct prb_trace_track *track = &trace->tracks[of];
    char name[280];
    snprintf(name, sizeof name, "%.240s %zu", track->name, number);
    return prb_trace_track(trace, track->process, name, track->order);
}

/* Give each event of a track its lane; one that finds none joins the last, cut to what is left. */
static bool spread(struct prb_trace *trace, struct lane *lanes, size_t first, size_t end)
{
    size_t count = 1;
    lanes[0].depth = 0;
    lanes[0].track = trace->events[trace->order[first]].track;
    for (size_t i = first; i < end; i++) {
        struct prb_trace_event *event = &trace->events[trace->order[i]];
        size_t at = 0;
        while (at < count && !take(trace, &lanes[at], event))
            at++;
        if (at == count && count == LANES_MAX) {
            trace->left_out++;
            event->track = PRB_TRACE_NONE;
            continue;
        }
        if (at == count) {
            lanes[count].depth = 0;
            lanes[count++].track = make_lane(trace, lanes[0].track, at + 1);
        }
        event->track = lanes[at].track;
        if (!event->moment)
            lanes[at].open[lanes[at].depth++] = trace->order[i];
    }
    return !trace->failed;
}

/* Of events or of values: where those of each track begin, and how many they are. */
static void note_range(struct prb_trace *trace, uint32_t track, size_t at)
{
    if (track == PRB_TRACE_NONE)
        return;
    if (!trace->tracks[track].count++)
        trace->tracks[track].first = at;
}

bool prb_trace_sort(struct prb_trace *trace, struct prb_error *err)
{
    PRB_AUTO_FREE struct lane *lanes = calloc(LANES_MAX, sizeof *lanes);
    if (trace->failed || !lanes || !make_order(trace))
        return prb_nomem(err);
    for (size_t first = 0, end; first < trace->event_count; first = end) {
        uint32_t track = trace->events[trace->order[first]].track;
        for (end = first; end < trace->event_count; end++)
            if (trace->events[trace->order[end]].track != track)
                break;
        lift_outer(trace, first, end);
        if (!spread(trace, lanes, first, end))
            return prb_nomem(err);
    }
    if (!make_order(trace)) /* by lanes now */
        return prb_nomem(err);
    if (trace->value_count)
        qsort(trace->values, trace->value_count, sizeof *trace->values, by_track);
    for (size_t i = 0; i < trace->event_count; i++)
        note_range(trace, trace->events[trace->order[i]].track, i);
    for (size_t i = 0; i < trace->value_count; i++)
        note_range(trace, trace->values[i].track, i);
    return true;
}

/* ---- begins and ends ---- */

static void close_until(const struct prb_trace *trace, uint32_t *open, size_t *depth, int64_t time,
                        prb_trace_edge_fn *each, void *context)
{
    while (*depth && trace->events[open[*depth - 1]].end <= time)
        each(context, open[--*depth], false);
}

bool prb_trace_edges(const struct prb_trace *trace, const struct prb_trace_track *track,
                     prb_trace_edge_fn *each, void *context, struct prb_error *err)
{
    PRB_AUTO_FREE uint32_t *open = malloc(DEPTH_MAX * sizeof *open);
    size_t depth = 0;
    if (!open)
        return prb_nomem(err);
    for (size_t i = 0; i < track->count; i++) {
        uint32_t index = trace->order[track->first + i];
        close_until(trace, open, &depth, trace->events[index].begin, each, context);
        each(context, index, true);
        if (!trace->events[index].moment)
            open[depth++] = index;
    }
    close_until(trace, open, &depth, INT64_MAX, each, context);
    return true;
}
