/*
 * A timeline as Perfetto's trace.  Each track is a sequence of packets of its own: its default
 * track, its names by number, and a clock that counts on from packet to packet, so that a slice
 * costs some 25 bytes.  Field numbers are those of protos/perfetto/trace/ of google/perfetto.
 */
#include <stdlib.h>
#include <string.h>

#include "base/protobuf.h"
#include "trace/trace.h"

enum { TRACE_PACKET = 1 };
enum {
    PACKET_CLOCK_SNAPSHOT = 6,
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE = 10,
    PACKET_TRACK_EVENT,
    PACKET_INTERNED,
    PACKET_FLAGS,
    PACKET_CLOCK = 58,
    PACKET_DEFAULTS,
    PACKET_TRACK
};
enum { FLAG_STATE_CLEARED = 1 };
enum { DEFAULTS_EVENT = 11, DEFAULTS_CLOCK = 58 };
enum { SNAPSHOT_CLOCK = 1, SNAPSHOT_PRIMARY };
enum { CLOCK_ID = 1, CLOCK_TIMESTAMP, CLOCK_IS_INCREMENTAL };
enum { CLOCK_OF_DAY = 1, CLOCK_OF_SEQUENCE = 64 };
enum {
    TRACK_UUID = 1,
    TRACK_NAME,
    TRACK_PROCESS,
    TRACK_THREAD,
    TRACK_PARENT,
    TRACK_COUNTER = 8,
    TRACK_ORDERING = 11,
    TRACK_RANK
};
enum { ORDERING_EXPLICIT = 3 };
enum { PROCESS_PID = 1, PROCESS_SORT = 3, PROCESS_NAME = 6 };
enum { THREAD_PID = 1, THREAD_TID, THREAD_NAME = 5 };
enum { COUNTER_UNIT_NAME = 6 };
enum {
    EVENT_NOTE = 4,
    EVENT_TYPE = 9,
    EVENT_NAME,
    EVENT_TRACK,
    EVENT_VALUE = 44,
    EVENT_FLOW = 47,
    EVENT_FLOW_END
};
enum { TYPE_BEGIN = 1, TYPE_END, TYPE_MOMENT, TYPE_VALUE };
enum { NOTE_KEY = 1, NOTE_INTEGER = 4, NOTE_REAL, NOTE_TEXT = 17 };
enum { INTERNED_NAMES = 2, INTERNED_KEYS, INTERNED_TEXTS = 29 };
enum { ENTRY_NUMBER = 1, ENTRY_TEXT };

/* Texts that a sequence has numbers for, of one kind. */
struct numbers {
    uint32_t *of; /* by text: its number; 0: none yet */
    uint32_t count;
    unsigned field;
};

/* Arrows of an event: from … from + count in writing's list. */
struct arrows {
    uint32_t event, other, number;
    bool ends;
};

struct writing {
    struct prb_trace *trace;
    FILE *out;
    struct prb_buf packet, event, part, interned, whole;
    struct numbers names, keys, texts;
    uint32_t *used; /* texts that have a number in this sequence */
    size_t used_count;
    struct arrows *arrows; /* by event */
    size_t arrow_count;
    uint64_t sequence;
    int64_t begin, last; /* of the trace; of the packet before */
};

static void writing_deinit(struct writing *w)
{
    prb_buf_deinit(&w->packet);
    prb_buf_deinit(&w->event);
    prb_buf_deinit(&w->part);
    prb_buf_deinit(&w->interned);
    prb_buf_deinit(&w->whole);
    free(w->names.of);
    free(w->keys.of);
    free(w->texts.of);
    free(w->used);
    free(w->arrows);
}
PRB_DEFINE_AUTO(writing, struct writing, writing_deinit)

/* uuid 0 is the trace's own track. */
static uint64_t uuid_of_process(uint32_t process) { return process + 1; }
static uint64_t uuid_of_track(const struct writing *w, uint32_t track)
{
    return w->trace->process_count + track + 1;
}

static void end_packet(struct writing *w)
{
    prb_proto_message(&w->whole, TRACE_PACKET, &w->packet);
    if (w->whole.failed)
        return;
    fwrite(w->whole.data, 1, w->whole.len, w->out);
    w->whole.len = 0;
}

/* ---- names ---- */

static uint32_t number_of(struct writing *w, struct numbers *numbers, uint32_t text)
{
    if (numbers->of[text])
        return numbers->of[text];
    const char *name = w->trace->texts[text];
    numbers->of[text] = ++numbers->count;
    prb_proto_number(&w->part, ENTRY_NUMBER, numbers->count);
    prb_proto_text(&w->part, ENTRY_TEXT, name);
    prb_proto_message(&w->interned, numbers->field, &w->part);
    w->used[w->used_count++] = text;
    return numbers->count;
}

