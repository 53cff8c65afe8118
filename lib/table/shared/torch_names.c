/* Names for rows of PyTorch tracing: see torch_names.h. */
#include "table/shared/torch_names.h"

#include <string.h>

#include "inspect/target.h"
#include "table/recorded/each.h"
#include "table/recorded/live.h"
#include "table/shared/thread_columns.h"

void prb_torch_names_deinit(struct prb_torch_names *names)
{
    prb_hash_map_deinit(&names->labels);
    prb_hash_map_deinit(&names->objects);
    prb_hash_map_deinit(&names->offsets);
    prb_hash_map_deinit(&names->steps);
    prb_arena_deinit(&names->arena);
}

/* Keys of the maps; never 0. */
static uint64_t object_key(int64_t arming, int64_t address)
{
    return (uint64_t)address ^ (uint64_t)arming << 48 ^ UINT64_C(1) << 63;
}
static uint64_t step_key(int64_t arming, int64_t step)
{
    return ((uint64_t)arming << 40 ^ (uint64_t)step) + 1;
}

static void put(struct prb_torch_names *names, struct prb_hash_map *map, uint64_t key, void *value)
{
    struct prb_hash_slot *slot = value ? prb_hash_map_add(map, key) : NULL;
    if (slot)
        slot->pointer = value;
    else
        names->failed = true;
}

static const char *text_of(struct prb_torch_names *names, const struct prb_ring_value *value)
{
    char *copy = value->null ? NULL : prb_arena_alloc(&names->arena, value->len + 1);
    if (!copy)
        return NULL;
    memcpy(copy, value->text, value->len);
    copy[value->len] = '\0';
    return copy;
}

static bool take_name(void *context, const struct prb_ring_value *values)
{
    struct prb_torch_names *names = context;
    int64_t key = values[PRB_TRACE_NAME_KEY].integer;
    int64_t arming = values[PRB_TRACE_NAME_ARMING].integer;
    int64_t number = values[PRB_TRACE_NAME_NUMBER].integer;
    int64_t kind = values[PRB_TRACE_NAME_KIND].integer;
    if (kind == PRB_TRACE_KIND_PROCESS) {
        names->pid = key;
        names->role = text_of(names, &values[PRB_TRACE_NAME_NAME]);
        names->rank = number < 0 ? -1 : PRB_TRACE_HIGH(number);
        names->world_size = number < 0 ? -1 : PRB_TRACE_LOW(number);
        return true;
    }
    struct prb_torch_name *name = prb_arena_alloc(&names->arena, sizeof *name);
    if (!name)
        return names->failed = true, false;
    *name = (struct prb_torch_name){.name = text_of(names, &values[PRB_TRACE_NAME_NAME]),
                                    .class_name = text_of(names, &values[PRB_TRACE_NAME_CLASS]),
                                    .number = kind == PRB_TRACE_KIND_OFFSET ? key : number};
    if (kind == PRB_TRACE_KIND_LABEL)
        put(names, &names->labels, (uint64_t)key, name);
    else if (kind == PRB_TRACE_KIND_OFFSET)
        put(names, &names->offsets, (uint64_t)arming, name);
    else
        put(names, &names->objects, object_key(arming, key), name);
    return !names->failed;
}

static bool take_step(void *context, const struct prb_ring_value *values)
{
    struct prb_torch_names *names = context;
    struct prb_torch_ended *ended = prb_arena_alloc(&names->arena, sizeof *ended);
    if (!ended)
        return names->failed = true, false;
    *ended = (struct prb_torch_ended){
        .begin = values[PRB_TRACE_STEP_END].real -
                 (double)values[PRB_TRACE_STEP_DURATION].integer * 1e-9,
        .micro_steps = PRB_TRACE_LOW(values[PRB_TRACE_STEP_COUNTS].integer)};
    put(names, &names->steps,
        step_key(PRB_TRACE_HIGH(values[PRB_TRACE_STEP_THREAD].integer),
                 values[PRB_TRACE_STEP_STEP].integer),
        ended);
    return !names->failed;
}

