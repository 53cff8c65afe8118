/*
 * The Firefox Profiler's processed profile (docs-developer/processed-profile-format.md of
 * firefox-devtools/profiler), version 48: tables by columns, each thread with its own.
 */
#include <string.h>

#include "profile/format/format.h"

#define NONE UINT32_MAX

/* The entries of a table that a thread uses, and their new indices. */
struct part {
    uint32_t *index; /* by entry of the profile; NONE: not used */
    uint32_t *items;
    size_t count;
};

struct writing {
    FILE *out;
    const struct prb_profile *profile;
    const struct prb_profile_style *style;
    uint32_t thread;
    struct part nodes, frames, functions;
    struct prb_flame strings;
    enum { STACKS, TIMES, WEIGHTS } column;
    bool any;
    size_t samples;
};

static bool part_init(struct part *part, size_t count)
{
    part->index = malloc((count + 1) * sizeof *part->index);
    part->items = malloc((count + 1) * sizeof *part->items);
    if (part->index)
        memset(part->index, 0xff, (count + 1) * sizeof *part->index);
    return part->index && part->items;
}

static void part_deinit(struct part *part)
{
    free(part->index);
    free(part->items);
}

static void part_clear(struct part *part)
{
    for (size_t i = 0; i < part->count; i++)
        part->index[part->items[i]] = NONE;
    part->count = 0;
}

static uint32_t part_add(struct part *part, uint32_t item)
{
    if (part->index[item] == NONE) {
        part->index[item] = (uint32_t)part->count;
        part->items[part->count++] = item;
    }
    return part->index[item];
}

static void writing_deinit(struct writing *w)
{
    part_deinit(&w->nodes);
    part_deinit(&w->frames);
    part_deinit(&w->functions);
    prb_flame_deinit(&w->strings);
}
PRB_DEFINE_AUTO(writing, struct writing, writing_deinit)

/* ---- tables by columns ---- */

typedef void put_cell_fn(struct writing *w, uint32_t item);

static void put_column(struct writing *w, const char *name, const struct part *part,
                       put_cell_fn *put)
{
    fprintf(w->out, "\"%s\":[", name);
    for (size_t i = 0; i < part->count; i++) {
        if (i)
            putc(',', w->out);
        put(w, part->items[i]);
    }
    fputs("],", w->out);
}

static void put_zero(struct writing *w, uint32_t item)
{
    (void)item;
    putc('0', w->out);
}
static void put_minus_one(struct writing *w, uint32_t item)
{
    (void)item;
    fputs("-1", w->out);
}
static void put_null(struct writing *w, uint32_t item)
{
    (void)item;
    fputs("null", w->out);
}
static void put_false(struct writing *w, uint32_t item)
{
    (void)item;
    fputs("false", w->out);
}
static void put_node_frame(struct writing *w, uint32_t node)
{
    fprintf(w->out, "%u", w->frames.index[w->profile->nodes[node].frame]);
}
static void put_node_prefix(struct writing *w, uint32_t node)
{
    uint32_t parent = w->profile->nodes[node].parent;
    if (parent)
        fprintf(w->out, "%u", w->nodes.index[parent]);
    else
        fputs("null", w->out);
}
static enum prb_frame_kind kind_of(struct writing *w, uint32_t frame)
{
    return w->profile->functions[w->profile->frames[frame].function].kind;
}
static void put_frame_category(struct writing *w, uint32_t frame)
{
    fputs(kind_of(w, frame) == PRB_FRAME_NATIVE ? "1" : "0", w->out);
}
static void put_node_category(struct writing *w, uint32_t node)
{
    put_frame_category(w, w->profile->nodes[node].frame);
}
static void put_frame_function(struct writing *w, uint32_t frame)
{
    fprintf(w->out, "%u", w->functions.index[w->profile->frames[frame].function]);
}
static void put_frame_line(struct writing *w, uint32_t frame)
{
    int line = w->profile->frames[frame].line;
    if (line > 0 && !w->style->nolineno)
        fprintf(w->out, "%d", line);
    else
        fputs("null", w->out);
}
static void put_function_name(struct writing *w, uint32_t function)
{
    const char *name = w->profile->functions[function].qualname;
    fprintf(w->out, "%u", prb_flame_label(&w->strings, name ? name : "?"));
}
static void put_function_file(struct writing *w, uint32_t function)
{
    fprintf(
        w->out, "%u",
        prb_flame_label(&w->strings, prb_label_file(&w->profile->functions[function], w->style)));
}
static void put_function_line(struct writing *w, uint32_t function)
{
    int line = w->profile->functions[function].first_line;
    if (line > 0)
        fprintf(w->out, "%d", line);
    else
        fputs("null", w->out);
}

