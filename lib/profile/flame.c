/* The tree of a flame graph: frames with the same label below the same node are one node
 * (format.h). */
#include <string.h>

#include "profile/format/format.h"

void prb_flame_deinit(struct prb_flame *flame)
{
    free(flame->labels);
    free(flame->nodes);
    free(flame->weights);
    prb_index_deinit(&flame->label_index);
    prb_index_deinit(&flame->node_index);
    prb_arena_deinit(&flame->arena);
}

static uint64_t label_hash(const void *items, uint32_t item)
{
    const char *text = ((const struct prb_flame *)items)->labels[item];
    return prb_hash_bytes(text, strlen(text));
}

static bool label_same(const void *items, uint32_t item, const void *key)
{
    return strcmp(((const struct prb_flame *)items)->labels[item], key) == 0;
}

uint32_t prb_flame_label(struct prb_flame *flame, const char *text)
{
    static const struct prb_index_kind kind = {label_hash, label_same};
    uint64_t hash = prb_hash_bytes(text, strlen(text));
    uint32_t item = prb_index_find(&flame->label_index, &kind, flame, hash, text);
    if (item != PRB_NO_ITEM)
        return item;
    char *copy = prb_arena_strdup(&flame->arena, text);
    if (!copy || !PRB_GROW(flame->labels, flame->label_count, flame->label_cap)) {
        flame->failed = true;
        return 0;
    }
    flame->labels[flame->label_count] = copy;
    flame->failed |=
        !prb_index_add(&flame->label_index, &kind, flame, hash, (uint32_t)flame->label_count);
    return (uint32_t)flame->label_count++;
}

static uint64_t node_hash(const void *items, uint32_t item)
{
    const struct prb_flame_node *node = &((const struct prb_flame *)items)->nodes[item];
    return prb_hash_words(node->parent, node->label);
}

static bool node_same(const void *items, uint32_t item, const void *key)
{
    const struct prb_flame_node *a = &((const struct prb_flame *)items)->nodes[item], *b = key;
    return a->parent == b->parent && a->label == b->label;
}

uint32_t prb_flame_child(struct prb_flame *flame, uint32_t parent, uint32_t label)
{
    static const struct prb_index_kind kind = {node_hash, node_same};
    const struct prb_flame_node node = {.parent = parent, .label = label};
    uint64_t hash = prb_hash_words(parent, label);
    uint32_t item = prb_index_find(&flame->node_index, &kind, flame, hash, &node);
    if (item != PRB_NO_ITEM)
        return item;
    if (!PRB_GROW(flame->nodes, flame->node_count, flame->node_cap)) {
        flame->failed = true;
        return 0;
    }
    if (!flame->node_count) /* the root */
        flame->nodes[flame->node_count++] = (struct prb_flame_node){0};
    if (!PRB_GROW(flame->nodes, flame->node_count, flame->node_cap)) {
        flame->failed = true;
        return 0;
    }
    flame->nodes[flame->node_count] = node;
    flame->failed |=
        !prb_index_add(&flame->node_index, &kind, flame, hash, (uint32_t)flame->node_count);
    return (uint32_t)flame->node_count++;
}

void prb_flame_sum(struct prb_flame *flame)
{
    for (size_t i = 0; i < flame->node_count; i++)
        flame->nodes[i].total = flame->nodes[i].self;
    for (size_t i = flame->node_count; i-- > 1;)
        flame->nodes[flame->nodes[i].parent].total += flame->nodes[i].total;
}

/* ---- the tree of a profile ---- */

static uint32_t child_named(struct prb_flame *flame, uint32_t parent, struct prb_buf *text)
{
    uint32_t label = prb_flame_label(flame, text->data ? text->data : "");
    text->len = 0;
    return prb_flame_child(flame, parent, label);
}

/* The rows above a thread's stacks: its process, if there are several that are shown apart, and
 * itself, if wanted. */
