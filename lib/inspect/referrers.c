/* Who refers to what: see referrers.h. */
#include "inspect/referrers.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash_map.h"
#include "base/progress.h"
#include "py/object/reader.h"

#define ASK_EVERY 4096  /* objects */
#define LABELS_MAX 4096 /* different ways to refer; more are not told apart */

/* One way to refer to objects of one type: from a class, by an attribute or as an item. */
struct way {
    const struct prb_object_type *from;
    const char *attribute; /* NULL: an item */
    uint64_t hits;
    prb_addr container; /* the object with most of them, among those that refer by items */
    uint64_t container_hits;
};

struct ways {
    struct way *items;
    size_t count, cap;
};

struct search {
    const struct prb_heap_part *part;
    struct prb_objects *objects;
    struct prb_hash_map wanted; /* by object: 1 + index of its type */
    struct ways ways[PRB_REFERRED_TYPES_MAX];
    struct prb_arena *arena;
    bool failed;
    /* the object that is walked */
    const struct prb_object_type *type;
    prb_addr object;
    uint64_t here[PRB_REFERRED_TYPES_MAX]; /* its items */
};

static void search_deinit(struct search *search)
{
    prb_progress(NULL, 0);
    prb_hash_map_deinit(&search->wanted);
    for (size_t i = 0; i < PRB_REFERRED_TYPES_MAX; i++)
        free(search->ways[i].items);
}
PRB_DEFINE_AUTO(search, struct search, search_deinit)

static struct way *way_of(struct search *search, size_t k, const char *attribute)
{
    struct ways *ways = &search->ways[k];
    for (size_t i = 0; i < ways->count; i++) {
        struct way *way = &ways->items[i];
        if (way->from == search->type && !way->attribute == !attribute &&
            (!attribute || strcmp(way->attribute, attribute) == 0))
            return way;
    }
    if (ways->count >= LABELS_MAX)
        return NULL;
    if (!PRB_GROW(ways->items, ways->count, ways->cap)) {
        search->failed = true;
        return NULL;
    }
    struct way *way = &ways->items[ways->count++];
    *way = (struct way){.from = search->type};
    if (attribute && !(way->attribute = prb_arena_strdup(search->arena, attribute)))
        search->failed = true;
    return way;
}

static bool take_item(void *context, prb_addr key, prb_addr value)
{
    struct search *search = context;
    uint64_t of_value = prb_hash_map_number(&search->wanted, value);
    uint64_t of_key = key ? prb_hash_map_number(&search->wanted, key) : 0;
    if (of_value)
        search->here[of_value - 1]++;
    if (of_key)
        search->here[of_key - 1]++;
    return true;
}

static bool take_attribute(void *context, const char *name, prb_addr value)
{
    struct search *search = context;
    uint64_t known = prb_hash_map_number(&search->wanted, value);
    struct way *way = known ? way_of(search, known - 1, name) : NULL;
    if (way)
        way->hits++;
    return !search->failed;
}

static void count_items(struct search *search, size_t types)
{
    for (size_t k = 0; k < types; k++) {
        struct way *way = search->here[k] ? way_of(search, k, NULL) : NULL;
        if (!way)
            continue;
        way->hits += search->here[k];
        if (search->here[k] > way->container_hits) {
            way->container_hits = search->here[k];
            way->container = search->object;
        }
    }
}

static void walk(struct search *search, const struct prb_gc_object *found, prb_item_fn *each_item,
                 prb_attribute_fn *each_attribute)
{
    struct prb_object_type *type = prb_type_at(search->objects, found->type, NULL);
    search->type = type;
    search->object = found->object;
    if (!type)
        return;
    search->objects->steps = PRB_DICT_MAX;
    if (type->kind == PRB_OBJ_DICT)
        (void)prb_dict_walk(search->objects, found->object, each_item, search, NULL);
    else if (type->kind == PRB_OBJ_LIST || type->kind == PRB_OBJ_TUPLE ||
             type->kind == PRB_OBJ_SET || type->kind == PRB_OBJ_FROZENSET ||
             type->kind == PRB_OBJ_DEQUE)
        (void)prb_sequence_walk(search->objects, found->object, type->kind, each_item, search,
                                NULL);
    if (type->python || type->kind == PRB_OBJ_OTHER)
        (void)prb_attributes_walk(search->objects, found->object, type, each_attribute, search,
                                  NULL);
}

static bool walk_all(struct search *search, size_t types, prb_referrers_go_on_fn *go_on,
                     void *context, struct prb_error *err)
{
    for (size_t i = 0; i < search->part->found.count; i++) {
        memset(search->here, 0, sizeof search->here);
        walk(search, &search->part->found.items[i], take_item, take_attribute);
        count_items(search, types);
        if (search->failed)
            return prb_nomem(err);
        if (i % ASK_EVERY)
            continue;
        prb_progress("references followed", i);
        if (!go_on(context))
            return prb_fail(err, PRB_TIMEOUT, "the time is over");
    }
    return true;
}

/* ---- who has a container ---- */

#define NAME_MAX_CHARS 80

struct owners {
    const struct prb_heap_part *part;
    struct prb_objects *objects;
    struct prb_hash_map wanted; /* by container: 1 + index of its type */
    const char *found[PRB_REFERRED_TYPES_MAX];
    struct prb_arena *arena;
    const struct prb_object_type *type; /* of the object that is walked; NULL: a module's dict */
    prb_addr dict;
};