struct column {
    const char *name;
    put_cell_fn *put;
};

static void put_table(struct writing *w, const char *name, const struct part *part,
                      const struct column *columns)
{
    fprintf(w->out, ",\n\"%s\":{", name);
    for (; columns->name; columns++)
        put_column(w, columns->name, part, columns->put);
    fprintf(w->out, "\"length\":%zu}", part->count);
}

static const struct column stack_columns[] = {{"frame", put_node_frame},
                                              {"prefix", put_node_prefix},
                                              {"category", put_node_category},
                                              {"subcategory", put_zero},
                                              {0}};
static const struct column frame_columns[] = {{"address", put_minus_one},
                                              {"inlineDepth", put_zero},
                                              {"category", put_frame_category},
                                              {"subcategory", put_zero},
                                              {"func", put_frame_function},
                                              {"nativeSymbol", put_null},
                                              {"innerWindowID", put_zero},
                                              {"implementation", put_null},
                                              {"line", put_frame_line},
                                              {"column", put_null},
                                              {0}};
static const struct column function_columns[] = {{"isJS", put_false},
                                                 {"relevantForJS", put_false},
                                                 {"name", put_function_name},
                                                 {"resource", put_minus_one},
                                                 {"fileName", put_function_file},
                                                 {"lineNumber", put_function_line},
                                                 {"columnNumber", put_null},
                                                 {0}};

/* ---- threads ---- */

/* Parents come first. */
static void use_stack(struct writing *w, uint32_t node)
{
    PRB_AUTO(prb_buf) struct prb_buf path = {0};
    uint32_t at = node;
    for (; at && w->nodes.index[at] == NONE; at = w->profile->nodes[at].parent)
        prb_buf_add(&path, &at, sizeof at);
    for (size_t i = path.len / sizeof at; i-- > 0;) {
        memcpy(&at, path.data + i * sizeof at, sizeof at);
        part_add(&w->nodes, at);
        part_add(&w->frames, w->profile->nodes[at].frame);
        part_add(&w->functions, w->profile->frames[w->profile->nodes[at].frame].function);
    }
}

static bool put_interval(void *context, const struct prb_profile_interval *interval)
{
    struct writing *w = context;
    if (interval->thread != w->thread)
        return true;
    if (w->any)
        putc(',', w->out);
    w->any = true;
    if (w->column == STACKS) {
        use_stack(w, interval->node);
        fprintf(w->out, "%u", w->nodes.index[interval->node]);
        w->samples++;
    } else if (w->column == TIMES) {
        fprintf(w->out, "%.3f", interval->start * 1e3);
    } else {
        bool memory = prb_profile_is_of_memory(w->profile);
        fprintf(w->out, "%llu", (unsigned long long)(memory ? interval->ns : interval->samples));
    }
    return true;
}

static bool put_samples(struct writing *w, struct prb_error *err)
{
    static const char *const names[] = {
        [STACKS] = "\"stack\":[", [TIMES] = "],\n\"time\":[", [WEIGHTS] = "],\n\"weight\":["};
    w->samples = 0;
    fputs(",\n\"samples\":{", w->out);
    for (w->column = STACKS; w->column <= WEIGHTS; w->column++) {
        fputs(names[w->column], w->out);
        w->any = false;
        if (!prb_profile_each_interval(w->profile, put_interval, w, err))
            return false;
    }
    fprintf(w->out, "],\"weightType\":\"%s\",\"length\":%zu}",
            prb_profile_is_of_memory(w->profile) ? "bytes" : "samples", w->samples);
    return true;
}

