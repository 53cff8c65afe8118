/* python.torch_phases(seconds): what the time of a training job goes into, by samples. */
#include "base/hash_map.h"
#include "base/real.h"
#include "inspect/heap.h"
#include "table/shared/duration.h"
#include "table/shared/moment_columns.h"
#include "table/shared/thread_columns.h"
#include "training/phases.h"

#define SECONDS 1.0
#define RATE 100.0

static const struct prb_column columns[] = {
    {"timestamp", PRB_REAL, "s", "when the samples began, since the epoch"},
    {"pid", PRB_INTEGER, "id", "of the process"},
    {"rank", PRB_INTEGER, "id", "of the process in its job; NULL: it has none", .of_rank = true},
    {"phase", PRB_TEXT, "",
     "part of the step, on the CPU: data, forward, backward, optimizer, zero_grad, communication, "
     "checkpoint; other: none of them"},
    {"activity", PRB_TEXT, "",
     "what it is at meanwhile: communication, recompute (a forward inside a backward), wait; or "
     "NULL"},
    {"module", PRB_TEXT, "",
     "the innermost torch module under way, as in torch.modules (a root: \"\"); NULL: none, or its "
     "name is not known"},
    {"type", PRB_TEXT, "", "class of that module"},
    {"share", PRB_REAL, "ratio", "of the thread's time, waiting included; all rows make 1"},
    {"error", PRB_REAL, "ratio", "one standard deviation of the share"},
    {"samples", PRB_INTEGER, "count", "on which it rests"},
    {"thread", PRB_INTEGER, "id", "the thread that trains: the one most often in a phase"},
    {"clock", PRB_TEXT, "",
     "the number of the program that counts its steps; NULL: none changed twice meanwhile"},
    {"steps", PRB_INTEGER, "count", "how far the clock went"},
    {"steps_per_second", PRB_REAL, "1/s", "of the clock, between its first and last change"},
    {"step", PRB_INTEGER, "", "what the clock said last"},
    {"items_per_second", PRB_REAL, "1/s",
     "what its DataLoader gave the program: batches times their size; NULL: not known"},
    {"seconds", PRB_REAL, "s", "argument: how long to sample; 1 when not given", .hidden = true},
    {"rate", PRB_REAL, "1/s", "argument: samples a second; 100 when not given", .hidden = true},
    {0},
};

PRB_DEFINE_AUTO_PTR(prb_heap, struct prb_heap, prb_heap_free)

static bool wants_clock(const struct prb_rows *rows)
{
    return prb_rows_wants(rows, "clock") || prb_rows_wants(rows, "steps") ||
           prb_rows_wants(rows, "steps_per_second") || prb_rows_wants(rows, "step") ||
           prb_rows_wants(rows, "items_per_second");
}

static void free_clock(void *kept) { prb_step_clock_free(kept); }

/* The clock that the target keeps: to find what may count takes longer than to read it. */
static struct prb_step_clock *kept_clock(const struct prb_rows *rows)
{
    struct prb_target *target = prb_rows_target(rows);
    if (!wants_clock(rows) || !target->kept || prb_step_clock_is_stale(target->kept))
        return NULL;
    prb_step_clock_restart(target->kept);
    return target->kept;
}

/* The names of modules, and who may count the steps.  The lists of a busy collector may not be
 * whole: what is missing has no name. */
static struct prb_heap *heap_of(struct prb_rows *rows)
{
    struct prb_error why = {0};
    struct prb_heap *heap =
        prb_rows_stacks(rows, &why) ? prb_heap_take(prb_rows_target(rows), &why) : NULL;
    if (!heap)
        prb_rows_warn(rows, "modules have no names, and nothing counts the steps: %s", why.text);
    return heap;
}

/* Index of a module among the heap's, by address: 1 + it. */
static bool index_modules(const struct prb_heap *heap, struct prb_hash_map *out,
                          struct prb_error *err)
{
    for (size_t i = 0; i < heap->module_count; i++) {
        struct prb_hash_slot *slot = prb_hash_map_add(out, heap->modules[i].object);
        if (!slot)
            return prb_nomem(err);
        slot->number = slot->number ? slot->number : i + 1;
    }
    return true;
}

