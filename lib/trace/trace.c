/* Filling a timeline: see trace.h. */
#include "trace/trace.h"

#include <math.h>
#include <string.h>

#define PIDS_MAX 4194304 /* no process has a higher number (Linux) */

void prb_trace_deinit(struct prb_trace *trace)
{
    free(trace->processes);
    free(trace->tracks);
    free(trace->events);
    free(trace->notes);
    free(trace->values);
    free(trace->arrows);
    free(trace->texts);
    free(trace->order);
    prb_index_deinit(&trace->text_index);
    prb_arena_deinit(&trace->arena);
    *trace = (struct prb_trace){0};
}

int64_t prb_trace_ns(double seconds)
{
    double ns = seconds * 1e9;
    return isfinite(ns) && ns > 0 && ns < 0x1p62 ? (int64_t)ns : INT64_MIN;
}

/* Room for one more in an array; false: out of memory, now or before. */
#define ROOM(trace, array, name)                                                                   \
    (!(trace)->failed &&                                                                           \
     !((trace)->failed = !PRB_GROW((trace)->array, (trace)->name##_count, (trace)->name##_cap)))

/* ---- texts ---- */

static uint64_t text_hash(const void *items, uint32_t item)
{
    const char *text = ((const char *const *)items)[item];
    return prb_hash_bytes(text, strlen(text));
}

static bool text_same(const void *items, uint32_t item, const void *key)
{
    return strcmp(((const char *const *)items)[item], key) == 0;
}

static const struct prb_index_kind text_kind = {text_hash, text_same};

/* The number of a text, the same for the same text. */
static uint32_t text_of(struct prb_trace *trace, const char *text)
{
    uint64_t hash = prb_hash_bytes(text, strlen(text));
    uint32_t found = prb_index_find(&trace->text_index, &text_kind, trace->texts, hash, text);
    if (found != PRB_NO_ITEM || !ROOM(trace, texts, text))
        return found == PRB_NO_ITEM ? 0 : found;
    char *copy = prb_arena_strdup(&trace->arena, text);
    trace->failed = !copy;
    if (!copy)
        return 0;
    trace->texts[trace->text_count] = copy;
    uint32_t item = (uint32_t)trace->text_count++;
    trace->failed = !prb_index_add(&trace->text_index, &text_kind, trace->texts, hash, item);
    return item;
}

static const char *copy_of(struct prb_trace *trace, const char *text)
{
    const char *copy = prb_arena_strdup(&trace->arena, text);
    trace->failed |= !copy;
    return copy;
}

/* ---- processes and tracks ---- */

/* Programs know a process by its number alone: one that another host's has, too, is replaced. */
static pid_t number_of(const struct prb_trace *trace, pid_t pid)
{
    for (size_t i = 0; i < trace->process_count; i++)
        if (trace->processes[i].pid == pid)
            return PIDS_MAX + 1 + (pid_t)trace->process_count;
    return pid;
}

uint32_t prb_trace_process(struct prb_trace *trace, pid_t pid, const char *name, int order)
{
    if (!ROOM(trace, processes, process))
        return 0;
    trace->processes[trace->process_count] = (struct prb_trace_process){
        .pid = number_of(trace, pid), .name = copy_of(trace, name), .order = order};
    return (uint32_t)trace->process_count++;
}

static uint32_t add_track(struct prb_trace *trace, const struct prb_trace_track *track)
{
    if (!ROOM(trace, tracks, track))
        return 0;
    trace->tracks[trace->track_count] = *track;
    return (uint32_t)trace->track_count++;
}

uint32_t prb_trace_track(struct prb_trace *trace, uint32_t process, const char *name, int order)
{
    const struct prb_trace_track track = {
        .process = process, .name = copy_of(trace, name), .order = order};
    return add_track(trace, &track);
}

uint32_t prb_trace_thread(struct prb_trace *trace, uint32_t process, pid_t tid, const char *name,
                          int order)
{
    const struct prb_trace_track track = {
        .process = process, .name = copy_of(trace, name), .order = order, .tid = tid};
    return add_track(trace, &track);
}

uint32_t prb_trace_counter(struct prb_trace *trace, uint32_t process, const char *name,
                           const char *unit, int order)
{
    const struct prb_trace_track track = {.process = process,
                                          .name = copy_of(trace, name),
                                          .unit = copy_of(trace, unit),
                                          .order = order};
    return add_track(trace, &track);
}

/* ---- events ---- */

static uint32_t add_event(struct prb_trace *trace, const struct prb_trace_event *event,
                          const char *name)
{
    if (event->begin == INT64_MIN || event->end < event->begin ||
        trace->event_count >= PRB_TRACE_EVENTS_MAX) {
        trace->left_out++;
        trace->skipped = true;
        return PRB_TRACE_NONE;
    }
    trace->skipped = false;
    if (!ROOM(trace, events, event))
        return PRB_TRACE_NONE;
    trace->events[trace->event_count] = *event;
    trace->events[trace->event_count].name = text_of(trace, name);
    trace->events[trace->event_count].note = (uint32_t)trace->note_count;
    return (uint32_t)trace->event_count++;
}

uint32_t prb_trace_slice(struct prb_trace *trace, uint32_t track, const char *name, int64_t begin,
                         int64_t end, uint32_t depth)
{
    const struct prb_trace_event slice = {
        .track = track, .begin = begin, .end = end, .depth = depth};
    return add_event(trace, &slice, name);
}

uint32_t prb_trace_moment(struct prb_trace *trace, uint32_t track, const char *name, int64_t time)
{
    const struct prb_trace_event moment = {
        .track = track, .begin = time, .end = time, .moment = true};
    return add_event(trace, &moment, name);
}

static void add_note(struct prb_trace *trace, const struct prb_trace_note *note)
{
    if (trace->skipped || !trace->event_count || !ROOM(trace, notes, note))
        return;
    trace->notes[trace->note_count++] = *note;
    trace->events[trace->event_count - 1].note_count++;
}

void prb_trace_note_text(struct prb_trace *trace, const char *key, const char *text)
{
    struct prb_trace_note note = {.key = text_of(trace, key), .kind = PRB_TRACE_TEXT};
    note.text = text_of(trace, text);
    add_note(trace, &note);
}

void prb_trace_note_integer(struct prb_trace *trace, const char *key, int64_t value)
{
    struct prb_trace_note note = {.key = text_of(trace, key), .kind = PRB_TRACE_INTEGER};
    note.integer = value;
    add_note(trace, &note);
}

void prb_trace_note_real(struct prb_trace *trace, const char *key, double value)
{
    struct prb_trace_note note = {.key = text_of(trace, key), .kind = PRB_TRACE_REAL};
    note.real = value;
    add_note(trace, &note);
}

void prb_trace_add_value(struct prb_trace *trace, uint32_t counter, int64_t time, double value)
{
    if (time == INT64_MIN || !isfinite(value) || trace->value_count >= PRB_TRACE_EVENTS_MAX) {
        trace->left_out++;
        return;
    }
    if (ROOM(trace, values, value))
        trace->values[trace->value_count++] = (struct prb_trace_value){counter, time, value};
}

void prb_trace_add_arrow(struct prb_trace *trace, uint32_t from, uint32_t to)
{
    if (from != PRB_TRACE_NONE && to != PRB_TRACE_NONE && ROOM(trace, arrows, arrow))
        trace->arrows[trace->arrow_count++] = (struct prb_trace_arrow){from, to};
}

int64_t prb_trace_begin(const struct prb_trace *trace)
{
    int64_t begin = INT64_MAX;
    for (size_t i = 0; i < trace->event_count; i++)
        if (trace->events[i].begin < begin)
            begin = trace->events[i].begin;
    for (size_t i = 0; i < trace->value_count; i++)
        if (trace->values[i].time < begin)
            begin = trace->values[i].time;
    return begin == INT64_MAX ? 0 : begin;
}