static void forget_numbers(struct writing *w)
{
    for (size_t i = 0; i < w->used_count; i++)
        w->names.of[w->used[i]] = w->keys.of[w->used[i]] = w->texts.of[w->used[i]] = 0;
    w->used_count = 0;
    w->names.count = w->keys.count = w->texts.count = 0;
}

/* ---- sequences ---- */

static void put_clock(struct writing *w, uint64_t id, uint64_t time, bool incremental)
{
    struct prb_buf *snapshot = &w->event;
    prb_proto_number(&w->part, CLOCK_ID, id);
    prb_proto_number(&w->part, CLOCK_TIMESTAMP, time);
    if (incremental)
        prb_proto_number(&w->part, CLOCK_IS_INCREMENTAL, true);
    prb_proto_message(snapshot, SNAPSHOT_CLOCK, &w->part);
}

/* Times of the sequence count from the trace's begin on. */
static void begin_sequence(struct writing *w, uint32_t track)
{
    w->sequence++;
    w->last = w->begin;
    forget_numbers(w);
    prb_proto_number(&w->packet, PACKET_SEQUENCE, w->sequence);
    prb_proto_number(&w->packet, PACKET_FLAGS, FLAG_STATE_CLEARED);
    put_clock(w, CLOCK_OF_DAY, (uint64_t)w->begin, false);
    put_clock(w, CLOCK_OF_SEQUENCE, 0, true);
    prb_proto_number(&w->event, SNAPSHOT_PRIMARY, CLOCK_OF_DAY);
    prb_proto_message(&w->packet, PACKET_CLOCK_SNAPSHOT, &w->event);
    prb_proto_number(&w->part, EVENT_TRACK, uuid_of_track(w, track));
    prb_proto_message(&w->event, DEFAULTS_EVENT, &w->part);
    prb_proto_number(&w->event, DEFAULTS_CLOCK, CLOCK_OF_SEQUENCE);
    prb_proto_message(&w->packet, PACKET_DEFAULTS, &w->event);
    end_packet(w);
}

static void put_process(struct writing *w, uint32_t index)
{
    const struct prb_trace_process *process = &w->trace->processes[index];
    prb_proto_number(&w->event, TRACK_UUID, uuid_of_process(index));
    prb_proto_number(&w->part, PROCESS_PID, (uint64_t)process->pid);
    prb_proto_number(&w->part, PROCESS_SORT, (uint64_t)process->order);
    prb_proto_text(&w->part, PROCESS_NAME, process->name);
    prb_proto_message(&w->event, TRACK_PROCESS, &w->part);
    prb_proto_number(&w->event, TRACK_ORDERING, ORDERING_EXPLICIT);
    prb_proto_message(&w->packet, PACKET_TRACK, &w->event);
    end_packet(w);
}

static void put_track(struct writing *w, uint32_t index)
{
    const struct prb_trace_track *track = &w->trace->tracks[index];
    prb_proto_number(&w->event, TRACK_UUID, uuid_of_track(w, index));
    if (track->tid) {
        prb_proto_number(&w->part, THREAD_PID, (uint64_t)w->trace->processes[track->process].pid);
        prb_proto_number(&w->part, THREAD_TID, (uint64_t)track->tid);
        prb_proto_text(&w->part, THREAD_NAME, track->name);
        prb_proto_message(&w->event, TRACK_THREAD, &w->part);
    } else {
        prb_proto_text(&w->event, TRACK_NAME, track->name);
        prb_proto_number(&w->event, TRACK_PARENT, uuid_of_process(track->process));
    }
    if (track->unit) {
        if (*track->unit)
            prb_proto_text(&w->part, COUNTER_UNIT_NAME, track->unit);
        prb_proto_message(&w->event, TRACK_COUNTER, &w->part);
    }
    prb_proto_number(&w->event, TRACK_RANK, (uint64_t)track->order);
    prb_proto_message(&w->packet, PACKET_TRACK, &w->event);
    end_packet(w);
}

/* ---- events ---- */

static void put_head(struct writing *w, int64_t time)
{
    prb_proto_number(&w->packet, PACKET_TIMESTAMP, (uint64_t)(time - w->last));
    prb_proto_number(&w->packet, PACKET_SEQUENCE, w->sequence);
    w->last = time;
}

static void put_tail(struct writing *w)
{
    prb_proto_message(&w->packet, PACKET_TRACK_EVENT, &w->event);
    if (w->interned.len)
        prb_proto_message(&w->packet, PACKET_INTERNED, &w->interned);
    end_packet(w);
}

