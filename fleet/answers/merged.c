/* See merged.h. */
#include "fleet/merged.h"

#include <ctype.h>
#include <jansson.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/file.h"
#include "base/index.h"
#include "format/format.h"

#define FRAMES_MAX 65536 /* of one stack, from outside */
#define THREAD_NAME 64

struct prb_merged {
    struct prb_merged_options options;
    struct prb_arena arena; /* texts and frame lists */
    struct prb_merged_frame *frames;
    size_t frame_count, frame_cap;
    struct prb_merged_group *groups;
    size_t group_count, group_cap;
    struct prb_index by_frame, by_group;
};

PRB_DEFINE_AUTO_PTR(json_t, json_t, json_decref)

/* ---- frames and groups, each once ---- */

static uint64_t hash_frame(const struct prb_merged_frame *frame)
{
    uint64_t name = prb_hash_bytes(frame->name, strlen(frame->name));
    uint64_t file = prb_hash_bytes(frame->file, strlen(frame->file));
    uint64_t locals = prb_hash_bytes(frame->locals, strlen(frame->locals));
    return prb_hash_words(prb_hash_words(name, file),
                          prb_hash_words(locals, (uint64_t)frame->line));
}

static uint64_t frame_hash(const void *items, uint32_t item)
{
    return hash_frame((const struct prb_merged_frame *)items + item);
}

static bool same_frame(const void *items, uint32_t item, const void *key)
{
    const struct prb_merged_frame *a = (const struct prb_merged_frame *)items + item, *b = key;
    return a->kind == b->kind && a->line == b->line && strcmp(a->name, b->name) == 0 &&
           strcmp(a->file, b->file) == 0 && strcmp(a->locals, b->locals) == 0;
}

static uint64_t hash_group(const struct prb_merged_group *group)
{
    return prb_hash_words(prb_hash_bytes(group->thread, strlen(group->thread)),
                          prb_hash_bytes(group->frames, group->frame_count * sizeof(uint32_t)));
}

static uint64_t group_hash(const void *items, uint32_t item)
{
    return hash_group((const struct prb_merged_group *)items + item);
}

static bool same_group(const void *items, uint32_t item, const void *key)
{
    const struct prb_merged_group *a = (const struct prb_merged_group *)items + item, *b = key;
    return a->frame_count == b->frame_count && strcmp(a->thread, b->thread) == 0 &&
           memcmp(a->frames, b->frames, a->frame_count * sizeof(uint32_t)) == 0;
}

static const struct prb_index_kind of_frames = {frame_hash, same_frame};
static const struct prb_index_kind of_groups = {group_hash, same_group};

/* The number of a frame, whose texts are copied when it is new; PRB_NO_ITEM: out of memory. */
static uint32_t frame_of(struct prb_merged *merged, const struct prb_merged_frame *frame)
{
    uint64_t hash = hash_frame(frame);
    uint32_t at = prb_index_find(&merged->by_frame, &of_frames, merged->frames, hash, frame);
    if (at != PRB_NO_ITEM)
        return at;
    struct prb_merged_frame copy = *frame;
    copy.name = prb_arena_strdup(&merged->arena, frame->name);
    copy.file = prb_arena_strdup(&merged->arena, frame->file);
    copy.locals = prb_arena_strdup(&merged->arena, frame->locals);
    if (!copy.name || !copy.file || !copy.locals ||
        !PRB_GROW(merged->frames, merged->frame_count, merged->frame_cap))
        return PRB_NO_ITEM;
    at = (uint32_t)merged->frame_count;
    merged->frames[merged->frame_count++] = copy;
    return prb_index_add(&merged->by_frame, &of_frames, merged->frames, hash, at) ? at
                                                                                  : PRB_NO_ITEM;
}

/* The group of a stack, new when there is none; NULL: out of memory. */
static struct prb_merged_group *group_of(struct prb_merged *merged,
                                         const struct prb_merged_group *key)
{
    uint64_t hash = hash_group(key);
    uint32_t at = prb_index_find(&merged->by_group, &of_groups, merged->groups, hash, key);
    if (at != PRB_NO_ITEM)
        return &merged->groups[at];
    size_t bytes = key->frame_count * sizeof(uint32_t);
    uint32_t *frames = prb_arena_alloc(&merged->arena, bytes + 1);
    struct prb_merged_group copy = {.thread = prb_arena_strdup(&merged->arena, key->thread),
                                    .frames = frames,
                                    .frame_count = key->frame_count};
    if (!frames || !copy.thread ||
        !PRB_GROW(merged->groups, merged->group_count, merged->group_cap))
        return NULL;
    memcpy(frames, key->frames, bytes);
    at = (uint32_t)merged->group_count;
    merged->groups[merged->group_count++] = copy;
    return prb_index_add(&merged->by_group, &of_groups, merged->groups, hash, at)
               ? &merged->groups[at]
               : NULL;
}

