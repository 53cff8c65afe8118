/* Groups and tensors of collectives: see recorded_groups.h. */
#include "table/shared/recorded_groups.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "inject/control.h"
#include "inspect/target.h"
#include "table/shared/thread_columns.h"

#define WORLD_MAX 4096 /* ranks that are listed */
#define FARTHEST_S 1   /* between what the observer and the recorder call the beginning */

struct prb_group_entry {
    double created; /* s since the epoch */
    const json_t *entry, *config;
    int64_t rank, world_size; /* of the process; -1: not known */
    const char *name;         /* "gloo:all_reduce" */
};

void prb_groups_deinit(struct prb_groups *groups)
{
    for (size_t i = 0; i < groups->run_count; i++)
        free(groups->runs[i].seen);
    free(groups->runs);
    free(groups->entries);
    prb_recording_deinit(&groups->recording);
}

static int by_name(const void *a, const void *b)
{
    const struct prb_group_entry *x = a, *y = b;
    int names = strcmp(x->name, y->name);
    return names ? names : (x->created > y->created) - (x->created < y->created);
}

static void read_recorder(struct prb_groups *groups, const json_t *recorder)
{
    size_t i;
    const json_t *entry;
    json_array_foreach(json_object_get(recorder, "entries"), i, entry)
    {
        const char *name =
            json_string_value(json_array_get(json_object_get(entry, "process_group"), 0));
        json_int_t created = json_integer_value(json_object_get(entry, "time_created_ns"));
        const char *operation = json_string_value(json_object_get(entry, "profiling_name"));
        if (created <= 0 || !name || !operation ||
            !PRB_GROW(groups->entries, groups->count, groups->cap))
            continue;
        groups->entries[groups->count++] = (struct prb_group_entry){
            .created = (double)created / 1e9,
            .entry = entry,
            .name = operation,
            .config = json_object_get(json_object_get(recorder, "pg_config"), name),
            .rank = groups->recording.rank,
            .world_size = groups->recording.world_size};
    }
}

/* No probe is loaded for it, and where there is no recorder, nothing is known. */
static void read_all(struct prb_rows *rows, struct prb_groups *groups)
{
    struct prb_target *target = prb_rows_target(rows);
    struct prb_error why;
    size_t i;
    const json_t *recorder;
    if (!target || prb_target_info(target)->kind != PRB_TARGET_PROCESS ||
        !prb_control_seen((pid_t)prb_target_info(target)->pid) ||
        !prb_recording_take(rows, target, &groups->recording, &why))
        return;
    json_array_foreach(groups->recording.texts, i, recorder) read_recorder(groups, recorder);
    if (groups->count)
        qsort(groups->entries, groups->count, sizeof *groups->entries, by_name);
}

/* ---- which is which ---- */

static struct prb_group_run *run_of(struct prb_groups *groups, int64_t arming, int64_t label)
{
    for (size_t i = 0; i < groups->run_count; i++) {
        size_t place = (groups->last + i) % groups->run_count; /* mostly the same as before */
        struct prb_group_run *run = &groups->runs[place];
        if (run->arming != arming || run->label != label)
            continue;
        groups->last = place;
        return run;
    }
    return NULL;
}

bool prb_groups_note(struct prb_groups *groups, int64_t arming, int64_t label, int64_t number,
                     double begin)
{
    struct prb_group_run *run = run_of(groups, arming, label);
    if (!run) {
        if (!PRB_GROW(groups->runs, groups->run_count, groups->run_cap))
            return false;
        run = &groups->runs[groups->run_count++];
        *run = (struct prb_group_run){.arming = arming, .label = label};
    }
    if (!PRB_GROW(run->seen, run->count, run->cap))
        return false;
    run->seen[run->count++] = (struct prb_numbered){number, begin};
    return true;
}

static int by_begin(const void *a, const void *b)
{
    const struct prb_numbered *x = a, *y = b;
    return (x->time > y->time) - (x->time < y->time);
}

/* A row is written when the collective ends, which need not be in the order of the beginnings. */
static void join(struct prb_groups *groups, struct prb_group_run *run, const char *name,
                 double *times)
{
    while (run->first < groups->count && strcmp(groups->entries[run->first].name, name) < 0)
        run->first++;
    for (size_t i = run->first; i < groups->count && strcmp(groups->entries[i].name, name) == 0;
         i++)
        times[run->entries++] = groups->entries[i].created;
    qsort(run->seen, run->count, sizeof *run->seen, by_begin);
    run->joined = prb_align(run->seen, run->count, times, run->entries, &run->shift);
}

bool prb_groups_join(struct prb_rows *rows, struct prb_groups *groups,
                     const char *(*label_of)(const void *, int64_t), const void *context)
{
    if (groups->run_count)
        read_all(rows, groups);
    PRB_AUTO_FREE double *times = calloc(groups->count + 1, sizeof *times);
    if (!times)
        return false;
    for (size_t i = 0; i < groups->run_count; i++) {
        const char *name = label_of(context, groups->runs[i].label);
        if (name)
            join(groups, &groups->runs[i], name, times);
    }
    return true;
}

