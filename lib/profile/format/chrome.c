/*
 * Chrome's trace events, as chrome://tracing and Perfetto read them ("Trace Event Format"): each
 * call is a complete event ("X"), times in µs since the profile's start.
 */
#include "profile/format/format.h"

struct writing {
    FILE *out;
    const struct prb_profile *profile;
    const struct prb_profile_style *style;
};

static int id_of(const struct prb_profile_thread *thread, uint32_t index)
{
    return thread->tid ? (int)thread->tid : (int)(1000000000 + index);
}

static void put_names(struct writing *w)
{
    const struct prb_profile *profile = w->profile;
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    for (uint32_t i = 0; i < profile->process_count; i++) {
        text.len = 0;
        prb_label_process(&text, &profile->processes[i], w->style);
        fprintf(w->out,
                "{\"ph\":\"M\",\"pid\":%d,\"tid\":0,\"name\":\"process_name\",\"args\":{\"name\":",
                (int)profile->processes[i].pid);
        prb_put_json(w->out, text.data ? text.data : "");
        fputs("}},\n", w->out);
    }
    for (uint32_t i = 0; i < profile->thread_count; i++) {
        const struct prb_profile_thread *thread = &profile->threads[i];
        text.len = 0;
        prb_label_thread(&text, thread);
        fprintf(w->out,
                "{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":",
                (int)profile->processes[thread->process].pid, id_of(thread, i));
        prb_put_json(w->out, text.data ? text.data : "");
        fputs("}},\n", w->out);
    }
}

static bool put_call(void *context, const struct prb_profile_call *call)
{
    struct writing *w = context;
    const struct prb_profile_thread *thread = &w->profile->threads[call->thread];
    const struct prb_profile_function *function = &w->profile->functions[call->function];
    fprintf(w->out,
            "{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"cat\":\"%s\",\"name\":",
            (int)w->profile->processes[thread->process].pid, id_of(thread, call->thread),
            call->start * 1e6, (call->end - call->start) * 1e6,
            function->kind == PRB_FRAME_NATIVE ? "native" : "python");
    prb_put_json(w->out, function->qualname ? function->qualname : "?");
    fputs(",\"args\":{\"file\":", w->out);
    prb_put_json(w->out, prb_label_file(function, w->style));
    fprintf(w->out, ",\"line\":%d,\"samples\":%llu}},\n", call->line,
            (unsigned long long)call->samples);
    return true;
}

static bool write_chrome(const struct prb_profile *profile, const struct prb_profile_style *style,
                         FILE *out, struct prb_error *err)
{
    struct writing w = {out, profile, style};
    PRB_AUTO(prb_buf) struct prb_buf counts = {0};
    prb_label_counts(&counts, profile);
    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n", out);
    put_names(&w);
    if (!prb_profile_each_call(profile, put_call, &w, err))
        return false;
    fprintf(out,
            "{\"ph\":\"i\",\"s\":\"g\",\"pid\":%d,\"tid\":0,\"ts\":0,\"name\":\"begin of the "
            "profile\"}],\n"
            "\"otherData\":{\"probing\":",
            profile->process_count ? (int)profile->processes[0].pid : 0);
    prb_put_json(out, counts.data ? counts.data : "");
    fputs("}}\n", out);
    return true;
}

const struct prb_format prb_format_chrome = {
    .description = {"chrome", "chrometrace", "trace events for Perfetto and chrome://tracing",
                    ".trace.json .trace .perfetto.json", true},
    .write = write_chrome,
};