static void add_row(struct prb_rows *rows, const struct prb_phases *phases,
                    const struct prb_phase_part *part, const char *module,
                    const struct prb_step_count *steps)
{
    const struct prb_target *target = prb_rows_target(rows);
    int rank = prb_process_rank((pid_t)target->info.pid);
    double n = (double)phases->samples, share = (double)part->samples / n;
    prb_row_begin(rows);
    prb_row_real(rows, phases->begin);
    prb_row_int(rows, target->info.pid);
    prb_row_int_unless(rows, rank, -1);
    prb_row_text(rows, prb_phase_name(part->phase));
    prb_row_text(rows, prb_phase_activity_name(part->activity));
    prb_row_text(rows, module);
    prb_row_text(rows, part->type);
    prb_row_real(rows, share);
    prb_row_real(rows, prb_sqrt(share * (1 - share) / n));
    prb_row_int(rows, (int64_t)part->samples);
    prb_row_int_unless(rows, (int64_t)phases->native_id, 0);
    prb_row_text(rows, steps->name);
    if (steps->name)
        prb_row_int(rows, steps->steps);
    else
        prb_row_null(rows);
    prb_row_known(rows, steps->per_second > 0 ? steps->per_second : -1);
    if (steps->name)
        prb_row_int(rows, steps->last);
    else
        prb_row_null(rows);
    prb_row_known(rows, steps->items_per_second > 0 ? steps->items_per_second : -1);
}

/* A clock that the target keeps from here on. */
static struct prb_step_clock *new_clock(struct prb_rows *rows, const struct prb_heap *heap,
                                        struct prb_error *err)
{
    struct prb_target *target = prb_rows_target(rows);
    if (target->kept)
        target->kept_free(target->kept);
    target->kept_free = free_clock;
    return target->kept = prb_step_clock_new(heap, err);
}

static bool fill(struct prb_rows *rows, struct prb_error *err)
{
    double seconds = SECONDS, rate = RATE;
    if (!prb_rows_seconds(rows, &seconds, err) || !prb_rows_number(rows, "rate", 1e4, &rate, err))
        return false;
    struct prb_step_clock *clock = kept_clock(rows);
    bool look = (wants_clock(rows) && !clock) || prb_rows_wants(rows, "module");
    PRB_AUTO(prb_heap) struct prb_heap *heap = look ? heap_of(rows) : NULL;
    if (heap && wants_clock(rows) && !clock && !(clock = new_clock(rows, heap, err)))
        return false;
    PRB_AUTO(prb_phases) struct prb_phases phases = {0};
    if (!prb_phases_take(prb_rows_target(rows), seconds, rate, clock, prb_rows_in_time, rows,
                         &phases, err))
        return false;
    PRB_AUTO(prb_hash_map) struct prb_hash_map modules = {0};
    bool names = heap && prb_rows_wants(rows, "module");
    if (names && (!prb_heap_modules(heap, err) || !index_modules(heap, &modules, err)))
        return false;
    struct prb_step_count steps = {0};
    if (clock)
        steps = prb_step_clock_result(clock);
    if (phases.dropped)
        prb_rows_warn(rows, "%llu of %llu stacks were dropped: no two readings were equal",
                      (unsigned long long)phases.dropped,
                      (unsigned long long)(phases.dropped + phases.samples));
    for (size_t i = 0; i < phases.part_count; i++) {
        uint64_t known = prb_hash_map_number(&modules, phases.parts[i].module);
        add_row(rows, &phases, &phases.parts[i], known ? heap->modules[known - 1].name : NULL,
                &steps);
    }
    return true;
}

const struct prb_table prb_table_python_torch_phases = {
    .schema = "python",
    .name = "torch_phases",
    .doc = "where the time of a training step goes, which torch_phases(seconds) samples as the "
           "query runs; nothing is loaded",
    .columns = columns,
    .needs_target = true,
    .fill = fill,
};
