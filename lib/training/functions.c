/* Whether a process has the functions whose variables are to be watched, read from outside. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "inspect/heap.h"
#include "py/object/reader.h"
#include "training/watched.h"

#define NAME_CHARACTERS 127
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

static void look_at(struct looking *looking, struct prb_objects *objects, prb_addr function)
{
    struct prb_py *py = prb_objects_py(objects);
    uint64_t name = 0, qualname = 0;
    for (int i = 0; i < 2; i++) {
        PRB_AUTO(prb_buf) struct prb_buf text = {0};
        bool read = i ? PRB_FIELD_OF(py, function, function, qualname, &qualname, NULL)
                      : PRB_FIELD_OF(py, function, function, name, &name, NULL);
        prb_addr at = i ? qualname : name;
        if (read && at && at != (i ? name : 0) &&
            prb_object_str(objects, at, NAME_CHARACTERS, &text, NULL) && prb_buf_ok(&text) &&
            text.data)
            compare(looking, text.data);
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
    for (size_t p = 0; heap && p < heap->part_count; p++) {
        const struct prb_heap_part *part = &heap->parts[p];
        struct prb_objects *objects = part->runtime->objects;
        for (size_t i = 0; i < part->found.count; i++) {
            const struct prb_gc_object *found = &part->found.items[i];
            struct prb_object_type *type = prb_type_at(objects, found->type, NULL);
            if (type && type->kind == PRB_OBJ_FUNCTION)
                look_at(looking, objects, found->object);
        }
    }
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