struct prb_merged *prb_merged_new(const struct prb_merged_options *options, struct prb_error *err)
{
    struct prb_merged *merged = calloc(1, sizeof *merged);
    if (!merged)
        return PRB_NULL(prb_nomem(err));
    if (options)
        merged->options = *options;
    return merged;
}

void prb_merged_free(struct prb_merged *merged)
{
    if (!merged)
        return;
    for (size_t i = 0; i < merged->group_count; i++)
        prb_rank_set_deinit(&merged->groups[i].ranks);
    free(merged->groups);
    free(merged->frames);
    prb_index_deinit(&merged->by_frame);
    prb_index_deinit(&merged->by_group);
    prb_arena_deinit(&merged->arena);
    free(merged);
}

/* ---- from stacks ---- */

static const char *file_of(const struct prb_frame *frame)
{
    const char *file = frame->short_filename ? frame->short_filename : frame->filename;
    if (frame->kind == PRB_FRAME_NATIVE)
        file = frame->filename ? frame->filename : frame->module;
    if (!file)
        return "";
    return frame->kind == PRB_FRAME_NATIVE ? prb_base_name(file) : file;
}

static void add_locals(const struct prb_frame *frame, struct prb_buf *out)
{
    for (size_t i = 0; i < frame->local_count; i++)
        prb_buf_addf(out, "%s = %s\n", frame->locals[i].name,
                     frame->locals[i].repr ? frame->locals[i].repr : "(unset)");
}

static uint32_t take_frame(struct prb_merged *merged, const struct prb_frame *frame)
{
    char unnamed[32];
    PRB_AUTO(prb_buf) struct prb_buf locals = {0};
    struct prb_merged_frame one = {
        .kind = frame->kind,
        .name = frame->qualname ? frame->qualname : frame->name,
        .file = file_of(frame),
        .line = merged->options.by_function ? 0 : frame->line,
        .locals = "",
    };
    if (frame->kind == PRB_FRAME_NATIVE && frame->name && strncmp(frame->name, "0x", 2) == 0) {
        snprintf(unnamed, sizeof unnamed, "+%#llx", (unsigned long long)frame->in_module);
        one.name = frame->in_module ? unnamed : "?";
    }
    if (!one.name)
        one.name = "?";
    if (frame->local_count) {
        add_locals(frame, &locals);
        one.locals = locals.data;
    }
    return prb_buf_ok(&locals) ? frame_of(merged, &one) : PRB_NO_ITEM;
}

static void thread_name(const struct prb_stacks *stacks, const struct prb_thread *thread,
                        char out[THREAD_NAME])
{
    const char *name = thread->name ? thread->name : thread->comm ? thread->comm : "";
    size_t n = 0;
    if (thread->os_thread_id == stacks->target.pid && thread->has_python)
        name = "MainThread";
    for (; *name && n + 1 < THREAD_NAME; name++) {
        bool digit = isdigit((unsigned char)*name);
        if (!digit || !n || out[n - 1] != '#')
            out[n++] = digit ? '#' : *name;
    }
    out[n] = '\0';
}

static bool add_thread(struct prb_merged *merged, int rank, const struct prb_stacks *stacks,
                       const struct prb_thread *thread)
{
    char name[THREAD_NAME];
    PRB_AUTO_FREE uint32_t *frames = calloc(thread->frame_count + 1, sizeof *frames);
    if (!frames)
        return false;
    for (size_t i = 0; i < thread->frame_count; i++)
        if ((frames[i] = take_frame(merged, &thread->frames[i])) == PRB_NO_ITEM)
            return false;
    thread_name(stacks, thread, name);
    struct prb_merged_group key = {
        .thread = name, .frames = frames, .frame_count = thread->frame_count};
    struct prb_merged_group *group = group_of(merged, &key);
    if (!group)
        return false;
    group->threads++;
    return prb_rank_set_add(&group->ranks, rank, rank);
}

bool prb_merged_add(struct prb_merged *merged, int rank, const struct prb_stacks *stacks,
                    struct prb_error *err)
{
    for (size_t i = 0; i < stacks->thread_count; i++)
        if (!add_thread(merged, rank, stacks, &stacks->threads[i]))
            return prb_nomem(err);
    return true;
}

/* ---- packed: {"frames": [[kind, name, file, line, locals]], "groups": [[thread, ranks, threads,
 * [frame, …]]]} ---- */

static json_t *text_of(const char *text)
{
    json_t *value = json_string(text);
    if (value)
        return value;
    PRB_AUTO_FREE char *safe = prb_text_safe(text, strlen(text), 0); /* not UTF-8 */
    return json_string(safe ? safe : "?");
}

