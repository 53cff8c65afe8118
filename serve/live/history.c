/* What was seen of a process as JSON: each stack once, then who changed to which, moment by moment. */
#include "serve/live/seen.h"

#include "base/clock.h"
#include "format/json.h"

struct writer {
    const struct prb_profile *profile;
    json_t *frames, *stacks, *threads, *moments;
    uint32_t *frame_at, *stack_at,
        *thread_at; /* by their numbers in the profile; 0: not there, else 1 more */
};

static json_int_t put_frame(struct writer *writer, uint32_t frame)
{
    static const char *const kinds[] = {"python", "native", "broken", "task"};
    if (writer->frame_at[frame])
        return writer->frame_at[frame] - 1;
    const struct prb_profile *profile = writer->profile;
    const struct prb_profile_frame *row = profile->frames + frame;
    const struct prb_profile_function *function = profile->functions + row->function;
    const char *file = function->short_filename ? function->short_filename : function->filename;
    json_array_append_new(
        writer->frames,
        json_pack("{s:o,s:o,s:o,s:s}", "name",
                  prb_json_text(function->qualname ? function->qualname : function->name), "file",
                  prb_json_text(file), "line",
                  row->line > 0 ? json_integer(row->line) : json_null(), "kind",
                  kinds[function->kind]));
    writer->frame_at[frame] = (uint32_t)json_array_size(writer->frames);
    return writer->frame_at[frame] - 1;
}

static json_int_t put_stack(struct writer *writer, uint32_t node)
{
    if (!node)
        return -1;
    if (writer->stack_at[node])
        return writer->stack_at[node] - 1;
    json_t *frames = json_array();
    for (uint32_t at = node; at; at = writer->profile->nodes[at].parent)
        json_array_append_new(frames,
                              json_integer(put_frame(writer, writer->profile->nodes[at].frame)));
    json_array_append_new(writer->stacks, frames);
    writer->stack_at[node] = (uint32_t)json_array_size(writer->stacks);
    return writer->stack_at[node] - 1;
}

static json_int_t put_thread(struct writer *writer, uint32_t thread)
{
    if (writer->thread_at[thread])
        return writer->thread_at[thread] - 1;
    const struct prb_profile_thread *row = writer->profile->threads + thread;
    json_array_append_new(writer->threads, json_pack("{s:i,s:o}", "id", (int)row->tid, "name",
                                                     prb_json_text(row->name)));
    writer->thread_at[thread] = (uint32_t)json_array_size(writer->threads);
    return writer->thread_at[thread] - 1;
}

static void put_change(struct writer *writer, json_t *stacks, uint32_t thread, uint32_t node)
{
    json_t *pair = json_array();
    json_array_append_new(pair, json_integer(put_thread(writer, thread)));
    json_array_append_new(pair, json_integer(put_stack(writer, node)));
    json_array_append_new(stacks, pair);
}

static void put_moment(struct writer *writer, const struct prb_seen_moment *moment, json_t *stacks)
{
    json_array_append_new(writer->moments,
                          json_pack("{s:f,s:o,s:I,s:i,s:o,s:i,s:o}", "time", moment->time, "cpu",
                                    moment->cpu >= 0 ? json_real((double)moment->cpu) : json_null(),
                                    "rss", (json_int_t)moment->rss, "threads", moment->threads,
                                    "step",
                                    moment->step >= 0 ? json_integer(moment->step) : json_null(),
                                    "changed", (int)moment->changed, "stacks", stacks));
}

/* Stacks of all threads as they were at a moment: by all changes until then.  What was lost before
 * the first moment that is kept is made good by the first change of a thread afterwards. */
static void put_all(struct writer *writer, const struct prb_seen *item,
                    const struct prb_seen_moment *moment, json_t *stacks)
{
    PRB_AUTO_FREE uint32_t *nodes = calloc(item->thread_count + 1, sizeof *nodes);
    uint64_t first =
        item->change_count > PRB_WATCH_CHANGES ? item->change_count - PRB_WATCH_CHANGES : 0;
    if (!nodes)
        return;
    for (size_t i = 0; i < item->thread_count; i++)
        nodes[i] = UINT32_MAX;
    for (uint64_t at = first; at < moment->to; at++) {
        const struct prb_seen_change *change = item->changes + at % PRB_WATCH_CHANGES;
        nodes[change->thread] = change->node;
    }
    for (uint64_t at = moment->to; at < item->change_count; at++) {
        const struct prb_seen_change *change = item->changes + at % PRB_WATCH_CHANGES;
        if (nodes[change->thread] == UINT32_MAX)
            nodes[change->thread] = 0;
    }
    for (size_t i = 0; i < item->thread_count; i++) {
        uint32_t node = nodes[i] == UINT32_MAX ? item->threads[i].node : nodes[i];
        if (node)
            put_change(writer, stacks, (uint32_t)i, node);
    }
}

json_t *prb_seen_history(struct prb_seen *item, double after, double until, double *last_out)
{
    struct writer writer = {.profile = prb_seen_profile(item),
                            .frames = json_array(),
                            .stacks = json_array(),
                            .threads = json_array(),
                            .moments = json_array()};
    const struct prb_profile *profile = writer.profile;
    writer.frame_at = calloc(profile->frame_count + 1, sizeof *writer.frame_at);
    writer.stack_at = calloc(profile->node_count + 1, sizeof *writer.stack_at);
    writer.thread_at = calloc(profile->thread_count + 1, sizeof *writer.thread_at);
    bool room = writer.frame_at && writer.stack_at && writer.thread_at, first = true;
    double last = after;
    for (uint64_t i = item->moment_first; room && i < item->moment_count; i++) {
        const struct prb_seen_moment *moment = item->moments + i % PRB_WATCH_MOMENTS;
        if (moment->time <= after || moment->time > until)
            continue;
        json_t *stacks = json_array();
        if (first)
            put_all(&writer, item, moment, stacks);
        for (uint64_t at = moment->from; !first && at < moment->to; at++) {
            const struct prb_seen_change *change = item->changes + at % PRB_WATCH_CHANGES;
            put_change(&writer, stacks, change->thread, change->node);
        }
        put_moment(&writer, moment, stacks);
        last = moment->time;
        first = false;
    }
    free(writer.frame_at);
    free(writer.stack_at);
    free(writer.thread_at);
    if (last_out)
        *last_out = last;
    return json_pack("{s:f,s:f,s:o,s:o,s:o,s:o}", "time", prb_clock_epoch_s(), "every",
                     PRB_WATCH_EVERY, "frames", writer.frames, "stacks", writer.stacks, "threads",
                     writer.threads, "moments", writer.moments);
}
