/* The tables of a profile (profile.h): each string, function, frame, stack and weight once. */
#include "profile/profile.h"

#include <string.h>

#include "base/utf8.h"

struct prb_profile_box *prb_profile_new(struct prb_error *err)
{
    struct prb_profile_box *box = calloc(1, sizeof *box);
    if (!box)
        return PRB_NULL(prb_nomem(err));
    PRB_AUTO(prb_profile) struct prb_profile *profile = &box->profile;
    box->timeline.fd = -1;
    if (!PRB_GROW(box->nodes, 0, box->node_cap))
        return PRB_NULL(prb_nomem(err));
    box->nodes[0] = (struct prb_profile_node){0, PRB_NO_ITEM};
    profile->nodes = box->nodes;
    profile->node_count = 1;
    PRB_STEAL(profile);
    return box;
}

void prb_profile_free(struct prb_profile *profile)
{
    struct prb_profile_box *box = (struct prb_profile_box *)profile;
    if (!box)
        return;
    prb_timeline_deinit(&box->timeline);
    prb_roots_deinit(box);
    prb_index_deinit(&box->text_index);
    prb_index_deinit(&box->function_index);
    prb_index_deinit(&box->frame_index);
    prb_index_deinit(&box->node_index);
    prb_index_deinit(&box->weight_index);
    prb_index_deinit(&box->process_index);
    prb_index_deinit(&box->thread_index);
    free(box->texts);
    free(box->processes);
    free(box->threads);
    free(box->functions);
    free(box->frames);
    free(box->nodes);
    free(box->weights);
    prb_arena_deinit(&box->arena);
    free(box);
}

/* ---- texts ---- */

static uint64_t text_hash(const void *items, uint32_t item)
{
    const char *text = ((const struct prb_profile_box *)items)->texts[item];
    return prb_hash_bytes(text, strlen(text));
}

static bool text_same(const void *items, uint32_t item, const void *key)
{
    return strcmp(((const struct prb_profile_box *)items)->texts[item], key) == 0;
}

static const struct prb_index_kind text_kind = {text_hash, text_same};

const char *prb_profile_text(struct prb_profile_box *box, const char *text)
{
    if (!text)
        return NULL;
    size_t len = strlen(text);
    PRB_AUTO(prb_buf) struct prb_buf clean = {0};
    if (prb_utf8_prefix(text, len) < len) { /* a command line, a native symbol: any bytes */
        prb_utf8_add(&clean, text, len);
        len = clean.len;
        if (!(text = prb_buf_ok(&clean) ? clean.data : NULL)) {
            box->failed = true;
            return NULL;
        }
    }
    uint64_t hash = prb_hash_bytes(text, len);
    uint32_t item = prb_index_find(&box->text_index, &text_kind, box, hash, text);
    if (item != PRB_NO_ITEM)
        return box->texts[item];
    char *copy = prb_arena_strdup(&box->arena, text);
    if (!copy || !PRB_GROW(box->texts, box->text_count, box->text_cap)) {
        box->failed = true;
        return NULL;
    }
    box->texts[box->text_count] = copy;
    if (!prb_index_add(&box->text_index, &text_kind, box, hash, (uint32_t)box->text_count)) {
        box->failed = true;
        return NULL;
    }
    box->text_count++;
    return copy;
}

/* ---- processes and threads ---- */

uint32_t prb_profile_process(struct prb_profile_box *box, const struct prb_profile_process *process)
{
    size_t count = box->profile.process_count;
    if (!PRB_GROW(box->processes, count, box->process_cap)) {
        box->failed = true;
        return 0;
    }
    box->processes[count] = *process;
    box->profile.processes = box->processes;
    box->profile.process_count++;
    return (uint32_t)count;
}

uint32_t prb_profile_thread(struct prb_profile_box *box, const struct prb_profile_thread *thread)
{
    size_t count = box->profile.thread_count;
    if (count > PRB_PROFILE_THREADS_MAX)
        return (uint32_t)count - 1;
    if (!PRB_GROW(box->threads, count, box->thread_cap)) {
        box->failed = true;
        return 0;
    }
    box->threads[count] = *thread;
    if (count == PRB_PROFILE_THREADS_MAX)
        box->threads[count] = (struct prb_profile_thread){
            .process = thread->process, .name = prb_profile_text(box, "(later threads)")};
    box->profile.threads = box->threads;
    box->profile.thread_count++;
    return (uint32_t)count;
}

/* ---- functions, frames, stacks ---- */

static uint64_t hash_function(const struct prb_profile_function *f)
{
    return prb_hash_words(
        prb_hash_words((uintptr_t)f->name, (uintptr_t)f->qualname),
        prb_hash_words((uintptr_t)f->filename, (uint64_t)(unsigned)f->first_line << 2 | f->kind));
}

static uint64_t function_hash(const void *items, uint32_t item)
{
    return hash_function(&((const struct prb_profile_box *)items)->functions[item]);
}

static bool function_same(const void *items, uint32_t item, const void *key)
{
    const struct prb_profile_function *a =
                                          &((const struct prb_profile_box *)items)->functions[item],
                                      *b = key;
    return a->name == b->name && a->qualname == b->qualname && a->filename == b->filename &&
           a->first_line == b->first_line && a->kind == b->kind;
}

static const struct prb_index_kind function_kind = {function_hash, function_same};

