/*
 * A timeline as a file for other programs: processes with tracks; on a track slices that nest,
 * moments, or the values of a counter; arrows between slices.
 *
 * It is filled in any order.  Writing it puts each track in order; slices of one track that overlap
 * without nesting go to tracks of their own.  Out of memory is sticky: prb_trace_write reports it.
 *
 * To add a format: NAME.c with its writer here, declared below; a reader of it in
 * tests/support/timeline.py.
 */
#ifndef PRB_TRACE_TRACE_H
#define PRB_TRACE_TRACE_H

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/index.h"

#define PRB_TRACE_EVENTS_MAX 8000000 /* of a trace: 50 bytes of memory each */
#define PRB_TRACE_NONE UINT32_MAX    /* no event: it was not taken */

/* Two times that differ by less are the same: seconds since the epoch as a double are exact to
 * 0.24 µs. */
#define PRB_TRACE_SAME_NS 1000

struct prb_trace_process {
    pid_t pid;
    const char *name;
    int order; /* the least first */
};

struct prb_trace_track {
    uint32_t process;
    const char *name;
    const char *unit;    /* of a counter's values, "" if none; NULL: it has slices */
    int order;           /* within its process: the least first */
    pid_t tid;           /* of the thread whose slices it has; 0: none, or several */
    size_t first, count; /* once in order: its events in trace->order, or its values */
};

/* What is said of an event beside its name. */
struct prb_trace_note {
    uint32_t key;
    enum { PRB_TRACE_TEXT, PRB_TRACE_INTEGER, PRB_TRACE_REAL } kind;
    union {
        uint32_t text;
        int64_t integer;
        double real;
    };
};

/* A slice, or a moment.  Times are ns since the epoch. */
struct prb_trace_event {
    uint32_t track, name;
    int64_t begin, end;
    uint32_t note, note_count;
    uint32_t depth; /* how deep it is within others; 0: not known */
    bool moment;
};

struct prb_trace_value {
    uint32_t track;
    int64_t time;
    double value;
};

struct prb_trace_arrow {
    uint32_t from, to; /* events */
};

struct prb_trace {
    struct prb_trace_process *processes;
    struct prb_trace_track *tracks;
    struct prb_trace_event *events;
    struct prb_trace_note *notes;
    struct prb_trace_value *values;
    struct prb_trace_arrow *arrows;
    const char **texts; /* names, keys and texts of notes, by their numbers */
    size_t process_count, process_cap, track_count, track_cap, event_count, event_cap;
    size_t note_count, note_cap, value_count, value_cap, arrow_count, arrow_cap;
    size_t text_count, text_cap;
    uint64_t left_out;  /* events and values beyond the cap, or without a time */
    bool skipped;       /* the last event was left out: its notes are, too */
    const char *origin; /* one line: what this is a trace of, and by whom; NULL: none */
    uint32_t *order;    /* events by track and time, once in order */
    struct prb_arena arena;
    struct prb_index text_index;
    bool failed;
};

/* Begins as {0}. */
void prb_trace_deinit(struct prb_trace *trace);
PRB_DEFINE_AUTO(prb_trace, struct prb_trace, prb_trace_deinit)

/* Seconds since the epoch as its nanoseconds; INT64_MIN: not a time. */
int64_t prb_trace_ns(double seconds);

/* All texts are copied.  Of two processes with one pid, of two hosts, the later one gets another. */
uint32_t prb_trace_process(struct prb_trace *trace, pid_t pid, const char *name, int order);
uint32_t prb_trace_track(struct prb_trace *trace, uint32_t process, const char *name, int order);
/* The same of a thread; one track for each. */
uint32_t prb_trace_thread(struct prb_trace *trace, uint32_t process, pid_t tid, const char *name,
                          int order);
uint32_t prb_trace_counter(struct prb_trace *trace, uint32_t process, const char *name,
                           const char *unit, int order);
/* Its number, or PRB_TRACE_NONE: it is left out, and counted.  depth: see struct prb_trace_event. */
uint32_t prb_trace_slice(struct prb_trace *trace, uint32_t track, const char *name, int64_t begin,
                         int64_t end, uint32_t depth);
uint32_t prb_trace_moment(struct prb_trace *trace, uint32_t track, const char *name, int64_t time);
/* Of the event that was made last. */
void prb_trace_note_text(struct prb_trace *trace, const char *key, const char *text);
void prb_trace_note_integer(struct prb_trace *trace, const char *key, int64_t value);
void prb_trace_note_real(struct prb_trace *trace, const char *key, double value);
void prb_trace_add_value(struct prb_trace *trace, uint32_t counter, int64_t time, double value);
/* From one slice to another that begins later; both are numbers of slices. */
void prb_trace_add_arrow(struct prb_trace *trace, uint32_t from, uint32_t to);

/* ---- writing ---- */

/* The earliest time of all; 0: there is none. */
int64_t prb_trace_begin(const struct prb_trace *trace);

/* Write it to out, whose errors the caller checks.  Only once: the trace is put in order. */
typedef bool prb_trace_write_fn(struct prb_trace *trace, FILE *out, struct prb_error *err);
/* Perfetto's protocol buffers (protos/perfetto/trace of google/perfetto). */
prb_trace_write_fn prb_trace_write_perfetto;
/* Chrome's trace events, as JSON ("Trace Event Format"). */
prb_trace_write_fn prb_trace_write_chrome;

/* ---- for the writers (order.c) ---- */

/* Put the events of each track in order, nested; values by track and time.  NOMEM. */
bool prb_trace_sort(struct prb_trace *trace, struct prb_error *err);
/*
 * The begins and ends of a track's slices, and its moments, in the order of their times: each(begin
 * true) for begins and moments.  Only after prb_trace_sort.
 */
typedef void prb_trace_edge_fn(void *context, uint32_t event, bool begin);
bool prb_trace_edges(const struct prb_trace *trace, const struct prb_trace_track *track,
                     prb_trace_edge_fn *each, void *context, struct prb_error *err);

#endif
