/*
 * pprof's profile (proto/profile.proto of google/pprof), as protocol buffers without compression:
 * its readers take these, too.  Values: samples, and nanoseconds; of memory blocks and bytes, named
 * as Go's heap profiles name them.
 */
#include "base/protobuf.h"
#include "profile/format/format.h"

/* Field numbers of profile.proto. */
enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE,
    PROFILE_MAPPING,
    PROFILE_LOCATION,
    PROFILE_FUNCTION,
    PROFILE_STRINGS,
    PROFILE_TIME = 9,
    PROFILE_DURATION,
    PROFILE_PERIOD_TYPE,
    PROFILE_PERIOD,
    PROFILE_COMMENT
};
enum { TYPE_TYPE = 1, TYPE_UNIT };
enum { SAMPLE_LOCATIONS = 1, SAMPLE_VALUES, SAMPLE_LABEL };
enum { LABEL_KEY = 1, LABEL_TEXT, LABEL_NUMBER };
enum { LOCATION_ID = 1, LOCATION_MAPPING, LOCATION_ADDRESS, LOCATION_LINE };
enum { LINE_FUNCTION = 1, LINE_LINE };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME, FUNCTION_FILE, FUNCTION_LINE };
enum {
    MAPPING_ID = 1,
    MAPPING_FILE = 5,
    MAPPING_HAS_FUNCTIONS = 7,
    MAPPING_HAS_FILES,
    MAPPING_HAS_LINES
};

struct writing {
    const struct prb_profile *profile;
    const struct prb_profile_style *style;
    struct prb_flame strings; /* its labels only */
    struct prb_buf out, part, inner;
};
static void writing_deinit(struct writing *w)
{
    prb_flame_deinit(&w->strings);
    prb_buf_deinit(&w->out);
    prb_buf_deinit(&w->part);
    prb_buf_deinit(&w->inner);
}
PRB_DEFINE_AUTO(writing, struct writing, writing_deinit)

static uint64_t text(struct writing *w, const char *text)
{
    return prb_flame_label(&w->strings, text ? text : "");
}

static void put_type(struct writing *w, unsigned field, const char *type, const char *unit)
{
    prb_proto_number(&w->part, TYPE_TYPE, text(w, type));
    prb_proto_number(&w->part, TYPE_UNIT, text(w, unit));
    prb_proto_message(&w->out, field, &w->part);
}

static void put_types(struct writing *w)
{
    enum prb_profile_mode mode = w->profile->mode;
    bool memory = prb_profile_is_of_memory(w->profile), live = mode == PRB_PROFILE_LIVE;
    put_type(w, PROFILE_SAMPLE_TYPE,
             !memory ? "samples"
             : live  ? "inuse_objects"
                     : "alloc_objects",
             "count");
    put_type(w, PROFILE_SAMPLE_TYPE,
             memory                    ? live ? "inuse_space" : "alloc_space"
             : mode == PRB_PROFILE_CPU ? "cpu"
                                       : "time",
             memory ? "bytes" : "nanoseconds");
}

static void put_label(struct writing *w, const char *key, const char *value, int64_t number)
{
    prb_proto_number(&w->inner, LABEL_KEY, text(w, key));
    if (value)
        prb_proto_number(&w->inner, LABEL_TEXT, text(w, value));
    else
        prb_proto_number(&w->inner, LABEL_NUMBER, (uint64_t)number);
    prb_proto_message(&w->part, SAMPLE_LABEL, &w->inner);
}

static void put_sample(struct writing *w, const struct prb_profile_weight *weight)
{
    const struct prb_profile *profile = w->profile;
    const struct prb_profile_thread *thread = &profile->threads[weight->thread];
    const struct prb_profile_process *process = &profile->processes[thread->process];
    for (uint32_t at = weight->node; at; at = profile->nodes[at].parent)
        prb_proto_varint(&w->inner, profile->nodes[at].frame + 1);
    prb_proto_message(&w->part, SAMPLE_LOCATIONS, &w->inner);
    prb_proto_varint(&w->inner, weight->samples);
    prb_proto_varint(&w->inner, weight->ns);
    prb_proto_message(&w->part, SAMPLE_VALUES, &w->inner);
    if (thread->name)
        put_label(w, "thread", thread->name, 0);
    put_label(w, "tid", NULL, thread->tid);
    put_label(w, "pid", NULL, process->pid);
    if (process->rank >= 0)
        put_label(w, "rank", NULL, process->rank);
    prb_proto_message(&w->out, PROFILE_SAMPLE, &w->part);
}

