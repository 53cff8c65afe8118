/*
 * torch modules: the collector's objects whose class derives from torch.nn.Module, and their tree,
 * which their dicts _modules give.  A module with several parents is where a walk from the root
 * meets it first, as in named_modules().
 */
#include <string.h>

#include "base/hash_map.h"
#include "inspect/heap.h"
#include "py/object/reader.h"

#define KEY_MAX 200 /* characters of a child's name */
#define NAME_LONGEST 2000

/* ---- which classes ---- */

struct classes {
    struct prb_objects *objects;
    struct prb_hash_map known; /* by the address of the type: whether it is a module's class */
};
enum { MODULE = 1, OTHER };

static bool is_module_class(struct classes *classes, prb_addr type)
{
    uint64_t known = prb_hash_map_number(&classes->known, type);
    if (known)
        return known == MODULE;
    struct prb_hash_slot *slot = prb_hash_map_add(&classes->known, type);
    if (!slot)
        return false;
    struct prb_object_type *class = prb_type_at(classes->objects, type, NULL);
    bool is_module =
        class && prb_type_derives(classes->objects, class, "Module", "torch.nn.modules.module");
    slot->number = is_module ? MODULE : OTHER;
    return is_module;
}

/* ---- the modules ---- */

struct parts {
    struct prb_objects *objects;
    struct prb_module_node *node;
    int left;
};

static bool take_part(void *context, const char *name, prb_addr value)
{
    struct parts *parts = context;
    const struct {
        const char *name;
        prb_addr *place;
    } dicts[] = {{"_parameters", &parts->node->parameters},
                 {"_buffers", &parts->node->buffers},
                 {"_modules", &parts->node->modules}};
    for (size_t i = 0; i < 3; i++)
        if (!strcmp(name, dicts[i].name)) {
            *dicts[i].place = value;
            parts->left--;
        }
    if (!strcmp(name, "training")) {
        struct prb_int flag;
        parts->left--;
        if (prb_int_open(parts->objects, value, &flag, NULL))
            parts->node->training = flag.sign != 0;
    }
    return parts->left > 0;
}

/* A child of a module, in the order of the dict. */
struct edge {
    size_t child, next; /* next: edge of the same parent, or SIZE_MAX */
    const char *key;    /* in the heap's arena */
};

/* The tree under construction: modules as they are found, then in the order of the tree. */
struct tree {
    struct prb_heap *heap;
    struct prb_module_node *found;
    size_t count, cap;
    struct prb_hash_map index; /* object -> 1 + index in found */
    struct edge *edges;
    size_t edge_count, edge_cap;
    size_t *first; /* edge of each module; SIZE_MAX: none */
    bool *below;   /* it has a parent */
    bool *placed;
    size_t root; /* of the current branch, in the tree's order */
};

static void tree_deinit(struct tree *tree)
{
    free(tree->found);
    prb_hash_map_deinit(&tree->index);
    free(tree->edges);
    free(tree->first);
    free(tree->below);
    free(tree->placed);
}
PRB_DEFINE_AUTO(tree, struct tree, tree_deinit)

static bool find_modules(struct tree *tree, struct prb_heap_part *part, struct prb_error *err)
{
    struct prb_objects *objects = part->runtime->objects;
    struct classes classes = {.objects = objects};
    bool good = true;
    for (size_t i = 0; i < part->found.count && good; i++) {
        const struct prb_gc_object *object = &part->found.items[i];
        if (!is_module_class(&classes, object->type))
            continue;
        good = tree->count < PRB_MODULES_MAX && PRB_GROW(tree->found, tree->count, tree->cap);
        if (!good)
            break;
        struct prb_module_node *node = &tree->found[tree->count++];
        *node = (struct prb_module_node){.part = part, .object = object->object, .training = -1};
        struct parts parts = {objects, node, 4};
        (void)prb_attributes_each(objects, object->object, take_part, &parts, NULL);
    }
    prb_hash_map_deinit(&classes.known);
    return good || prb_nomem(err);
}

static size_t *no_links(size_t count)
{
    size_t *links = malloc((count + 1) * sizeof *links);
    for (size_t i = 0; links && i < count; i++)
        links[i] = SIZE_MAX;
    return links;
}

