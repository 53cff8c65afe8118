/* A profile as bytes: packed.h. */
#include <string.h>

#include "base/protobuf.h"
#include "profile/packed.h"

#define MAGIC "PRF\x01"

struct packing {
    struct prb_buf body; /* behind the texts */
    const char **texts;
    size_t count, cap;
    struct prb_index index;
    uint32_t *threads; /* of the profile: 1 and its number in the bytes; 0: left out */
    bool failed;
};

static void packing_deinit(struct packing *packing)
{
    prb_buf_deinit(&packing->body);
    free(packing->texts);
    prb_index_deinit(&packing->index);
    free(packing->threads);
}
PRB_DEFINE_AUTO(packing, struct packing, packing_deinit)

static uint64_t text_hash(const void *items, uint32_t item)
{
    const char *text = ((const char *const *)items)[item];
    return prb_hash_bytes(text, strlen(text));
}

static bool text_same(const void *items, uint32_t item, const void *key)
{
    return strcmp(((const char *const *)items)[item], key) == 0;
}

static void put(struct packing *packing, uint64_t value)
{
    prb_proto_varint(&packing->body, value);
}

static void put_signed(struct packing *packing, int64_t value)
{
    put(packing, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

static void put_real(struct packing *packing, double value)
{
    prb_buf_add(&packing->body, &value, sizeof value);
}

static void put_text(struct packing *packing, const char *text)
{
    static const struct prb_index_kind kind = {text_hash, text_same};
    if (!text) {
        put(packing, 0);
        return;
    }
    uint64_t hash = prb_hash_bytes(text, strlen(text));
    uint32_t at = prb_index_find(&packing->index, &kind, packing->texts, hash, text);
    if (at == PRB_NO_ITEM) {
        at = (uint32_t)packing->count;
        if (!PRB_GROW(packing->texts, packing->count, packing->cap)) {
            packing->failed = true;
            return;
        }
        packing->texts[packing->count++] = text;
        packing->failed |= !prb_index_add(&packing->index, &kind, packing->texts, hash, at);
    }
    put(packing, (uint64_t)at + 1);
}

static void put_stacks(struct packing *packing, const struct prb_profile *profile)
{
    put(packing, profile->function_count);
    for (size_t i = 0; i < profile->function_count; i++) {
        const struct prb_profile_function *one = &profile->functions[i];
        put(packing, one->kind);
        put_text(packing, one->name);
        put_text(packing, one->qualname);
        put_text(packing, one->filename);
        put_text(packing, one->short_filename);
        put_signed(packing, one->first_line);
    }
    put(packing, profile->frame_count);
    for (size_t i = 0; i < profile->frame_count; i++) {
        put(packing, profile->frames[i].function);
        put_signed(packing, profile->frames[i].line);
    }
    put(packing, profile->node_count - 1);
    for (size_t i = 1; i < profile->node_count; i++) {
        put(packing, profile->nodes[i].parent);
        put(packing, profile->nodes[i].frame);
    }
}

static void put_processes(struct packing *packing, const struct prb_profile *profile)
{
    put(packing, profile->process_count);
    for (size_t i = 0; i < profile->process_count; i++) {
        const struct prb_profile_process *one = &profile->processes[i];
        put_signed(packing, one->pid);
        put_signed(packing, one->ppid);
        put_signed(packing, one->rank);
        put_text(packing, one->command);
        put_text(packing, one->python);
        put_real(packing, one->start);
        put_real(packing, one->end);
        put(packing, one->ended);
        put(packing, one->samples);
    }
}

/* Number those that are kept. */
static uint32_t choose_threads(struct packing *packing, const struct prb_profile *profile, bool all)
{
    uint32_t kept = 0;
    for (size_t i = 0; i < profile->weight_count; i++)
        packing->threads[profile->weights[i].thread] = 1;
    for (size_t i = 0; i < profile->thread_count; i++)
        if (all || packing->threads[i])
            packing->threads[i] = ++kept;
    return kept;
}

static void put_threads(struct packing *packing, const struct prb_profile *profile, bool all)
{
    put(packing, choose_threads(packing, profile, all));
    for (size_t i = 0; i < profile->thread_count; i++) {
        const struct prb_profile_thread *one = &profile->threads[i];
        if (!packing->threads[i])
            continue;
        put(packing, one->process);
        put_signed(packing, one->tid);
        put(packing, one->thread_id);
        put_text(packing, one->name);
        put(packing, one->state);
        put_text(packing, one->waits);
        put(packing, one->node);
        put(packing, one->seen);
        put(packing, one->samples);
        put(packing, one->gil_samples);
        put(packing, one->idle_samples);
        put(packing, one->dropped);
        put(packing, one->cpu_ns);
    }
    put(packing, profile->weight_count);
    for (size_t i = 0; i < profile->weight_count; i++) {
        const struct prb_profile_weight *one = &profile->weights[i];
        put(packing, packing->threads[one->thread] - 1);
        put(packing, one->node);
        put(packing, one->samples);
        put(packing, one->ns);
    }
}

/* The profile's own members, in one order for both directions. */
#define NUMBERS(X)                                                                                 \
    X(samples) X(thread_samples) X(dropped) X(failed) X(tries) X(rejected) X(moved) X(skipped)
#define REALS(X) X(start) X(seconds) X(rate) X(late) X(latest) X(cpu) X(longest_stop) X(error)

bool prb_profile_pack(const struct prb_profile *profile, bool all_threads, struct prb_buf *out,
                      struct prb_error *err)
{
    PRB_AUTO(packing) struct packing packing = {0};
    packing.threads = calloc(profile->thread_count + 1, sizeof *packing.threads);
    if (!packing.threads)
        return prb_nomem(err);
    put_stacks(&packing, profile);
    put_processes(&packing, profile);
    put_threads(&packing, profile, all_threads);
    put(&packing, profile->mode);
    put(&packing, profile->native);
    put_text(&packing, profile->warning);
#define X(member) put(&packing, profile->member);
    NUMBERS(X)
#undef X
#define X(member) put_real(&packing, profile->member);
    REALS(X)
#undef X
    prb_buf_add(out, MAGIC, sizeof MAGIC - 1);
    prb_proto_varint(out, packing.count);
    for (size_t i = 0; i < packing.count; i++) {
        prb_proto_varint(out, strlen(packing.texts[i]));
        prb_buf_adds(out, packing.texts[i]);
    }
    prb_buf_add(out, packing.body.data, packing.body.len);
    return (!packing.failed && prb_buf_ok(&packing.body) && prb_buf_ok(out)) || prb_nomem(err);
}

/* ---- reading ---- */

struct reading {
    const unsigned char *at, *end;
    struct prb_profile_box *box;
    const char **texts;
    size_t text_count;
    bool failed; /* it wanted more than there is, or what cannot be */
};

static uint64_t number(struct reading *in)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && in->at < in->end; shift += 7) {
        unsigned char byte = *in->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
    in->failed = true;
    return 0;
}

/* Less than most. */
static uint32_t below(struct reading *in, size_t most)
{
    uint64_t value = number(in);
    if (value < most)
        return (uint32_t)value;
    in->failed = true;
    return 0;
}

static int integer(struct reading *in)
{
    uint64_t folded = number(in);
    int64_t value = (int64_t)(folded >> 1 ^ -(folded & 1));
    if (value == (int)value)
        return (int)value;
    in->failed = true;
    return 0;
}

/* Finite, and no more than seconds since the epoch may be. */
static double real(struct reading *in)
{
    double value = 0;
    if ((size_t)(in->end - in->at) < sizeof value) {
        in->failed = true;
        return 0;
    }
    memcpy(&value, in->at, sizeof value);
    in->at += sizeof value;
    if (value >= -1e15 && value <= 1e15)
        return value;
    in->failed = true;
    return 0;
}

/* How many items follow, each of some bytes. */
static size_t count_of(struct reading *in, size_t bytes)
{
    uint64_t count = number(in);
    if (count <= (size_t)(in->end - in->at) / bytes)
        return (size_t)count;
    in->failed = true;
    return 0;
}

static const char *text(struct reading *in)
{
    uint32_t at = below(in, in->text_count + 1);
    return at ? in->texts[at - 1] : NULL;
}

static bool read_texts(struct reading *in)
{
    size_t count = count_of(in, 1);
    in->texts = calloc(count + 1, sizeof *in->texts);
    if (!in->texts)
        return false;
    for (; in->text_count < count && !in->failed; in->text_count++) {
        size_t len = count_of(in, 1);
        PRB_AUTO_FREE char *copy = strndup((const char *)in->at, in->failed ? 0 : len);
        if (!copy)
            return false;
        in->at += in->failed ? 0 : len;
        in->texts[in->text_count] = prb_profile_text(in->box, copy);
    }
    return true;
}

/* Each item is new: its number is how many were there. */
static void expect(struct reading *in, uint32_t got, size_t wanted) { in->failed |= got != wanted; }

static void read_stacks(struct reading *in)
{
    struct prb_profile_box *box = in->box;
    const struct prb_profile *profile = &box->profile;
    size_t count = count_of(in, 6);
    for (size_t i = 0; i < count && !in->failed; i++) {
        struct prb_profile_function one = {.kind = below(in, PRB_FRAME_TASK + 1)};
        one.name = text(in);
        one.qualname = text(in);
        one.filename = text(in);
        one.short_filename = text(in);
        one.first_line = integer(in);
        if (!in->failed)
            expect(in, prb_profile_function(box, &one), i);
    }
    count = count_of(in, 2);
    for (size_t i = 0; i < count && !in->failed; i++) {
        uint32_t function = below(in, profile->function_count);
        int line = integer(in);
        if (!in->failed)
            expect(in, prb_profile_frame(box, function, line), i);
    }
    count = count_of(in, 2);
    for (size_t i = 0; i < count && !in->failed; i++) {
        uint32_t parent = below(in, profile->node_count), frame = below(in, profile->frame_count);
        if (!in->failed)
            expect(in, prb_profile_node(box, parent, frame), i + 1);
    }
}

static void read_processes(struct reading *in)
{
    size_t count = count_of(in, 23);
    for (size_t i = 0; i < count && !in->failed; i++) {
        struct prb_profile_process one = {.pid = integer(in)};
        one.ppid = integer(in);
        one.rank = integer(in);
        one.command = text(in);
        one.python = text(in);
        one.start = real(in);
        one.end = real(in);
        one.ended = below(in, 2);
        one.samples = number(in);
        if (!in->failed)
            prb_profile_process(in->box, &one);
    }
}

static void read_threads(struct reading *in)
{
    struct prb_profile_box *box = in->box;
    const struct prb_profile *profile = &box->profile;
    size_t count = count_of(in, 13);
    in->failed |= count > PRB_PROFILE_THREADS_MAX + 1;
    for (size_t i = 0; i < count && !in->failed; i++) {
        struct prb_profile_thread one = {.process = below(in, profile->process_count)};
        one.tid = integer(in);
        one.thread_id = number(in);
        one.name = text(in);
        one.state = below(in, 1 << 8);
        one.waits = text(in);
        one.node = below(in, profile->node_count);
        one.seen = number(in);
        one.samples = number(in);
        one.gil_samples = number(in);
        one.idle_samples = number(in);
        one.dropped = number(in);
        one.cpu_ns = number(in);
        if (!in->failed)
            expect(in, prb_profile_thread(box, &one), i);
    }
    count = count_of(in, 4);
    for (size_t i = 0; i < count && !in->failed; i++) {
        uint32_t thread = below(in, profile->thread_count), node = below(in, profile->node_count);
        uint64_t samples = number(in), ns = number(in);
        if (in->failed)
            break;
        expect(in, prb_profile_weight(box, thread, node), i);
        if (i < profile->weight_count) {
            box->weights[i].samples = samples;
            box->weights[i].ns = ns;
        }
    }
}

static bool read_all(struct reading *in)
{
    struct prb_profile *profile = &in->box->profile;
    if (!read_texts(in))
        return false;
    read_stacks(in);
    read_processes(in);
    read_threads(in);
    profile->mode = below(in, PRB_PROFILE_LIVE + 1);
    profile->native = below(in, 2);
    profile->warning = text(in);
#define X(member) profile->member = number(in);
    NUMBERS(X)
#undef X
#define X(member) profile->member = real(in);
    REALS(X)
#undef X
    return true;
}

struct prb_profile *prb_profile_unpack(const void *data, size_t len, struct prb_error *err)
{
    const unsigned char *bytes = data;
    const size_t head = sizeof MAGIC - 1;
    struct prb_profile_box *box = prb_profile_new(err);
    PRB_AUTO(prb_profile) struct prb_profile *profile = box ? &box->profile : NULL;
    if (!box)
        return NULL;
    struct reading in = {.at = bytes + head, .end = bytes + len, .box = box};
    if (len < head || memcmp(bytes, MAGIC, head) != 0)
        return PRB_NULL(prb_fail(err, PRB_CORRUPT, "the profile cannot be parsed"));
    bool room = read_all(&in);
    free(in.texts);
    if (!room || box->failed)
        return PRB_NULL(prb_nomem(err));
    if (in.failed || in.at != in.end)
        return PRB_NULL(prb_fail(err, PRB_CORRUPT, "the profile cannot be parsed"));
    return PRB_STEAL(profile);
}