static bool put_thread(struct writing *w, struct prb_error *err)
{
    const struct prb_profile_thread *thread = &w->profile->threads[w->thread];
    const struct prb_profile_process *process = &w->profile->processes[thread->process];
    PRB_AUTO(prb_buf) struct prb_buf name = {0};
    part_clear(&w->nodes);
    part_clear(&w->frames);
    part_clear(&w->functions);
    prb_label_thread(&name, thread);
    fputs("{\"processType\":\"default\",\"processStartupTime\":0,\"processShutdownTime\":null,"
          "\"registerTime\":0,\"unregisterTime\":null,\"pausedRanges\":[],\"name\":",
          w->out);
    prb_put_json(w->out, name.data ? name.data : "");
    name.len = 0;
    prb_label_process(&name, process, w->style);
    fputs(",\"processName\":", w->out);
    prb_put_json(w->out, name.data ? name.data : "");
    fprintf(w->out, ",\"isMainThread\":%s,\"pid\":\"%d\",\"tid\":%d",
            thread->tid == process->pid ? "true" : "false", (int)process->pid, (int)thread->tid);
    if (!put_samples(w, err))
        return false;
    put_table(w, "stackTable", &w->nodes, stack_columns);
    put_table(w, "frameTable", &w->frames, frame_columns);
    put_table(w, "funcTable", &w->functions, function_columns);
    fputs(",\n\"markers\":{\"data\":[],\"name\":[],\"startTime\":[],\"endTime\":[],\"phase\":[],"
          "\"category\":[],\"length\":0},\"resourceTable\":{\"lib\":[],\"name\":[],\"host\":[],"
          "\"type\":[],\"length\":0},\"nativeSymbols\":{\"libIndex\":[],\"address\":[],\"name\":[],"
          "\"functionSize\":[],\"length\":0},\n\"stringArray\":[",
          w->out);
    for (size_t i = 0; i < w->strings.label_count; i++) {
        if (i)
            putc(',', w->out);
        prb_put_json(w->out, w->strings.labels[i]);
    }
    fputs("]}", w->out);
    prb_flame_deinit(&w->strings);
    w->strings = (struct prb_flame){0};
    return true;
}

static void put_meta(struct writing *w)
{
    PRB_AUTO(prb_buf) struct prb_buf title = {0}, counts = {0};
    prb_label_title(&title, w->profile, w->style);
    prb_label_counts(&counts, w->profile);
    fprintf(w->out,
            "{\"meta\":{\"interval\":%.6f,\"startTime\":%.3f,\"processType\":0,\"stackwalk\":0,"
            "\"version\":27,\"preprocessedProfileVersion\":48,\"markerSchema\":[],"
            "\"symbolicated\":true,\"importedFrom\":\"probing %s\",\"product\":",
            1e3 / w->profile->rate, w->profile->start * 1e3, prb_version());
    prb_put_json(w->out, title.data ? title.data : "");
    fputs(",\"extra\":[{\"label\":\"Sampling\",\"entries\":[{\"label\":\"counts\",\"format\":"
          "\"string\",\"value\":",
          w->out);
    prb_put_json(w->out, counts.data ? counts.data : "");
    fputs("}]}],\"categories\":[{\"name\":\"Python\",\"color\":\"yellow\",\"subcategories\":"
          "[\"Other\"]},{\"name\":\"Native\",\"color\":\"blue\",\"subcategories\":[\"Other\"]}]},\n"
          "\"libs\":[],\"pages\":[],\"profilerOverhead\":[],\"counters\":[],\n\"threads\":[",
          w->out);
}

static bool write_firefox(const struct prb_profile *profile, const struct prb_profile_style *style,
                          FILE *out, struct prb_error *err)
{
    PRB_AUTO(writing) struct writing w = {.out = out, .profile = profile, .style = style};
    PRB_AUTO_FREE bool *used = calloc(profile->thread_count + 1, sizeof *used);
    bool any = false;
    if (!used || !part_init(&w.nodes, profile->node_count) ||
        !part_init(&w.frames, profile->frame_count) ||
        !part_init(&w.functions, profile->function_count))
        return prb_nomem(err);
    for (size_t i = 0; i < profile->weight_count; i++)
        used[profile->weights[i].thread] = true;
    put_meta(&w);
    for (w.thread = 0; w.thread < profile->thread_count; w.thread++) {
        if (!used[w.thread])
            continue;
        fputs(any ? ",\n" : "\n", out);
        any = true;
        if (!put_thread(&w, err))
            return false;
    }
    fputs("]}\n", out);
    return true;
}

const struct prb_format prb_format_firefox = {
    .description = {"firefox", "gecko", "JSON for profiler.firefox.com",
                    ".firefox.json .gecko.json", true},
    .write = write_firefox,
};