static uint32_t roots(struct prb_flame *flame, const struct prb_profile *profile, uint32_t thread,
                      const struct prb_profile_style *style, struct prb_buf *text)
{
    const struct prb_profile_thread *one = &profile->threads[thread];
    uint32_t node = 0;
    if ((profile->process_count > 1 && !style->together) || style->group_rank) {
        prb_label_process(text, &profile->processes[one->process], style);
        node = child_named(flame, node, text);
    }
    if (style->threads) {
        prb_label_thread(text, one);
        node = child_named(flame, node, text);
    }
    return node;
}

static void add_weight(struct prb_flame *flame, uint32_t thread, uint32_t node, uint64_t value)
{
    if (!PRB_GROW(flame->weights, flame->weight_count, flame->weight_cap)) {
        flame->failed = true;
        return;
    }
    flame->weights[flame->weight_count++] = (struct prb_flame_weight){thread, node, value};
    flame->nodes[node].self += value;
}

struct building {
    struct prb_flame *flame;
    const struct prb_profile *profile;
    uint32_t *labels; /* by frame of the profile */
    uint32_t *below;  /* by stack of the profile: its node, for the thread in owner */
    uint32_t *owner;
};

/* The node of a thread's stack, made from the outermost frame on.  Parents come first in the
 * profile, so one pass over the path is enough. */
static uint32_t place(struct building *b, uint32_t thread, uint32_t root, uint32_t node)
{
    PRB_AUTO(prb_buf) struct prb_buf path = {0};
    uint32_t at = node, parent = root;
    for (; at && b->owner[at] != thread; at = b->profile->nodes[at].parent)
        prb_buf_add(&path, &at, sizeof at);
    if (at)
        parent = b->below[at];
    for (size_t i = path.len / sizeof at; i-- > 0;) {
        memcpy(&at, path.data + i * sizeof at, sizeof at);
        parent = prb_flame_child(b->flame, parent, b->labels[b->profile->nodes[at].frame]);
        b->below[at] = parent;
        b->owner[at] = thread;
    }
    b->flame->failed |= path.failed;
    return parent;
}

static int by_thread(const void *a, const void *b, void *weights_)
{
    const struct prb_profile_weight *weights = weights_;
    const struct prb_profile_weight *x = &weights[*(const uint32_t *)a],
                                    *y = &weights[*(const uint32_t *)b];
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

static bool build(struct building *b, const struct prb_profile_style *style, uint32_t *order)
{
    const struct prb_profile *profile = b->profile;
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    for (size_t i = 0; i < profile->frame_count; i++) {
        prb_label_frame(&text, profile, (uint32_t)i, style);
        b->labels[i] = prb_flame_label(b->flame, text.data ? text.data : "");
        text.len = 0;
    }
    for (size_t i = 0; i < profile->weight_count; i++)
        order[i] = (uint32_t)i;
    for (size_t i = 0; i < profile->node_count; i++)
        b->owner[i] = PRB_NO_ITEM;
    qsort_r(order, profile->weight_count, sizeof *order, by_thread, (void *)profile->weights);
    uint32_t thread = PRB_NO_ITEM, root = 0;
    for (size_t i = 0; i < profile->weight_count && !b->flame->failed; i++) {
        const struct prb_profile_weight *weight = &profile->weights[order[i]];
        if (weight->thread != thread)
            root = roots(b->flame, profile, thread = weight->thread, style, &text);
        add_weight(b->flame, thread, place(b, thread, root, weight->node),
                   prb_value_of(profile, weight));
    }
    return !b->flame->failed && !text.failed;
}

bool prb_flame_build(struct prb_flame *flame, const struct prb_profile *profile,
                     const struct prb_profile_style *style, struct prb_error *err)
{
    PRB_AUTO_FREE uint32_t *labels = calloc(profile->frame_count + 1, sizeof *labels);
    PRB_AUTO_FREE uint32_t *below = calloc(profile->node_count + 1, sizeof *below);
    PRB_AUTO_FREE uint32_t *owner = calloc(profile->node_count + 1, sizeof *owner);
    PRB_AUTO_FREE uint32_t *order = calloc(profile->weight_count + 1, sizeof *order);
    struct building b = {flame, profile, labels, below, owner};
    if (!labels || !below || !owner || !order || !build(&b, style, order))
        return prb_nomem(err);
    prb_flame_sum(flame);
    return true;
}