static void put_note(struct writing *w, const struct prb_trace_note *note)
{
    uint32_t key = number_of(w, &w->keys, note->key);
    uint32_t text = note->kind == PRB_TRACE_TEXT ? number_of(w, &w->texts, note->text) : 0;
    prb_proto_number(&w->part, NOTE_KEY, key);
    if (note->kind == PRB_TRACE_TEXT)
        prb_proto_number(&w->part, NOTE_TEXT, text);
    else if (note->kind == PRB_TRACE_INTEGER)
        prb_proto_number(&w->part, NOTE_INTEGER, (uint64_t)note->integer);
    else
        prb_proto_double(&w->part, NOTE_REAL, note->real);
    prb_proto_message(&w->event, EVENT_NOTE, &w->part);
}

static int by_event(const void *a, const void *b)
{
    const struct arrows *x = a, *y = b;
    if (x->event != y->event)
        return x->event < y->event ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* Each arrow stands at both of its events. */
static bool index_arrows(struct writing *w)
{
    const struct prb_trace *trace = w->trace;
    w->arrows = malloc((2 * trace->arrow_count + 1) * sizeof *w->arrows);
    if (!w->arrows)
        return false;
    for (size_t i = 0; i < trace->arrow_count; i++) {
        const struct prb_trace_arrow *arrow = &trace->arrows[i];
        w->arrows[w->arrow_count++] =
            (struct arrows){arrow->from, arrow->to, (uint32_t)i + 1, false};
        w->arrows[w->arrow_count++] =
            (struct arrows){arrow->to, arrow->from, (uint32_t)i + 1, true};
    }
    qsort(w->arrows, w->arrow_count, sizeof *w->arrows, by_event);
    return true;
}

static void put_arrows(struct writing *w, uint32_t event)
{
    size_t low = 0, high = w->arrow_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (w->arrows[middle].event < event)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < w->arrow_count && w->arrows[low].event == event; low++)
        prb_proto_fixed64(&w->event, w->arrows[low].ends ? EVENT_FLOW_END : EVENT_FLOW,
                          w->arrows[low].number);
}

static void put_edge(void *context, uint32_t index, bool begin)
{
    struct writing *w = context;
    const struct prb_trace_event *event = &w->trace->events[index];
    put_head(w, begin ? event->begin : event->end);
    prb_proto_number(&w->event, EVENT_TYPE,
                     event->moment ? TYPE_MOMENT
                     : begin       ? TYPE_BEGIN
                                   : TYPE_END);
    if (begin) {
        prb_proto_number(&w->event, EVENT_NAME, number_of(w, &w->names, event->name));
        for (uint32_t i = 0; i < event->note_count; i++)
            put_note(w, &w->trace->notes[event->note + i]);
        put_arrows(w, index);
    }
    put_tail(w);
}

static void put_values(struct writing *w, const struct prb_trace_track *track)
{
    for (size_t i = 0; i < track->count; i++) {
        const struct prb_trace_value *value = &w->trace->values[track->first + i];
        put_head(w, value->time);
        prb_proto_number(&w->event, EVENT_TYPE, TYPE_VALUE);
        prb_proto_double(&w->event, EVENT_VALUE, value->value);
        put_tail(w);
    }
}

static bool writing_init(struct writing *w)
{
    size_t texts = w->trace->text_count + 1;
    w->names.of = calloc(texts, sizeof *w->names.of);
    w->keys.of = calloc(texts, sizeof *w->keys.of);
    w->texts.of = calloc(texts, sizeof *w->texts.of);
    w->used = calloc(3 * texts, sizeof *w->used);
    w->names.field = INTERNED_NAMES;
    w->keys.field = INTERNED_KEYS;
    w->texts.field = INTERNED_TEXTS;
    return w->names.of && w->keys.of && w->texts.of && w->used && index_arrows(w);
}

bool prb_trace_write_perfetto(struct prb_trace *trace, FILE *out, struct prb_error *err)
{
    PRB_AUTO(writing) struct writing w = {.trace = trace, .out = out};
    if (!prb_trace_sort(trace, err))
        return false;
    if (!writing_init(&w))
        return prb_nomem(err);
    w.begin = prb_trace_begin(trace);
    for (uint32_t i = 0; i < trace->process_count; i++)
        put_process(&w, i);
    for (uint32_t i = 0; i < trace->track_count; i++) {
        const struct prb_trace_track *track = &trace->tracks[i];
        if (!track->count)
            continue;
        put_track(&w, i);
        begin_sequence(&w, i);
        if (track->unit)
            put_values(&w, track);
        else if (!prb_trace_edges(trace, track, put_edge, &w, err))
            return false;
    }
    if (w.whole.failed || w.packet.failed || w.event.failed || w.part.failed || w.interned.failed)
        return prb_nomem(err);
    return true;
}