static bool index_modules(struct tree *tree, struct prb_error *err)
{
    tree->first = no_links(tree->count);
    tree->below = calloc(tree->count + 1, sizeof *tree->below);
    tree->placed = calloc(tree->count + 1, sizeof *tree->placed);
    if (!tree->first || !tree->below || !tree->placed)
        return prb_nomem(err);
    for (size_t i = 0; i < tree->count; i++) {
        struct prb_hash_slot *slot = prb_hash_map_add(&tree->index, tree->found[i].object);
        if (!slot)
            return prb_nomem(err);
        slot->number = i + 1;
    }
    return true;
}

/* ---- the tree ---- */

struct linking {
    struct tree *tree;
    size_t parent, last; /* last: its previous edge, or SIZE_MAX */
    bool failed;
};

static bool link_child(void *context, prb_addr key, prb_addr value)
{
    struct linking *linking = context;
    struct tree *tree = linking->tree;
    struct prb_module_node *parent = &tree->found[linking->parent];
    uint64_t at = prb_hash_map_number(&tree->index, value);
    PRB_AUTO(prb_buf) struct prb_buf name = {0};
    if (!at || at - 1 == linking->parent)
        return true; /* None, or not a module */
    if (!PRB_GROW(tree->edges, tree->edge_count, tree->edge_cap)) {
        linking->failed = true;
        return false;
    }
    (void)prb_object_str(parent->part->runtime->objects, key, KEY_MAX, &name, NULL);
    const char *text = prb_arena_strdup(&tree->heap->arena, name.data ? name.data : "?");
    tree->edges[tree->edge_count] = (struct edge){at - 1, SIZE_MAX, text ? text : "?"};
    if (linking->last == SIZE_MAX)
        tree->first[linking->parent] = tree->edge_count;
    else
        tree->edges[linking->last].next = tree->edge_count;
    linking->last = tree->edge_count++;
    tree->below[at - 1] = true;
    parent->children++;
    return true;
}

static const char *child_name(struct tree *tree, const char *parent, const char *key)
{
    if (!*parent || strlen(parent) > NAME_LONGEST)
        return key;
    const char *name = prb_arena_printf(&tree->heap->arena, "%s.%s", parent, key);
    return name ? name : key;
}

/* A module and those below it; parent: in the tree's order, SIZE_MAX for a root. */
static void place(struct tree *tree, size_t at, size_t parent, const char *key, unsigned depth)
{
    struct prb_heap *heap = tree->heap;
    size_t mine = heap->module_count++;
    tree->placed[at] = true;
    if (parent == SIZE_MAX)
        tree->root = mine;
    struct prb_module_node *node = &heap->modules[mine];
    *node = tree->found[at];
    node->parent = parent == SIZE_MAX ? mine : parent;
    node->root = tree->root;
    node->depth = depth;
    node->name = parent == SIZE_MAX ? "" : child_name(tree, heap->modules[parent].name, key);
    for (size_t i = tree->first[at]; i != SIZE_MAX; i = tree->edges[i].next)
        if (!tree->placed[tree->edges[i].child] && depth < PRB_MODULE_DEPTH_MAX)
            place(tree, tree->edges[i].child, mine, tree->edges[i].key, depth + 1);
    heap->modules[mine].below = heap->module_count - mine - 1;
}

bool prb_heap_modules(struct prb_heap *heap, struct prb_error *err)
{
    PRB_AUTO(tree) struct tree tree = {.heap = heap};
    if (heap->modules_known)
        return true;
    for (size_t i = 0; i < heap->part_count; i++)
        if (!find_modules(&tree, &heap->parts[i], err))
            return false;
    if (!index_modules(&tree, err))
        return false;
    for (size_t i = 0; i < tree.count; i++) {
        struct linking linking = {&tree, i, SIZE_MAX, false};
        if (tree.found[i].modules)
            (void)prb_dict_each(tree.found[i].part->runtime->objects, tree.found[i].modules,
                                link_child, &linking, NULL);
        if (linking.failed)
            return prb_nomem(err);
    }
    heap->modules = calloc(tree.count + 1, sizeof *heap->modules);
    if (!heap->modules)
        return prb_nomem(err);
    for (int rootless = 0; rootless < 2; rootless++) /* last those in a cycle of parents */
        for (size_t i = 0; i < tree.count; i++)
            if (!tree.placed[i] && (rootless || !tree.below[i]))
                place(&tree, i, SIZE_MAX, "", 0);
    heap->modules_known = true;
    return true;
}
