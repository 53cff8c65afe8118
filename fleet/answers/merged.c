/* See merged.h. */
#include "fleet/merged.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/file.h"
#include "base/index.h"
#include "base/protobuf.h"
#include "base/utf8.h"
#include "fleet/answers/packed.h"
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

bool prb_merged_add_frames(struct prb_merged *merged, int rank, const char *what,
                           const struct prb_frame *frames, size_t count, struct prb_error *err)
{
    PRB_AUTO_FREE uint32_t *numbers = calloc(count + 1, sizeof *numbers);
    if (!numbers)
        return prb_nomem(err);
    for (size_t i = 0; i < count; i++)
        if ((numbers[i] = take_frame(merged, &frames[i])) == PRB_NO_ITEM)
            return prb_nomem(err);
    struct prb_merged_group key = {.thread = what, .frames = numbers, .frame_count = count};
    struct prb_merged_group *group = group_of(merged, &key);
    if (!group)
        return prb_nomem(err);
    group->threads++;
    return prb_rank_set_add(&group->ranks, rank, rank) || prb_nomem(err);
}

bool prb_merged_add(struct prb_merged *merged, int rank, const struct prb_stacks *stacks,
                    struct prb_error *err)
{
    char name[THREAD_NAME];
    for (size_t i = 0; i < stacks->thread_count; i++) {
        const struct prb_thread *thread = &stacks->threads[i];
        thread_name(stacks, thread, name);
        if (!prb_merged_add_frames(merged, rank, name, thread->frames, thread->frame_count, err))
            return false;
    }
    return true;
}

/* ---- packed ----
 *
 * "MRG\1"; how many frames, each: kind, line, name, file, locals; how many groups, each: thread,
 * threads, ranges (how many, each: how far from the last one's end, and how many ranks more than one),
 * frames (how many, each its number).  Numbers have seven bits a byte, the lowest first; a text is its
 * length, bytes of UTF-8, and a NUL. */

#define MAGIC "MRG\1"

char *prb_merged_pack(const struct prb_merged *merged, size_t *len_out, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf out = {0};
    prb_merged_pack_begin(&out, merged->frame_count);
    for (size_t i = 0; i < merged->frame_count; i++)
        prb_merged_pack_frame(&out, &merged->frames[i]);
    prb_proto_varint(&out, merged->group_count);
    for (size_t i = 0; i < merged->group_count; i++)
        prb_merged_pack_group(&out, &merged->groups[i]);
    *len_out = out.len;
    char *bytes = prb_buf_steal(&out);
    return bytes ? bytes : PRB_NULL(prb_nomem(err));
}

void prb_merged_pack_begin(struct prb_buf *out, size_t frames)
{
    prb_buf_add(out, MAGIC, sizeof MAGIC - 1);
    prb_proto_varint(out, frames);
}

static void pack_text(struct prb_buf *out, const char *text)
{
    PRB_AUTO(prb_buf) struct prb_buf safe = {0};
    size_t len = strlen(text);
    if (prb_utf8_prefix(text, len) != len) {
        prb_utf8_add(&safe, text, len);
        text = safe.len ? safe.data : "?";
        len = safe.len ? safe.len : 1;
    }
    prb_proto_varint(out, len);
    prb_buf_add(out, text, len);
    prb_buf_addc(out, '\0');
}

void prb_merged_pack_frame(struct prb_buf *out, const struct prb_merged_frame *frame)
{
    prb_proto_varint(out, (unsigned)frame->kind);
    prb_proto_varint(out, frame->line > 0 ? (unsigned)frame->line : 0);
    pack_text(out, frame->name);
    pack_text(out, frame->file);
    pack_text(out, frame->locals);
}

void prb_merged_pack_group(struct prb_buf *out, const struct prb_merged_group *group)
{
    int last = -1;
    pack_text(out, group->thread);
    prb_proto_varint(out, group->threads);
    prb_proto_varint(out, group->ranks.count);
    for (size_t i = 0; i < group->ranks.count; i++) {
        const struct prb_rank_range *range = &group->ranks.ranges[i];
        prb_proto_varint(out, (unsigned)(range->first - last));
        prb_proto_varint(out, (unsigned)(range->last - range->first));
        last = range->last;
    }
    prb_proto_varint(out, group->frame_count);
    for (size_t i = 0; i < group->frame_count; i++)
        prb_proto_varint(out, group->frames[i]);
}

/* What such bytes have; texts are borrowed from them. */
struct unpacked {
    const unsigned char *at, *end;
    bool bad;
    struct prb_merged_frame *frames;
    struct prb_merged_group *groups; /* their frames are in numbers */
    uint32_t *numbers;
    size_t frame_count, group_count, number_count;
};

static void unpacked_deinit(struct unpacked *in)
{
    for (size_t i = 0; i < in->group_count; i++)
        prb_rank_set_deinit(&in->groups[i].ranks);
    free(in->frames);
    free(in->groups);
    free(in->numbers);
}
PRB_DEFINE_AUTO(unpacked, struct unpacked, unpacked_deinit)