const struct prb_group_entry *prb_groups_find(struct prb_groups *groups, int64_t arming,
                                              int64_t label, int64_t number, double begin)
{
    const struct prb_group_run *run = run_of(groups, arming, label);
    int64_t place = run ? number + run->shift : -1;
    if (!run || !run->joined || place < 0 || place >= (int64_t)run->entries)
        return NULL;
    const struct prb_group_entry *entry = &groups->entries[run->first + (size_t)place];
    return fabs(entry->created - begin) <= FARTHEST_S ? entry : NULL;
}

/* ---- cells ---- */

void prb_row_group(struct prb_rows *rows, const struct prb_group_entry *entry)
{
    if (entry)
        prb_row_json_text(rows, json_array_get(json_object_get(entry->entry, "process_group"), 0));
    else
        prb_row_null(rows);
}

void prb_row_group_number(struct prb_rows *rows, const struct prb_group_entry *entry)
{
    if (entry)
        prb_row_json_int(rows, entry->entry, "collective_seq_id");
    else
        prb_row_null(rows);
}

/* Bytes of an element, by c10's names; 0: not known. */
static int64_t size_of(const char *dtype)
{
    static const struct {
        const char *name;
        int64_t size;
    } sizes[] = {{"Float", 4}, {"Double", 8}, {"Half", 2},         {"BFloat16", 2},
                 {"Long", 8},  {"Int", 4},    {"Short", 2},        {"Char", 1},
                 {"Byte", 1},  {"Bool", 1},   {"ComplexFloat", 8}, {"ComplexDouble", 16}};
    for (size_t i = 0; dtype && i < sizeof sizes / sizeof *sizes; i++)
        if (strcmp(dtype, sizes[i].name) == 0)
            return sizes[i].size;
    return 0;
}

/* Of all tensors; -1: not known. */
static int64_t bytes_of(const json_t *shapes, const json_t *dtypes)
{
    int64_t all = 0;
    size_t i, k;
    const json_t *shape, *side;
    if (!json_is_array(shapes) || json_array_size(shapes) != json_array_size(dtypes))
        return -1;
    json_array_foreach(shapes, i, shape)
    {
        int64_t one = size_of(json_string_value(json_array_get(dtypes, i)));
        if (!one)
            return -1;
        json_array_foreach(shape, k, side) if (__builtin_mul_overflow(one, json_integer_value(side),
                                                                      &one)) return -1;
        if (one < 0 || __builtin_add_overflow(all, one, &all))
            return -1;
    }
    return all;
}

/* Of one tensor what there is of it, of more the list. */
static const json_t *single(const json_t *list)
{
    return json_array_size(list) == 1 ? json_array_get(list, 0) : list;
}

/* "[0, 1]": how many, and which place a rank has, from 0; -1: none. */
static int64_t ranks_of(const char *text, int64_t rank, int64_t *place_out)
{
    int64_t count = 0;
    *place_out = -1;
    while (text && *(text += strcspn(text, "0123456789"))) {
        char *end;
        if (strtoll(text, &end, 10) == rank)
            *place_out = count;
        count++;
        text = end;
    }
    return count;
}

/* gloo does not say who is in a group; in the job's own one are all. */
static void put_ranks(struct prb_rows *rows, const struct prb_group_entry *entry)
{
    PRB_AUTO(prb_buf) struct prb_buf all = {0};
    const json_t *ranks = json_object_get(entry->config, "ranks");
    const char *text = json_string_value(ranks);
    const char *desc =
        json_string_value(json_array_get(json_object_get(entry->entry, "process_group"), 1));
    if (!text && desc && strcmp(desc, "default_pg") == 0 && entry->world_size <= WORLD_MAX)
        for (int64_t i = 0; i < entry->world_size; i++)
            prb_buf_addf(&all, "%s%lld%s", i ? ", " : "[", (long long)i,
                         i + 1 == entry->world_size ? "]" : "");
    text = text ? text : all.len && prb_buf_ok(&all) ? all.data : NULL;
    int64_t place, count = ranks_of(text, entry->rank, &place);
    prb_row_text(rows, text);
    prb_row_int_unless(rows, entry->rank < 0 ? -1 : place, -1);
    prb_row_int_unless(rows, count, 0);
}

void prb_row_group_tensors(struct prb_rows *rows, const struct prb_group_entry *entry)
{
    if (!entry) {
        for (int i = 0; i < 6; i++)
            prb_row_null(rows);
        return;
    }
    const json_t *shapes = json_object_get(entry->entry, "input_sizes");
    const json_t *dtypes = json_object_get(entry->entry, "input_dtypes");
    prb_row_int_unless(rows, bytes_of(shapes, dtypes), -1);
    prb_row_json_text(rows, single(shapes));
    prb_row_json_text(rows, single(dtypes));
    put_ranks(rows, entry);
}
