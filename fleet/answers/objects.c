/* See objects.h. */
#include "fleet/objects.h"

void prb_rank_objects_deinit(struct prb_rank_objects *objects)
{
    for (size_t i = 0; i < objects->count; i++)
        json_decref(objects->items[i].list);
    free(objects->items);
    *objects = (struct prb_rank_objects){0};
}

static int by_rank(const void *a, const void *b)
{
    const struct prb_rank_object *x = a, *y = b;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

void prb_rank_objects_sort(struct prb_rank_objects *objects)
{
    if (objects->count)
        qsort(objects->items, objects->count, sizeof *objects->items, by_rank);
}

void prb_rank_objects_json(const struct prb_rank_objects *objects, FILE *out)
{
    size_t written = 0;
    fputc('[', out);
    for (size_t i = 0; i < objects->count; i++) {
        const struct prb_rank_object *of = &objects->items[i];
        for (size_t k = 0; k < json_array_size(of->list); k++) {
            json_t *one = json_array_get(of->list, k);
            json_object_set_new(one, "rank", json_integer(of->rank));
            json_object_set_new(one, "host", json_string(of->host));
            char *text = json_dumps(one, JSON_REAL_PRECISION(15));
            fprintf(out, "%s%s", written++ ? ",\n " : "", text ? text : "null");
            free(text);
        }
    }
    fputc(']', out);
}
