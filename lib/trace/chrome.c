/*
 * A timeline as Chrome's trace events, which chrome://tracing and Perfetto read: each slice is a
 * complete event ("X"), times in µs since the trace's begin.  A track is a thread of its process.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/json_text.h"
#include "trace/trace.h"

struct writing {
    const struct prb_trace *trace;
    FILE *out;
    struct prb_buf text;
    int64_t begin;
    uint32_t track;
};

static void writing_deinit(struct writing *w) { prb_buf_deinit(&w->text); }
PRB_DEFINE_AUTO(writing, struct writing, writing_deinit)

static void put_text(struct writing *w, const char *text)
{
    w->text.len = 0;
    prb_json_add_text(&w->text, text, strlen(text));
    fputs(w->text.data ? w->text.data : "\"\"", w->out);
}

static double us(const struct writing *w, int64_t time) { return (double)(time - w->begin) * 1e-3; }

static int pid_of(const struct writing *w, uint32_t track)
{
    return (int)w->trace->processes[w->trace->tracks[track].process].pid;
}

/* The head of an event; its fields follow. */
static void put_head(struct writing *w, const char *phase, int pid, uint32_t track)
{
    fprintf(w->out, "{\"ph\":\"%s\",\"pid\":%d,\"tid\":%" PRIu32, phase, pid, track + 1);
}

/* What is said of a process or of a track. */
static void put_about(struct writing *w, int pid, uint32_t track, const char *what,
                      const char *name, int order)
{
    put_head(w, "M", pid, track);
    fprintf(w->out, ",\"name\":\"%s_name\",\"args\":{\"name\":", what);
    put_text(w, name);
    fputs("}},\n", w->out);
    put_head(w, "M", pid, track);
    fprintf(w->out, ",\"name\":\"%s_sort_index\",\"args\":{\"sort_index\":%d}},\n", what, order);
}

static void put_note(struct writing *w, const struct prb_trace_note *note)
{
    put_text(w, w->trace->texts[note->key]);
    fputc(':', w->out);
    if (note->kind == PRB_TRACE_TEXT)
        put_text(w, w->trace->texts[note->text]);
    else if (note->kind == PRB_TRACE_INTEGER)
        fprintf(w->out, "%" PRId64, note->integer);
    else if (isfinite(note->real))
        fprintf(w->out, "%.9g", note->real);
    else
        fputs("null", w->out);
}

static void put_edge(void *context, uint32_t index, bool begin)
{
    struct writing *w = context;
    const struct prb_trace_event *event = &w->trace->events[index];
    if (!begin)
        return;
    put_head(w, event->moment ? "i" : "X", pid_of(w, w->track), w->track);
    fprintf(w->out, ",\"ts\":%.3f,", us(w, event->begin));
    if (event->moment)
        fputs("\"s\":\"t\",\"name\":", w->out);
    else
        fprintf(w->out, "\"dur\":%.3f,\"name\":", (double)(event->end - event->begin) * 1e-3);
    put_text(w, w->trace->texts[event->name]);
    for (uint32_t i = 0; i < event->note_count; i++) {
        fputs(i ? "," : ",\"args\":{", w->out);
        put_note(w, &w->trace->notes[event->note + i]);
    }
    fputs(event->note_count ? "}},\n" : "},\n", w->out);
}

static void put_values(struct writing *w, const struct prb_trace_track *track)
{
    for (size_t i = 0; i < track->count; i++) {
        const struct prb_trace_value *value = &w->trace->values[track->first + i];
        put_head(w, "C", pid_of(w, w->track), w->track);
        fprintf(w->out, ",\"ts\":%.3f,\"name\":", us(w, value->time));
        put_text(w, track->name);
        fputs(",\"args\":{", w->out);
        put_text(w, *track->unit ? track->unit : "value");
        fprintf(w->out, ":%.9g}},\n", value->value);
    }
}

/* An arrow from within a slice to within another, by a pair of events. */
static void put_arrow(struct writing *w, size_t number)
{
    const struct prb_trace_arrow *arrow = &w->trace->arrows[number];
    const struct prb_trace_event *from = &w->trace->events[arrow->from],
                                 *to = &w->trace->events[arrow->to];
    if (from->track == PRB_TRACE_NONE || to->track == PRB_TRACE_NONE)
        return;
    put_head(w, "s", pid_of(w, from->track), from->track);
    fprintf(w->out, ",\"ts\":%.3f,\"id\":%zu,\"cat\":\"wait\",\"name\":\"waits for\"},\n",
            us(w, from->begin), number + 1);
    put_head(w, "f", pid_of(w, to->track), to->track);
    fprintf(w->out,
            ",\"bp\":\"e\",\"ts\":%.3f,\"id\":%zu,\"cat\":\"wait\",\"name\":\"waits for\"},\n",
            us(w, to->begin), number + 1);
}

bool prb_trace_write_chrome(struct prb_trace *trace, FILE *out, struct prb_error *err)
{
    PRB_AUTO(writing) struct writing w = {.trace = trace, .out = out};
    if (!prb_trace_sort(trace, err))
        return false;
    w.begin = prb_trace_begin(trace);
    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n", out);
    for (size_t i = 0; i < trace->process_count; i++)
        put_about(&w, (int)trace->processes[i].pid, 0, "process", trace->processes[i].name,
                  trace->processes[i].order);
    for (w.track = 0; w.track < trace->track_count; w.track++) {
        const struct prb_trace_track *track = &trace->tracks[w.track];
        if (!track->count)
            continue;
        if (track->unit) {
            put_values(&w, track);
            continue;
        }
        put_about(&w, pid_of(&w, w.track), w.track, "thread", track->name, track->order);
        if (!prb_trace_edges(trace, track, put_edge, &w, err))
            return false;
    }
    for (size_t i = 0; i < trace->arrow_count; i++)
        put_arrow(&w, i);
    fprintf(out,
            "{\"ph\":\"i\",\"s\":\"g\",\"pid\":%d,\"tid\":0,\"ts\":0,\"name\":\"begin\"}],\n"
            "\"otherData\":{\"begin\":\"%.6f s since the epoch\",\"probing\":",
            trace->process_count ? (int)trace->processes[0].pid : 0, (double)w.begin * 1e-9);
    put_text(&w, trace->origin ? trace->origin : "");
    fputs("}}\n", out);
    return prb_buf_ok(&w.text) || prb_nomem(err);
}