/* Who wrote the rows, as the store knows it, where they do not say so themselves. */
static void take_stored(struct prb_rows *rows, struct prb_torch_names *out)
{
    const struct prb_history *history = prb_recorded_history(rows);
    const struct prb_store_process *process =
        history ? prb_history_process(history, history->process) : NULL;
    if (process && out->pid < 0)
        out->pid = process->pid;
    if (process && out->rank < 0) {
        out->rank = process->rank;
        out->world_size = process->world_size;
    }
}

bool prb_torch_names_read(struct prb_rows *rows, bool steps, struct prb_torch_names *out,
                          struct prb_error *err)
{
    struct prb_target *target = prb_rows_target(rows);
    out->pid = out->rank = out->world_size = -1;
    bool good = prb_recorded_each(rows, PRB_TRACE_NAMES_RING, PRB_TRACE_NAMES_COLUMNS, take_name,
                                  out, err) &&
                (!steps || prb_recorded_each(rows, PRB_TRACE_STEPS_RING, PRB_TRACE_STEPS_COLUMNS,
                                             take_step, out, err));
    if (out->failed)
        return prb_nomem(err);
    if (target && prb_proc_exists(target->proc))
        out->pid = prb_proc_pid(target->proc); /* as it is here */
    take_stored(rows, out);
    return good;
}

const char *prb_torch_label_of(const struct prb_torch_names *names, int64_t label)
{
    const struct prb_torch_name *found = prb_hash_map_pointer(&names->labels, (uint64_t)label);
    return found ? found->name : NULL;
}

const struct prb_torch_name *prb_torch_object_of(const struct prb_torch_names *names,
                                                 int64_t arming, int64_t address)
{
    return address ? prb_hash_map_pointer(&names->objects, object_key(arming, address)) : NULL;
}

const struct prb_torch_ended *prb_torch_step_at(const struct prb_torch_names *names, int64_t arming,
                                                int64_t step)
{
    return prb_hash_map_pointer(&names->steps, step_key(arming, step));
}

const char *prb_torch_class_of(const char *label, char *out, size_t cap)
{
    const char *name = label ? strchr(label, '#') : NULL;
    const char *end = name ? strrchr(name, '.') : NULL;
    if (!end || (size_t)(end - name) > cap)
        return NULL;
    snprintf(out, cap, "%.*s", (int)(end - name - 1), name + 1);
    return out;
}

void prb_row_torch_process(struct prb_rows *rows, const struct prb_torch_names *names)
{
    prb_row_int_unless(rows, names->pid, -1);
    prb_row_int_unless(rows, names->rank, -1);
    prb_row_int_unless(rows, names->world_size, -1);
    prb_row_text(rows, names->role);
}

void prb_row_torch_steps(struct prb_rows *rows, const struct prb_torch_names *names, int64_t arming,
                         int64_t step)
{
    const struct prb_torch_name *offset = prb_hash_map_pointer(&names->offsets, (uint64_t)arming);
    prb_row_int(rows, step);
    if (offset)
        prb_row_int(rows, step + offset->number);
    else
        prb_row_null(rows);
}

int64_t prb_torch_global_step(const struct prb_torch_names *names, int64_t arming, int64_t step,
                              int64_t otherwise)
{
    const struct prb_torch_name *offset = prb_hash_map_pointer(&names->offsets, (uint64_t)arming);
    return offset ? step + offset->number : otherwise;
}

void prb_row_torch_optimizer(struct prb_rows *rows, const struct prb_torch_names *names,
                             int64_t arming, int64_t address, const char *class_name)
{
    char text[160];
    const struct prb_torch_name *found = prb_torch_object_of(names, arming, address);
    if (!class_name) {
        prb_row_null(rows);
        return;
    }
    snprintf(text, sizeof text, "%s#%lld", class_name, found ? (long long)found->number : 0LL);
    prb_row_text(rows, text);
}