static void put_tables(struct writing *w)
{
    const struct prb_profile *profile = w->profile;
    prb_proto_number(&w->part, MAPPING_ID, 1);
    prb_proto_number(&w->part, MAPPING_FILE,
                     text(w, profile->process_count ? profile->processes[0].command : ""));
    prb_proto_number(&w->part, MAPPING_HAS_FUNCTIONS, 1);
    prb_proto_number(&w->part, MAPPING_HAS_FILES, 1);
    prb_proto_number(&w->part, MAPPING_HAS_LINES, 1);
    prb_proto_message(&w->out, PROFILE_MAPPING, &w->part);
    for (size_t i = 0; i < profile->frame_count; i++) {
        const struct prb_profile_frame *frame = &profile->frames[i];
        prb_proto_number(&w->part, LOCATION_ID, i + 1);
        prb_proto_number(&w->part, LOCATION_MAPPING, 1);
        prb_proto_number(&w->inner, LINE_FUNCTION, frame->function + 1);
        if (!w->style->nolineno)
            prb_proto_number(&w->inner, LINE_LINE,
                             (uint64_t)(w->style->function
                                            ? profile->functions[frame->function].first_line
                                            : frame->line));
        prb_proto_message(&w->part, LOCATION_LINE, &w->inner);
        prb_proto_message(&w->out, PROFILE_LOCATION, &w->part);
    }
    for (size_t i = 0; i < profile->function_count; i++) {
        const struct prb_profile_function *function = &profile->functions[i];
        prb_proto_number(&w->part, FUNCTION_ID, i + 1);
        prb_proto_number(&w->part, FUNCTION_NAME, text(w, function->qualname));
        prb_proto_number(&w->part, FUNCTION_SYSTEM_NAME, text(w, function->name));
        prb_proto_number(&w->part, FUNCTION_FILE, text(w, prb_label_file(function, w->style)));
        prb_proto_number(&w->part, FUNCTION_LINE, (uint64_t)function->first_line);
        prb_proto_message(&w->out, PROFILE_FUNCTION, &w->part);
    }
}

static bool write_pprof(const struct prb_profile *profile, const struct prb_profile_style *style,
                        FILE *out, struct prb_error *err)
{
    PRB_AUTO(writing) struct writing w = {.profile = profile, .style = style};
    PRB_AUTO(prb_buf) struct prb_buf counts = {0};
    prb_label_counts(&counts, profile);
    text(&w, ""); /* string 0 must be empty */
    put_types(&w);
    for (size_t i = 0; i < profile->weight_count; i++)
        put_sample(&w, &profile->weights[i]);
    put_tables(&w);
    prb_proto_number(&w.out, PROFILE_TIME, (uint64_t)(profile->start * 1e9));
    prb_proto_number(&w.out, PROFILE_DURATION, (uint64_t)(profile->seconds * 1e9));
    if (!prb_profile_is_of_memory(profile)) {
        put_type(&w, PROFILE_PERIOD_TYPE, "wall", "nanoseconds");
        prb_proto_number(&w.out, PROFILE_PERIOD, (uint64_t)(1e9 / profile->rate));
    }
    prb_proto_number(&w.out, PROFILE_COMMENT, text(&w, counts.data ? counts.data : ""));
    for (size_t i = 0; i < w.strings.label_count; i++)
        prb_proto_text(&w.out, PROFILE_STRINGS, w.strings.labels[i]);
    if (w.out.failed || w.part.failed || w.inner.failed || w.strings.failed)
        return prb_nomem(err);
    fwrite(w.out.data, 1, w.out.len, out);
    return true;
}

const struct prb_format prb_format_pprof = {
    .description = {"pprof", "", "protocol buffers for `go tool pprof` and the like", ".pb .pprof",
                    false},
    .write = write_pprof,
};
