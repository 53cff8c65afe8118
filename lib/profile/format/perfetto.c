/* Perfetto's trace (lib/trace/perfetto.c): each call is a slice of its thread. */
#include "profile/format/format.h"
#include "trace/trace.h"

struct writing {
    const struct prb_profile *profile;
    const struct prb_profile_style *style;
    struct prb_trace trace;
    uint32_t *tracks; /* by thread of the profile */
};

static void writing_deinit(struct writing *w)
{
    prb_trace_deinit(&w->trace);
    free(w->tracks);
}
PRB_DEFINE_AUTO(writing, struct writing, writing_deinit)

static bool add_tracks(struct writing *w)
{
    const struct prb_profile *profile = w->profile;
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    w->tracks = calloc(profile->thread_count + 1, sizeof *w->tracks);
    for (uint32_t i = 0; i < profile->process_count; i++) {
        text.len = 0;
        prb_label_process(&text, &profile->processes[i], w->style);
        prb_trace_process(&w->trace, profile->processes[i].pid, text.data ? text.data : "", (int)i);
    }
    for (uint32_t i = 0; w->tracks && i < profile->thread_count; i++) {
        const struct prb_profile_thread *thread = &profile->threads[i];
        text.len = 0;
        prb_label_thread(&text, thread);
        w->tracks[i] = prb_trace_thread(&w->trace, thread->process, thread->tid,
                                        text.data ? text.data : "", (int)i);
    }
    return w->tracks && prb_buf_ok(&text);
}

static bool put_call(void *context, const struct prb_profile_call *call)
{
    struct writing *w = context;
    const struct prb_profile_function *function = &w->profile->functions[call->function];
    double start = w->profile->start;
    prb_trace_slice(
        &w->trace, w->tracks[call->thread], function->qualname ? function->qualname : "?",
        prb_trace_ns(start + call->start), prb_trace_ns(start + call->end), call->depth + 1);
    prb_trace_note_text(&w->trace, "file", prb_label_file(function, w->style));
    prb_trace_note_integer(&w->trace, "line", call->line);
    prb_trace_note_integer(&w->trace, "samples", (int64_t)call->samples);
    return !w->trace.failed;
}

static bool write_perfetto(const struct prb_profile *profile, const struct prb_profile_style *style,
                           FILE *out, struct prb_error *err)
{
    PRB_AUTO(writing) struct writing w = {.profile = profile, .style = style};
    if (!add_tracks(&w))
        return prb_nomem(err);
    return prb_profile_each_call(profile, put_call, &w, err) &&
           prb_trace_write_perfetto(&w.trace, out, err);
}

const struct prb_format prb_format_perfetto = {
    .description = {"perfetto", "pftrace", "a timeline for ui.perfetto.dev",
                    ".pftrace .perfetto-trace", true},
    .write = write_perfetto,
};
