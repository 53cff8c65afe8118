/*
 * Threads as the kernel and as the user know them: OS thread ids, names, and who waits for the GIL.
 */
#include <string.h>
#include <time.h>

#include "arch/arch.h"
#include "base/hash_map.h"
#include "inspect/target.h"
#include "py/gc.h"
#include "py/object/reader.h"

/* ---- names: threading._active, {ident: Thread} ---- */

struct naming {
    const struct prb_runtime *runtime;
    const struct prb_raw_stacks *raw;
    size_t interpreter;
    struct prb_arena *arena;
    struct prb_thread_facts *facts;
    struct known {
        int64_t ident;
        prb_addr thread, name;
    } *known;
    size_t count, cap;
};

static void naming_deinit(struct naming *naming) { free(naming->known); }
PRB_DEFINE_AUTO(naming, struct naming, naming_deinit)

#define NAME_CHARACTERS 200

static bool collect(void *context, prb_addr key, prb_addr thread)
{
    struct naming *naming = context;
    int64_t ident;
    if (!prb_object_int(naming->runtime->objects, key, &ident, NULL))
        return true;
    if (!PRB_GROW(naming->known, naming->count, naming->cap))
        return false;
    naming->known[naming->count++] = (struct known){.ident = ident, .thread = thread};
    return true;
}

/* Of all threads together, so that each step takes one call or two. */
static void find_names(struct naming *naming)
{
    struct prb_objects *objects = naming->runtime->objects;
    for (size_t i = 0; i < naming->count; i++)
        prb_attributes_announce(objects, naming->known[i].thread);
    for (size_t i = 0; i < naming->count; i++) {
        struct known *known = &naming->known[i];
        if (prb_attribute_get(objects, known->thread, "_name", &known->name, NULL))
            prb_objects_prefetch(objects, &known->name, 1);
    }
}

static void take_names(struct naming *naming)
{
    struct prb_objects *objects = naming->runtime->objects;
    const struct prb_raw_stacks *raw = naming->raw;
    PRB_AUTO(prb_hash_map) struct prb_hash_map places = {0}; /* by ident: index + 1 */
    for (size_t i = 0; i < raw->thread_count; i++) {
        const struct prb_raw_thread *thread = &raw->threads[i];
        struct prb_hash_slot *slot = thread->interpreter == naming->interpreter && thread->thread_id
                                         ? prb_hash_map_add(&places, thread->thread_id)
                                         : NULL;
        if (slot)
            slot->number = i + 1;
    }
    for (size_t k = 0; k < naming->count; k++) {
        const struct known *known = &naming->known[k];
        size_t place = (size_t)prb_hash_map_number(&places, (uint64_t)known->ident);
        PRB_AUTO(prb_buf) struct prb_buf text = {0};
        if (place && known->name &&
            prb_object_str(objects, known->name, NAME_CHARACTERS, &text, NULL))
            naming->facts[place - 1].name =
                prb_arena_strdup(naming->arena, text.data ? text.data : "");
    }
}

static bool all_named(const struct naming *naming)
{
    for (size_t i = 0; i < naming->raw->thread_count; i++)
        if (naming->raw->threads[i].interpreter == naming->interpreter && !naming->facts[i].name)
            return false;
    return true;
}

/* The dict may change while it is read, as threads begin and end: read again while a name is
 * missing. Threads that threading does not know have none. */
#define NAMING_TRIES 4

static void name_threads(const struct prb_runtime *runtime, const struct prb_raw_stacks *raw,
                         struct prb_arena *arena, struct prb_thread_facts *facts)
{
    for (size_t i = 0; i < raw->interpreter_count; i++) {
        PRB_AUTO(naming)
        struct naming naming = {runtime, raw, i, arena, facts};
        for (int tries = 0; tries < NAMING_TRIES; tries++) {
            prb_addr active = 0;
            if (prb_module_get(runtime->objects, raw->interpreters[i].addr, "threading", "_active",
                               &active, NULL) &&
                active) {
                naming.count = 0;
                prb_dict_each(runtime->objects, active, collect, &naming, NULL);
                find_names(&naming);
                take_names(&naming);
            }
            if (all_named(&naming))
                break;
            prb_objects_clear(runtime->objects);
        }
    }
}

/* ---- OS thread ids ---- */

bool prb_thread_unborn(const struct prb_raw_stacks *raw, size_t k)
{
    const struct prb_raw_thread *thread = &raw->threads[k];
    if (thread->frame_count || thread->broken.why)
        return false;
    for (size_t i = k + 1; i < raw->thread_count; i++) /* older ones come later */
        if (raw->threads[i].interpreter == thread->interpreter &&
            raw->threads[i].thread_id == thread->thread_id)
            return true;
    return !thread->thread_id;
}

void prb_threads_identify(struct prb_target *target, const struct prb_runtime *runtime,
                          const struct prb_raw_stacks *raw, const struct prb_tasks *tasks,
                          struct prb_arena *arena, struct prb_thread_facts *facts)
{
    for (size_t i = 0; i < raw->thread_count; i++) {
        const struct prb_raw_thread *thread = &raw->threads[i];
        if (thread->native_id)
            facts[i].task = prb_tasks_by_inner(tasks, thread->native_id);
        else if (thread->thread_id)
            facts[i].task = prb_tasks_by_pthread(tasks, target->mem, thread->thread_id);
    }
    name_threads(runtime, raw, arena, facts);
}

/* ---- collecting garbage ---- */

