/*
 * speedscope's file format (https://www.speedscope.app/file-format-schema.json): a sampled profile
 * for each thread, stacks in the order of time.
 */
#include "profile/format/format.h"

struct writing {
    FILE *out;
    const struct prb_profile *profile;
    uint32_t thread;
    bool weights, any; /* weights: the second pass; any: an item was written */
    double end;
    double scale; /* of an interval's ns */
};

static void put_frames(FILE *out, const struct prb_profile *profile,
                       const struct prb_profile_style *style)
{
    fputs("\"shared\":{\"frames\":[", out);
    for (size_t i = 0; i < profile->frame_count; i++) {
        const struct prb_profile_frame *frame = &profile->frames[i];
        const struct prb_profile_function *function = &profile->functions[frame->function];
        int line = style->function ? function->first_line : frame->line;
        fputs(i ? ",\n{\"name\":" : "\n{\"name\":", out);
        prb_put_json(out, function->qualname ? function->qualname : "?");
        if (*prb_label_file(function, style)) {
            fputs(",\"file\":", out);
            prb_put_json(out, prb_label_file(function, style));
        }
        if (!style->nolineno && line > 0)
            fprintf(out, ",\"line\":%d", line);
        putc('}', out);
    }
    fputs("]},\n", out);
}

static void put_stack(FILE *out, const struct prb_profile *profile, uint32_t node)
{
    uint32_t depth = 0, at;
    for (at = node; at; at = profile->nodes[at].parent)
        depth++;
    PRB_AUTO_FREE uint32_t *frames = calloc(depth + 1, sizeof *frames);
    if (!frames)
        return;
    for (at = node; at; at = profile->nodes[at].parent)
        frames[--depth] = profile->nodes[at].frame;
    putc('[', out);
    for (at = node; at; at = profile->nodes[at].parent, depth++)
        fprintf(out, depth ? ",%u" : "%u", frames[depth]);
    putc(']', out);
}

static bool put_interval(void *context, const struct prb_profile_interval *interval)
{
    struct writing *w = context;
    if (interval->thread != w->thread)
        return true;
    if (w->any)
        putc(',', w->out);
    w->any = true;
    if (w->weights)
        fprintf(w->out, w->scale < 1 ? "%.9f" : "%.0f", (double)interval->ns * w->scale);
    else
        put_stack(w->out, w->profile, interval->node);
    w->end += (double)interval->ns * w->scale;
    return true;
}

static bool put_thread(struct writing *w, const struct prb_profile_style *style,
                       struct prb_error *err)
{
    const struct prb_profile_thread *thread = &w->profile->threads[w->thread];
    PRB_AUTO(prb_buf) struct prb_buf name = {0};
    if (w->profile->process_count > 1) {
        prb_label_process(&name, &w->profile->processes[thread->process], style);
        prb_buf_adds(&name, ", ");
    }
    prb_label_thread(&name, thread);
    fprintf(w->out, "{\"type\":\"sampled\",\"unit\":\"%s\",\"startValue\":0,\"name\":",
            w->scale < 1 ? "seconds" : "bytes");
    prb_put_json(w->out, name.data ? name.data : "");
    for (int pass = 0; pass < 2; pass++) {
        w->weights = pass;
        w->any = false;
        w->end = 0;
        fputs(pass ? "],\n\"weights\":[" : ",\n\"samples\":[", w->out);
        if (!prb_profile_each_interval(w->profile, put_interval, w, err))
            return false;
    }
    fprintf(w->out, w->scale < 1 ? "],\"endValue\":%.9f}" : "],\"endValue\":%.0f}", w->end);
    return true;
}

static bool write_speedscope(const struct prb_profile *profile,
                             const struct prb_profile_style *style, FILE *out,
                             struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf title = {0};
    PRB_AUTO_FREE bool *seen = calloc(profile->thread_count + 1, sizeof *seen);
    struct writing w = {
        .out = out, .profile = profile, .scale = prb_profile_is_of_memory(profile) ? 1 : 1e-9};
    bool any = false;
    if (!seen)
        return prb_nomem(err);
    for (size_t i = 0; i < profile->weight_count; i++)
        seen[profile->weights[i].thread] = true;
    prb_label_title(&title, profile, style);
    fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n\"exporter\":",
          out);
    fprintf(out, "\"probing %s\",\n\"name\":", prb_version());
    prb_put_json(out, title.data ? title.data : "");
    title.len = 0;
    prb_label_counts(&title, profile);
    fputs(",\n\"probing\":", out); /* the schema allows other keys */
    prb_put_json(out, title.data ? title.data : "");
    fputs(",\n\"activeProfileIndex\":0,\n", out);
    put_frames(out, profile, style);
    fputs("\"profiles\":[", out);
    for (w.thread = 0; w.thread < profile->thread_count; w.thread++) {
        if (!seen[w.thread])
            continue;
        fputs(any ? ",\n" : "\n", out);
        any = true;
        if (!put_thread(&w, style, err))
            return false;
    }
    fputs("]}\n", out);
    return true;
}

const struct prb_format prb_format_speedscope = {
    .description = {"speedscope", "", "JSON for speedscope.app",
                    ".speedscope.json .speedscope .json", true},
    .write = write_speedscope,
};