static void owners_deinit(struct owners *owners) { prb_hash_map_deinit(&owners->wanted); }
PRB_DEFINE_AUTO(owners, struct owners, owners_deinit)

static void own(struct owners *owners, uint64_t known, const char *owner, const char *name)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (!known || owners->found[known - 1])
        return;
    prb_buf_adds(&text, owner);
    prb_buf_adds(&text, ".");
    prb_buf_adds(&text, name);
    if (prb_buf_ok(&text))
        owners->found[known - 1] = prb_arena_strdup(owners->arena, text.data);
}

static bool own_attribute(void *context, const char *name, prb_addr value)
{
    struct owners *owners = context;
    uint64_t known = prb_hash_map_number(&owners->wanted, value);
    if (known)
        own(owners, known, prb_type_short_name(owners->type), name);
    return true;
}

/* Of a dict that is a module's: "__main__.kept". */
static bool own_item(void *context, prb_addr key, prb_addr value)
{
    struct owners *owners = context;
    uint64_t known = prb_hash_map_number(&owners->wanted, value);
    prb_addr module = 0;
    if (!known || owners->found[known - 1] || !key)
        return true;
    const char *name = prb_objects_strdup(owners->objects, key, NAME_MAX_CHARS);
    if (!name || !prb_dict_get(owners->objects, owners->dict, "__name__", &module, NULL) || !module)
        return true;
    const char *of = prb_objects_strdup(owners->objects, module, NAME_MAX_CHARS);
    if (of)
        own(owners, known, of, name);
    return true;
}

static bool find_owners(struct owners *owners, prb_referrers_go_on_fn *go_on, void *context)
{
    struct prb_objects *objects = owners->objects;
    for (size_t i = 0; i < owners->part->found.count; i++) {
        const struct prb_gc_object *found = &owners->part->found.items[i];
        struct prb_object_type *type = prb_type_at(objects, found->type, NULL);
        objects->steps = PRB_DICT_MAX;
        owners->type = type;
        owners->dict = found->object;
        if (type && type->kind == PRB_OBJ_DICT)
            (void)prb_dict_walk(objects, found->object, own_item, owners, NULL);
        else if (type && type->python)
            (void)prb_attributes_walk(objects, found->object, type, own_attribute, owners, NULL);
        if (i % ASK_EVERY == 0 && !go_on(context))
            return false;
    }
    return true;
}

/* ---- the answer ---- */

static const struct way *best_of(const struct ways *ways)
{
    const struct way *best = NULL, *attribute = NULL;
    for (size_t i = 0; i < ways->count; i++) {
        const struct way *way = &ways->items[i];
        if (!best || way->hits > best->hits)
            best = way;
        if (way->attribute && (!attribute || way->hits > attribute->hits))
            attribute = way;
    }
    /* An instance's dict refers to as many as the instance, which says more. */
    return attribute && attribute->hits * 10 >= best->hits * 9 ? attribute : best;
}

static const char *label(struct search *search, const struct way *way, const char *owner)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (way->attribute)
        prb_buf_addf(&text, "%s.%s", prb_type_short_name(way->from), way->attribute);
    else
        prb_type_full_name(search->objects, (struct prb_object_type *)way->from, &text);
    if (owner)
        prb_buf_addf(&text, " in %s", owner);
    return prb_buf_ok(&text) ? prb_arena_strdup(search->arena, text.data) : NULL;
}

bool prb_referrers_find(const struct prb_heap_part *part, const prb_addr *types, size_t count,
                        prb_referrers_go_on_fn *go_on, void *context, struct prb_arena *arena,
                        const char **out, struct prb_error *err)
{
    PRB_AUTO(search)
    struct search search = {.part = part, .objects = part->runtime->objects, .arena = arena};
    PRB_AUTO(owners)
    struct owners owners = {.part = part, .objects = search.objects, .arena = arena};
    const struct way *best[PRB_REFERRED_TYPES_MAX] = {NULL};
    for (size_t i = 0; i < part->found.count; i++)
        for (size_t k = 0; k < count; k++) {
            if (part->found.items[i].type != types[k])
                continue;
            struct prb_hash_slot *slot =
                prb_hash_map_add(&search.wanted, part->found.items[i].object);
            if (!slot)
                return prb_nomem(err);
            slot->number = k + 1;
        }
    if (!walk_all(&search, count, go_on, context, err))
        return false;
    for (size_t k = 0; k < count; k++) {
        best[k] = best_of(&search.ways[k]);
        if (!best[k] || best[k]->attribute)
            continue;
        struct prb_hash_slot *slot = prb_hash_map_add(&owners.wanted, best[k]->container);
        if (!slot)
            return prb_nomem(err);
        slot->number = slot->number ? slot->number : k + 1;
    }
    if (owners.wanted.count && !find_owners(&owners, go_on, context))
        return prb_fail(err, PRB_TIMEOUT, "the time is over");
    for (size_t k = 0; k < count; k++) {
        uint64_t owner = best[k] && !best[k]->attribute
                             ? prb_hash_map_number(&owners.wanted, best[k]->container)
                             : 0;
        out[k] = best[k] ? label(&search, best[k], owner ? owners.found[owner - 1] : NULL) : NULL;
    }
    return true;
}