uint32_t prb_profile_function(struct prb_profile_box *box,
                              const struct prb_profile_function *function)
{
    size_t count = box->profile.function_count;
    uint64_t hash = hash_function(function);
    uint32_t item = prb_index_find(&box->function_index, &function_kind, box, hash, function);
    if (item != PRB_NO_ITEM)
        return item;
    if (!PRB_GROW(box->functions, count, box->function_cap)) {
        box->failed = true;
        return 0;
    }
    box->functions[count] = *function;
    box->profile.functions = box->functions;
    box->failed |= !prb_index_add(&box->function_index, &function_kind, box, hash, (uint32_t)count);
    box->profile.function_count++;
    return (uint32_t)count;
}

static uint64_t frame_hash(const void *items, uint32_t item)
{
    const struct prb_profile_frame *frame = &((const struct prb_profile_box *)items)->frames[item];
    return prb_hash_words(frame->function, (uint64_t)(int64_t)frame->line);
}

static bool frame_same(const void *items, uint32_t item, const void *key)
{
    const struct prb_profile_frame *a = &((const struct prb_profile_box *)items)->frames[item],
                                   *b = key;
    return a->function == b->function && a->line == b->line;
}

static const struct prb_index_kind frame_kind = {frame_hash, frame_same};

uint32_t prb_profile_frame(struct prb_profile_box *box, uint32_t function, int line)
{
    const struct prb_profile_frame frame = {function, line};
    size_t count = box->profile.frame_count;
    uint64_t hash = prb_hash_words(function, (uint64_t)(int64_t)line);
    uint32_t item = prb_index_find(&box->frame_index, &frame_kind, box, hash, &frame);
    if (item != PRB_NO_ITEM)
        return item;
    if (!PRB_GROW(box->frames, count, box->frame_cap)) {
        box->failed = true;
        return 0;
    }
    box->frames[count] = frame;
    box->profile.frames = box->frames;
    box->failed |= !prb_index_add(&box->frame_index, &frame_kind, box, hash, (uint32_t)count);
    box->profile.frame_count++;
    return (uint32_t)count;
}

static uint64_t node_hash(const void *items, uint32_t item)
{
    const struct prb_profile_node *node = &((const struct prb_profile_box *)items)->nodes[item];
    return prb_hash_words(node->parent, node->frame);
}

static bool node_same(const void *items, uint32_t item, const void *key)
{
    const struct prb_profile_node *a = &((const struct prb_profile_box *)items)->nodes[item],
                                  *b = key;
    return a->parent == b->parent && a->frame == b->frame;
}

static const struct prb_index_kind node_kind = {node_hash, node_same};

uint32_t prb_profile_node(struct prb_profile_box *box, uint32_t parent, uint32_t frame)
{
    const struct prb_profile_node node = {parent, frame};
    size_t count = box->profile.node_count;
    uint64_t hash = prb_hash_words(parent, frame);
    uint32_t item = prb_index_find(&box->node_index, &node_kind, box, hash, &node);
    if (item != PRB_NO_ITEM)
        return item;
    if (count >= PRB_PROFILE_NODES_MAX) {
        box->profile.warning = "there were too many different stacks: the innermost frames "
                               "of some are left out";
        return parent;
    }
    if (!PRB_GROW(box->nodes, count, box->node_cap)) {
        box->failed = true;
        return parent;
    }
    box->nodes[count] = node;
    box->profile.nodes = box->nodes;
    box->failed |= !prb_index_add(&box->node_index, &node_kind, box, hash, (uint32_t)count);
    box->profile.node_count++;
    return (uint32_t)count;
}

/* ---- weights ---- */

static uint64_t weight_hash(const void *items, uint32_t item)
{
    const struct prb_profile_weight *weight =
        &((const struct prb_profile_box *)items)->weights[item];
    return prb_hash_words(weight->thread, weight->node);
}

static bool weight_same(const void *items, uint32_t item, const void *key)
{
    const struct prb_profile_weight *a = &((const struct prb_profile_box *)items)->weights[item],
                                    *b = key;
    return a->thread == b->thread && a->node == b->node;
}

static const struct prb_index_kind weight_kind = {weight_hash, weight_same};

uint32_t prb_profile_weight(struct prb_profile_box *box, uint32_t thread, uint32_t node)
{
    const struct prb_profile_weight weight = {.thread = thread, .node = node};
    size_t count = box->profile.weight_count;
    uint64_t hash = prb_hash_words(thread, node);
    uint32_t item = prb_index_find(&box->weight_index, &weight_kind, box, hash, &weight);
    if (item != PRB_NO_ITEM)
        return item;
    if (!PRB_GROW(box->weights, count, box->weight_cap)) {
        box->failed = true;
        return PRB_NO_ITEM;
    }
    box->weights[count] = weight;
    box->profile.weights = box->weights;
    box->failed |= !prb_index_add(&box->weight_index, &weight_kind, box, hash, (uint32_t)count);
    box->profile.weight_count++;
    return (uint32_t)count;
}

void prb_profile_add_interval(struct prb_profile_box *box, uint32_t thread, uint32_t node,
                              unsigned state, uint64_t start, uint64_t end, uint64_t samples,
                              uint64_t ns)
{
    const struct prb_profile_interval interval = {
        .thread = thread, .node = node, .state = state, .samples = samples, .ns = ns};
    if (box->timeline.wanted && samples)
        prb_timeline_add(&box->timeline, &interval, start, end);
}
