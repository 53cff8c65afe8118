/*
 * The objects that the collectors of a target know, and the torch modules among them: what the
 * tables of objects share in one statement.
 */
#ifndef PRB_INSPECT_HEAP_H
#define PRB_INSPECT_HEAP_H

#include "inspect/target.h"
#include "py/gc.h"

#define PRB_MODULES_MAX 1000000 /* torch modules of a target */
#define PRB_MODULE_DEPTH_MAX 256

/* The objects of one interpreter. */
struct prb_heap_part {
    const struct prb_runtime *runtime;
    int64_t interpreter;
    struct prb_gc_objects found;
};

/* A torch.nn.Module, in the order of its tree: below it stand the next `below` ones. */
struct prb_module_node {
    const struct prb_heap_part *part;
    prb_addr object;
    prb_addr parameters, buffers, modules; /* its dicts; 0: not there */
    const char *name;                      /* from its root, "layers.0.fc1"; "" of a root */
    size_t parent, root;                   /* indices; its own: it is a root */
    size_t below;
    unsigned depth, children;
    int training; /* -1: not known */
};

struct prb_heap {
    struct prb_heap_part *parts;
    size_t part_count;
    const char *why; /* what is missing, or NULL */
    struct prb_module_node *modules;
    size_t module_count;
    bool modules_known;
    struct prb_arena arena;
};

/* All interpreters', which the sampler saw last.  Borrows the target.  prb_gc_take's errors. */
struct prb_heap *prb_heap_take(struct prb_target *target, struct prb_error *err);
void prb_heap_free(struct prb_heap *heap);
/* Find the modules, once. */
bool prb_heap_modules(struct prb_heap *heap, struct prb_error *err);

#endif