static uint64_t take_number(struct unpacked *in, uint64_t most)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 63 && in->at < in->end && !in->bad; shift += 7) {
        unsigned char byte = *in->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            in->bad = value > most;
            return in->bad ? 0 : value;
        }
    }
    in->bad = true;
    return 0;
}

/* Of things that take a byte each, at least. */
static size_t take_count(struct unpacked *in)
{
    return (size_t)take_number(in, (uint64_t)(in->end - in->at));
}

static const char *take_text(struct unpacked *in)
{
    size_t len = take_count(in);
    const char *text = (const char *)in->at;
    unsigned char any = 0;
    if (in->bad || len >= (size_t)(in->end - in->at) || text[len] || memchr(text, '\0', len)) {
        in->bad = true;
        return "";
    }
    for (size_t i = 0; i < len; i++)
        any |= in->at[i];
    in->at += len + 1;
    in->bad = any >= 0x80 && prb_utf8_prefix(text, len) != len;
    return text;
}

static void take_packed_frame(struct unpacked *in, struct prb_merged_frame *out)
{
    out->kind = (enum prb_frame_kind)take_number(in, PRB_FRAME_TASK);
    out->line = (int)take_number(in, INT_MAX);
    out->name = take_text(in);
    out->file = take_text(in);
    out->locals = take_text(in);
}

static void take_ranks(struct unpacked *in, const struct prb_rank_set *allowed,
                       struct prb_rank_set *out)
{
    int last = -1;
    size_t count = take_count(in);
    for (size_t i = 0; i < count && !in->bad; i++) {
        int first = last + (int)take_number(in, PRB_RANKS_MAX);
        last = first + (int)take_number(in, PRB_RANKS_MAX);
        for (int rank = first; rank <= last && !in->bad; rank++)
            in->bad = !prb_rank_set_has(allowed, rank);
        in->bad = in->bad || !prb_rank_set_add(out, first, last);
    }
    in->bad = in->bad || !out->count;
}

/* numbers has room for one of each byte. */
static void take_packed_group(struct unpacked *in, const struct prb_rank_set *allowed,
                              struct prb_merged_group *out)
{
    uint32_t *numbers = in->numbers + in->number_count;
    out->thread = take_text(in);
    out->threads = take_number(in, UINT32_MAX);
    take_ranks(in, allowed, &out->ranks);
    out->frame_count = take_count(in);
    out->frames = numbers;
    in->bad = in->bad || !out->threads || out->frame_count > FRAMES_MAX;
    for (size_t i = 0; i < out->frame_count && !in->bad; i++) {
        numbers[i] = (uint32_t)take_number(in, UINT32_MAX);
        in->bad = in->bad || numbers[i] >= in->frame_count;
    }
    in->number_count += in->bad ? 0 : out->frame_count;
}

/* False: out of memory. */
static bool unpack(struct unpacked *in, const char *data, size_t len,
                   const struct prb_rank_set *allowed)
{
    in->bad = len < sizeof MAGIC - 1 || memcmp(data, MAGIC, sizeof MAGIC - 1) != 0;
    in->at = (const unsigned char *)data + (in->bad ? 0 : sizeof MAGIC - 1);
    in->end = (const unsigned char *)data + len;
    size_t frames = take_count(in);
    in->frames = calloc(frames + 1, sizeof *in->frames);
    in->numbers = malloc((len + 1) * sizeof *in->numbers);
    if (!in->frames || !in->numbers)
        return false;
    while (in->frame_count < frames && !in->bad)
        take_packed_frame(in, &in->frames[in->frame_count++]);
    size_t groups = take_count(in);
    if (!(in->groups = calloc(groups + 1, sizeof *in->groups)))
        return false;
    while (in->group_count < groups && !in->bad)
        take_packed_group(in, allowed, &in->groups[in->group_count++]);
    in->bad = in->bad || in->at != in->end;
    return true;
}

/* First all of it is looked at, then all is added. */
bool prb_merged_add_packed(struct prb_merged *merged, const char *data, size_t len,
                           const struct prb_rank_set *allowed, struct prb_error *err)
{
    PRB_AUTO(unpacked) struct unpacked in = {0};
    if (!unpack(&in, data, len, allowed))
        return prb_nomem(err);
    if (in.bad)
        return prb_fail(err, PRB_CORRUPT, "merged stacks cannot be parsed");
    PRB_AUTO_FREE uint32_t *numbers = calloc(in.frame_count + 1, sizeof *numbers);
    for (size_t i = 0; numbers && i < in.frame_count; i++)
        if ((numbers[i] = frame_of(merged, &in.frames[i])) == PRB_NO_ITEM)
            return prb_nomem(err);
    for (size_t i = 0; numbers && i < in.number_count; i++)
        in.numbers[i] = numbers[in.numbers[i]];
    for (size_t i = 0; numbers && i < in.group_count; i++) {
        struct prb_merged_group *group = group_of(merged, &in.groups[i]);
        if (!group || !prb_rank_set_unite(&group->ranks, &in.groups[i].ranks))
            return prb_nomem(err);
        group->threads += in.groups[i].threads;
    }
    return numbers || prb_nomem(err);
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
    if (merged->group_count)
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