static json_t *pack_frame(const struct prb_merged_frame *frame)
{
    json_t *one = json_pack("[i, o, o, i]", (int)frame->kind, text_of(frame->name),
                            text_of(frame->file), frame->line);
    if (one && *frame->locals)
        json_array_append_new(one, text_of(frame->locals));
    return one;
}

static json_t *pack_group(const struct prb_merged_group *group)
{
    PRB_AUTO_FREE char *ranks = prb_rank_set_text(&group->ranks);
    json_t *frames = json_array();
    for (size_t i = 0; i < group->frame_count; i++)
        json_array_append_new(frames, json_integer(group->frames[i]));
    return json_pack("[o, s, I, o]", text_of(group->thread), ranks ? ranks : "",
                     (json_int_t)group->threads, frames);
}

char *prb_merged_pack(const struct prb_merged *merged, size_t *len_out, struct prb_error *err)
{
    json_t *frames = json_array(), *groups = json_array();
    for (size_t i = 0; i < merged->frame_count; i++)
        json_array_append_new(frames, pack_frame(&merged->frames[i]));
    for (size_t i = 0; i < merged->group_count; i++)
        json_array_append_new(groups, pack_group(&merged->groups[i]));
    bool whole = json_array_size(frames) == merged->frame_count &&
                 json_array_size(groups) == merged->group_count;
    PRB_AUTO(json_t) json_t *all = json_pack("{s:o, s:o}", "frames", frames, "groups", groups);
    char *text = all && whole ? json_dumps(all, JSON_COMPACT) : NULL;
    if (!text)
        return PRB_NULL(prb_nomem(err));
    *len_out = strlen(text);
    return text;
}

static bool unpack_frame(const json_t *one, struct prb_merged_frame *out)
{
    const json_t *kind = json_array_get(one, 0), *line = json_array_get(one, 3);
    const char *locals = json_string_value(json_array_get(one, 4));
    json_int_t number = json_integer_value(kind);
    *out = (struct prb_merged_frame){.kind = (enum prb_frame_kind)number,
                                     .name = json_string_value(json_array_get(one, 1)),
                                     .file = json_string_value(json_array_get(one, 2)),
                                     .line = (int)json_integer_value(line),
                                     .locals = locals ? locals : ""};
    return json_is_integer(kind) && number >= PRB_FRAME_PYTHON && number <= PRB_FRAME_TASK &&
           json_is_integer(line) && out->name && out->file;
}

static bool is_within(const struct prb_rank_set *set, const struct prb_rank_set *allowed)
{
    for (int rank = prb_rank_set_next(set, -1); rank >= 0; rank = prb_rank_set_next(set, rank))
        if (!prb_rank_set_has(allowed, rank))
            return false;
    return set->count > 0;
}

/* Whether one group can be taken; ranks and frames are then filled. */
static bool unpack_group(const json_t *one, const uint32_t *numbers, size_t number_count,
                         const struct prb_rank_set *allowed, struct prb_rank_set *ranks,
                         uint32_t *frames)
{
    const char *text = json_string_value(json_array_get(one, 1));
    const json_t *list = json_array_get(one, 3);
    size_t count = json_array_size(list);
    if (!json_is_string(json_array_get(one, 0)) || !text || !json_is_array(list) ||
        !prb_rank_set_parse(text, ranks, NULL) || !is_within(ranks, allowed) ||
        json_integer_value(json_array_get(one, 2)) < 1)
        return false;
    for (size_t i = 0; i < count; i++) {
        const json_t *frame = json_array_get(list, i);
        if (!json_is_integer(frame) || json_integer_value(frame) < 0 ||
            (uint64_t)json_integer_value(frame) >= number_count)
            return false;
        frames[i] = numbers[json_integer_value(frame)];
    }
    return true;
}

static bool add_group(struct prb_merged *merged, const json_t *one, const uint32_t *numbers,
                      size_t number_count, const struct prb_rank_set *allowed, bool dry)
{
    PRB_AUTO(prb_rank_set) struct prb_rank_set ranks = {0};
    size_t count = json_array_size(json_array_get(one, 3));
    PRB_AUTO_FREE uint32_t *frames = count <= FRAMES_MAX ? calloc(count + 1, sizeof *frames) : NULL;
    if (!frames || !unpack_group(one, numbers, number_count, allowed, &ranks, frames))
        return false;
    if (dry)
        return true;
    struct prb_merged_group key = {.thread = json_string_value(json_array_get(one, 0)),
                                   .frames = frames,
                                   .frame_count = count};
    struct prb_merged_group *group = group_of(merged, &key);
    if (!group || !prb_rank_set_unite(&group->ranks, &ranks))
        return false;
    group->threads += (uint64_t)json_integer_value(json_array_get(one, 2));
    return true;
}