static bool has_frame(const struct prb_raw_thread *thread, prb_addr frame)
{
    for (size_t i = 0; i < thread->frame_count; i++)
        if (thread->frames[i].frame == frame)
            return true;
    return false;
}

/* The kernel says it for a blocked thread, the source for a stopped one. */
static bool stack_pointer(struct prb_proc *proc, pid_t tid, prb_addr *out)
{
    struct prb_syscall call;
    struct prb_registers registers;
    unsigned sp = prb_arch_host()->sp;
    if (prb_proc_syscall(proc, tid, &call, NULL)) {
        *out = call.sp;
        return !call.running;
    }
    if (!prb_proc_registers(proc, tid, &registers, NULL) || !prb_register_known(&registers, sp))
        return false;
    *out = registers.value[sp];
    return true;
}

static bool collects_without_gil(struct prb_target *target, const struct prb_runtime *runtime,
                                 const struct prb_raw_thread *thread, const struct prb_task *task)
{
    prb_addr sp;
    return task && stack_pointer(target->proc, task->tid, &sp) &&
           prb_gc_on_stack(runtime->py, sp, thread->thread_id);
}

/* The index of the thread that collects for an interpreter, or thread_count. */
static size_t find_collector(struct prb_target *target, const struct prb_runtime *runtime,
                             const struct prb_raw_stacks *raw, size_t interpreter,
                             const struct prb_thread_facts *facts)
{
    const struct prb_interpreter *its = &raw->interpreters[interpreter];
    size_t holder = raw->thread_count;
    uint64_t frame = 0; /* of the thread that collects, from 3.15 on */
    if (PRB_HAS(&runtime->py->layout, interp, gc_frame))
        prb_py_field(runtime->py, its->addr, PRB_F_interp_gc_frame, &frame, NULL);
    for (size_t i = 0; i < raw->thread_count; i++) {
        const struct prb_raw_thread *thread = &raw->threads[i];
        if (thread->interpreter != interpreter)
            continue;
        if (its->gil_holder == thread->tstate)
            holder = i;
        if (frame ? has_frame(thread, frame)
                  : its->gil_holder != thread->tstate &&
                        collects_without_gil(target, runtime, thread, facts[i].task))
            return i;
    }
    return holder;
}

void prb_threads_find_collectors(struct prb_target *target, const struct prb_runtime *runtime,
                                 const struct prb_raw_stacks *raw, struct prb_thread_facts *facts)
{
    for (size_t k = 0; k < raw->interpreter_count; k++) {
        size_t i = raw->interpreters[k].gc ? find_collector(target, runtime, raw, k, facts)
                                           : raw->thread_count;
        if (i < raw->thread_count)
            facts[i].collects = true;
    }
}

/* ---- waiting for the GIL ---- */

/* take_gil() sleeps on the GIL's mutex or its cond (Python/ceval_gil.c); switch_cond is where
 * drop_gil() waits for another thread to take it: that is not waiting for the GIL. */
bool prb_futex_of_gil(const struct prb_runtime *runtime, const struct prb_interpreter *interpreter,
                      prb_addr futex)
{
    const struct prb_layout *layout = &runtime->py->layout;
    enum { COND_SIZE = 48 }; /* sizeof(pthread_cond_t) */
    prb_addr gil = interpreter->gil;
    if (!gil)
        return false;
    if (PRB_IS(layout, gil, STATIC))
        return futex >= runtime->py->gil_static && futex < runtime->py->gil_static_end;
    if (!PRB_HAS(layout, gil, cond) || !PRB_HAS(layout, gil, size))
        return false;
    if (futex < gil || futex >= gil + (prb_addr)PRB_OFF(layout, gil, size))
        return false;
    prb_addr other =
        PRB_HAS(layout, gil, switch_cond) ? gil + (prb_addr)PRB_OFF(layout, gil, switch_cond) : 0;
    return !other || futex < other || futex >= other + COND_SIZE;
}

bool prb_thread_waits_for_gil(struct prb_target *target, const struct prb_runtime *runtime,
                              const struct prb_interpreter *interpreter,
                              const struct prb_task *task, int64_t *patience_ns)
{
#if defined(__x86_64__)
    enum { FUTEX = 202 };
#else
    enum { FUTEX = 98 };
#endif
    enum { NAP_NS = 50000 };
    struct prb_syscall call;
    /* Where nobody holds it there is nothing to ask the kernel. */
    if (!interpreter->gil_holder || !task)
        return false;
    for (;;) {
        if (!prb_proc_syscall(target->proc, task->tid, &call, NULL))
            return false;
        if (!call.running)
            return call.number == FUTEX && prb_futex_of_gil(runtime, interpreter, call.args[0]);
        /* take_gil() wakes every 5 ms to ask for the GIL, and on a busy machine is runnable
         * for a while: read it again. */
        if (*patience_ns <= 0 || !prb_proc_live(target->proc))
            return false;
        *patience_ns -= NAP_NS;
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    }
}

/* ---- for a snapshot ---- */

void prb_target_save_registers(struct prb_target *target, pid_t tid,
                               const struct prb_registers *registers)
{
    if (!target->recording)
        return;
    size_t i = 0;
    while (i < target->saved_count && target->saved[i].tid != tid)
        i++;
    if (i == target->saved_count) {
        if (!PRB_GROW(target->saved, target->saved_count, target->saved_cap))
            return;
        target->saved_count++;
    }
    target->saved[i] = (struct prb_saved_task){.tid = tid, .registers = *registers};
}
