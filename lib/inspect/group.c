/* Threads with the same stack, folded. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"

struct groups_box {
    struct prb_stack_groups groups; /* first */
    size_t *members;                /* thread indices, group after group */
};

void prb_stack_groups_free(struct prb_stack_groups *groups)
{
    if (!groups)
        return;
    struct groups_box *box = (struct groups_box *)groups;
    free(box->groups.items);
    free(box->members);
    free(box);
}
PRB_DEFINE_AUTO_PTR(prb_stack_groups, struct prb_stack_groups, prb_stack_groups_free)

static int compare_text(const char *a, const char *b) { return strcmp(a ? a : "", b ? b : ""); }

static int compare_frames(const struct prb_frame *a, const struct prb_frame *b)
{
    int order = (int)a->kind - (int)b->kind;
    if (!order)
        order =
            compare_text(a->qualname ? a->qualname : a->name, b->qualname ? b->qualname : b->name);
    if (!order)
        order = compare_text(a->filename ? a->filename : a->module,
                             b->filename ? b->filename : b->module);
    return order ? order : a->line - b->line;
}

static int compare_threads(const struct prb_thread *a, const struct prb_thread *b)
{
    if (a->frame_count != b->frame_count)
        return a->frame_count < b->frame_count ? -1 : 1;
    for (size_t i = a->frame_count; i-- > 0;) {
        int order = compare_frames(&a->frames[i], &b->frames[i]);
        if (order)
            return order;
    }
    return 0;
}

static int by_stack(const void *a, const void *b, void *threads_)
{
    const struct prb_thread *const *threads = threads_;
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    int order = compare_threads(threads[x], threads[y]);
    return order ? order : (x > y) - (x < y);
}

/* Largest first; of equal size the one whose first thread comes first. */
static int by_size(const void *a, const void *b)
{
    const struct prb_stack_group *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return (x->threads[0] > y->threads[0]) - (x->threads[0] < y->threads[0]);
}

struct prb_stack_groups *prb_threads_group(const struct prb_thread *const *threads, size_t n,
                                           struct prb_error *err)
{
    struct groups_box *box = calloc(1, sizeof *box);
    if (!box)
        return PRB_NULL(prb_nomem(err));
    PRB_AUTO(prb_stack_groups) struct prb_stack_groups *groups = &box->groups;
    box->members = calloc(n + 1, sizeof *box->members);
    groups->items = calloc(n + 1, sizeof *groups->items);
    if (!box->members || !groups->items)
        return PRB_NULL(prb_nomem(err));
    for (size_t i = 0; i < n; i++)
        box->members[i] = i;
    qsort_r(box->members, n, sizeof *box->members, by_stack, (void *)threads);
    for (size_t i = 0; i < n; i++) {
        const struct prb_thread *thread = threads[box->members[i]];
        bool same = i && compare_threads(thread, threads[box->members[i - 1]]) == 0;
        if (!same)
            groups->items[groups->count++].threads = &box->members[i];
        groups->items[groups->count - 1].count++;
    }
    qsort(groups->items, groups->count, sizeof *groups->items, by_size);
    return PRB_STEAL(groups);
}

struct prb_stack_groups *prb_stacks_group(const struct prb_stacks *stacks, struct prb_error *err)
{
    PRB_AUTO_FREE const struct prb_thread **threads =
        calloc(stacks->thread_count + 1, sizeof *threads);
    if (!threads)
        return PRB_NULL(prb_nomem(err));
    for (size_t i = 0; i < stacks->thread_count; i++)
        threads[i] = &stacks->threads[i];
    return prb_threads_group(threads, stacks->thread_count, err);
}
