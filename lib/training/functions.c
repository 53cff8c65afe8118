/* Whether a process has the functions whose variables are to be watched, read from outside. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "inspect/heap.h"
#include "py/object/reader.h"
#include "training/watched.h"

#define NAME_CHARACTERS 127
#define NAME_BYTES 128 /* of a str: its head and, as a rule, all of a name */
#define NEAR_MAX 3

PRB_DEFINE_AUTO_PTR(prb_heap, struct prb_heap, prb_heap_free)

struct wanted {
    char name[PRB_WATCHED_TEXT_MAX];
    bool found;
    size_t near_count;
    struct near {
        char name[NAME_CHARACTERS + 1];
        unsigned distance;
    } near[NEAR_MAX];
};

struct looking {
    struct wanted functions[PRB_WATCHED_MAX];
    size_t count;
};

/* What an item of a spec watches: without the key before it.  0 bytes: nothing. */
static size_t watched_part(const char **item, size_t len)
{
    size_t equals = 0;
    while (equals < len && (*item)[equals] != '=' && (*item)[equals] != '[')
        equals++;
    if (equals < len && (*item)[equals] == '=') {
        *item += equals + 1;
        len -= equals + 1;
    }
    return memchr(*item, '@', len) ? len : 0;
}

static bool parse(const char *exprs, struct looking *out, struct prb_error *err)
{
    struct prb_watched watched;
    for (const char *at = exprs; *at && out->count < PRB_WATCHED_MAX;) {
        size_t len = prb_watched_item(at), i = 0;
        const char *item = at;
        size_t part = watched_part(&item, len);
        at += len + (at[len] == ',');
        if (!part)
            continue;
        if (!prb_watched_parse_item(item, part, &watched, err))
            return false;
        while (i < out->count && strcmp(out->functions[i].name, watched.function) != 0)
            i++;
        if (i == out->count && watched.function[0] && /* <module> and the like have no object */
            watched.function[0] != '<')
            memcpy(out->functions[out->count++].name, watched.function, sizeof watched.function);
    }
    return true;
}

/* The nearest ones, each name once. */
static void keep_near(struct wanted *wanted, const char *name, unsigned distance)
{
    size_t at = 0;
    for (size_t i = 0; i < wanted->near_count; i++)
        if (strcmp(wanted->near[i].name, name) == 0)
            return;
    while (at < wanted->near_count && wanted->near[at].distance <= distance)
        at++;
    if (at == NEAR_MAX)
        return;
    size_t last = wanted->near_count < NEAR_MAX ? wanted->near_count++ : NEAR_MAX - 1;
    memmove(&wanted->near[at + 1], &wanted->near[at], (last - at) * sizeof *wanted->near);
    wanted->near[at].distance = distance;
    snprintf(wanted->near[at].name, sizeof wanted->near[at].name, "%s", name);
}

static void compare(struct looking *looking, const char *name)
{
    for (size_t i = 0; i < looking->count; i++) {
        struct wanted *wanted = &looking->functions[i];
        if (wanted->found || strcmp(wanted->name, name) == 0) {
            wanted->found = true;
            continue;
        }
        unsigned distance = prb_edit_distance(wanted->name, name);
        if (distance <= prb_edit_limit(wanted->name))
            keep_near(wanted, name, distance);
    }
}

static void compare_str(struct looking *looking, struct prb_objects *objects, prb_addr str)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (str && prb_object_str(objects, str, NAME_CHARACTERS, &text, NULL) && prb_buf_ok(&text) &&
        text.data)
        compare(looking, text.data);
}

/* At most PRB_OBJECTS_BATCH functions, whose names are read together. */
static void look_at(struct looking *looking, struct prb_objects *objects, const prb_addr *functions,
                    size_t count)
{
    uint64_t names[PRB_OBJECTS_BATCH][2] = {0}; /* name and qualname; 0: none, or the same */
    const size_t bytes = (size_t)PRB_OFF(objects->layout, function, qualname) + sizeof(uint64_t);
    prb_objects_make_room(objects);
    for (size_t i = 0; i < count; i++)
        prb_view_prefetch(objects->view, functions[i], bytes);
    for (size_t i = 0; i < count; i++) {
        if (!PRB_GET(objects, functions[i], function, name, &names[i][0]) ||
            !PRB_GET(objects, functions[i], function, qualname, &names[i][1]))
            continue;
        names[i][1] = names[i][1] == names[i][0] ? 0 : names[i][1];
        for (int which = 0; which < 2; which++)
            if (names[i][which])
                prb_view_prefetch(objects->view, names[i][which], NAME_BYTES);
    }
    for (size_t i = 0; i < count; i++)
        for (int which = 0; which < 2; which++)
            compare_str(looking, objects, names[i][which]);
}

static bool all_found(const struct looking *looking)
{
    for (size_t i = 0; i < looking->count; i++)
        if (!looking->functions[i].found)
            return false;
    return true;
}

/* The youngest first, as those of the program came after those of its libraries. */
static void look_in(struct looking *looking, const struct prb_heap_part *part)
{
    struct prb_objects *objects = part->runtime->objects;
    prb_addr functions[PRB_OBJECTS_BATCH];
    size_t count = 0;
    for (size_t i = part->found.count; i-- > 0 && !all_found(looking);) {
        const struct prb_gc_object *found = &part->found.items[i];
        struct prb_object_type *type = prb_type_at(objects, found->type, NULL);
        if (type && type->kind == PRB_OBJ_FUNCTION)
            functions[count++] = found->object;
        if (count == PRB_OBJECTS_BATCH || i == 0) {
            look_at(looking, objects, functions, count);
            count = 0;
        }
    }
}

static bool look(struct prb_target *target, struct looking *looking, struct prb_error *err)
{
    const struct prb_stack_options options = {.all_interpreters = true};
    struct prb_stacks *stacks = prb_stacks_take(target, &options, err); /* finds interpreters */
    if (!stacks)
        return false;
    prb_stacks_free(stacks);
    PRB_AUTO(prb_heap) struct prb_heap *heap = prb_heap_take(target, err);
    for (size_t p = 0; heap && p < heap->part_count; p++)
        look_in(looking, &heap->parts[p]);
    return heap != NULL;
}

char *prb_watched_unknown(struct prb_target *target, const char *exprs, struct prb_error *err)
{
    PRB_AUTO_FREE struct looking *looking = calloc(1, sizeof *looking);
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    if (!looking)
        return PRB_NULL(prb_nomem(err));
    if (!parse(exprs, looking, err) || (looking->count && !look(target, looking, err)))
        return NULL;
    prb_buf_adds(&text, "");
    for (size_t i = 0; i < looking->count; i++) {
        const struct wanted *wanted = &looking->functions[i];
        if (wanted->found)
            continue;
        prb_buf_addf(&text, "no function %s is there yet", wanted->name);
        for (size_t n = 0; n < wanted->near_count; n++)
            prb_buf_addf(&text, "%s%s", n ? ", " : "; near: ", wanted->near[n].name);
        prb_buf_adds(&text, "\n");
    }
    if (!text.data)
        prb_buf_add(&text, "", 1);
    return prb_buf_ok(&text) ? prb_buf_steal(&text) : PRB_NULL(prb_nomem(err));
}