/* First all of it is looked at, then all is added. */
bool prb_merged_add_packed(struct prb_merged *merged, const char *data, size_t len,
                           const struct prb_rank_set *allowed, struct prb_error *err)
{
    PRB_AUTO(json_t) json_t *all = json_loadb(data, len, 0, NULL);
    const json_t *frames = json_object_get(all, "frames"), *groups = json_object_get(all, "groups");
    size_t frame_count = json_array_size(frames), group_count = json_array_size(groups);
    PRB_AUTO_FREE uint32_t *numbers = calloc(frame_count + 1, sizeof *numbers);
    bool ok = numbers && json_is_array(frames) && json_is_array(groups);
    struct prb_merged_frame frame;
    for (size_t i = 0; ok && i < frame_count; i++)
        ok = unpack_frame(json_array_get(frames, i), &frame);
    for (size_t i = 0; ok && i < group_count; i++)
        ok = add_group(merged, json_array_get(groups, i), numbers, frame_count, allowed, true);
    if (!ok)
        return prb_fail(err, PRB_CORRUPT, "merged stacks cannot be parsed");
    for (size_t i = 0; ok && i < frame_count; i++)
        ok = unpack_frame(json_array_get(frames, i), &frame) &&
             (numbers[i] = frame_of(merged, &frame)) != PRB_NO_ITEM;
    for (size_t i = 0; ok && i < group_count; i++)
        ok = add_group(merged, json_array_get(groups, i), numbers, frame_count, allowed, false);
    return ok || prb_nomem(err);
}

/* ---- what it has ---- */

static int smallest_first(const void *a, const void *b)
{
    const struct prb_merged_group *x = a, *y = b;
    unsigned size = prb_rank_set_size(&x->ranks), other = prb_rank_set_size(&y->ranks);
    if (size != other)
        return size > other ? 1 : -1;
    bool main = strcmp(x->thread, "MainThread") == 0, its = strcmp(y->thread, "MainThread") == 0;
    if (main != its)
        return main ? -1 : 1;
    int rank = prb_rank_set_next(&x->ranks, -1), its_rank = prb_rank_set_next(&y->ranks, -1);
    if (rank != its_rank)
        return rank > its_rank ? 1 : -1;
    int order = strcmp(x->thread, y->thread);
    return order ? order : (x->threads > y->threads) - (x->threads < y->threads);
}

void prb_merged_sort(struct prb_merged *merged)
{
    qsort(merged->groups, merged->group_count, sizeof *merged->groups, smallest_first);
    prb_index_clear(&merged->by_group);
    for (uint32_t i = 0; i < merged->group_count; i++)
        (void)prb_index_add(&merged->by_group, &of_groups, merged->groups,
                            hash_group(&merged->groups[i]), i);
}

size_t prb_merged_count(const struct prb_merged *merged) { return merged->group_count; }

const struct prb_merged_group *prb_merged_group(const struct prb_merged *merged, size_t i)
{
    return &merged->groups[i];
}

const struct prb_merged_frame *prb_merged_frame(const struct prb_merged *merged, uint32_t frame)
{
    return &merged->frames[frame];
}

static void frame_json(const struct prb_merged_frame *frame, FILE *out)
{
    static const char *const kinds[] = {[PRB_FRAME_PYTHON] = "python",
                                        [PRB_FRAME_NATIVE] = "native",
                                        [PRB_FRAME_BROKEN] = "broken",
                                        [PRB_FRAME_TASK] = "task"};
    fprintf(out, "{\"kind\": \"%s\", \"name\": ", kinds[frame->kind]);
    prb_out_json_text(out, frame->name, strlen(frame->name));
    fputs(", \"file\": ", out);
    prb_out_json_text(out, frame->file, strlen(frame->file));
    fprintf(out, ", \"line\": %d", frame->line);
    if (*frame->locals) {
        fputs(", \"locals\": ", out);
        prb_out_json_text(out, frame->locals, strlen(frame->locals));
    }
    fputc('}', out);
}

void prb_merged_json(const struct prb_merged *merged, FILE *out)
{
    fputc('[', out);
    for (size_t i = 0; i < merged->group_count; i++) {
        const struct prb_merged_group *group = &merged->groups[i];
        PRB_AUTO_FREE char *ranks = prb_rank_set_text(&group->ranks);
        fprintf(out, "%s{\"ranks\": \"%s\", \"count\": %u, \"threads\": %llu, \"thread\": ",
                i ? ",\n " : "", ranks ? ranks : "", prb_rank_set_size(&group->ranks),
                (unsigned long long)group->threads);
        prb_out_json_text(out, group->thread, strlen(group->thread));
        fputs(", \"frames\": [", out);
        for (size_t k = 0; k < group->frame_count; k++) {
            fputs(k ? ", " : "", out);
            frame_json(&merged->frames[group->frames[k]], out);
        }
        fputs("]}", out);
    }
    fputc(']', out);
}
