#include "proc/same_cpu.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A turn of 0.1 ms lets us begin at once where the scheduler knows turns (Linux 6.12, sched(7));
 * older ones ignore it, and we wait for the end of the task's turn, some milliseconds. */
#define TURN_NS 100000

#define WORD_BITS (8 * sizeof(unsigned long))

static bool allowed(const struct prb_same_cpu *same, int processor)
{
    return processor >= 0 && (size_t)processor < 8 * same->size &&
           same->processors[(size_t)processor / WORD_BITS] >> ((size_t)processor % WORD_BITS) & 1;
}

static bool use(const unsigned long *processors, size_t size)
{
    return syscall(SYS_sched_setaffinity, 0, size, processors) == 0;
}

static bool use_one(const struct prb_same_cpu *same, int processor)
{
    unsigned long one[sizeof same->processors / sizeof *same->processors] = {0};
    if (!allowed(same, processor))
        return false;
    one[(size_t)processor / WORD_BITS] = 1ul << (size_t)processor % WORD_BITS;
    return use(one, same->size);
}

static void take_short_turns(struct prb_same_cpu *same)
{
    if (syscall(SYS_sched_getattr, 0, &same->schedule, sizeof same->schedule, 0) != 0) {
        same->schedule.size = 0;
        return;
    }
    struct prb_schedule turn = same->schedule;
    turn.runtime = TURN_NS;
    if (turn.policy != SCHED_OTHER || syscall(SYS_sched_setattr, 0, &turn, 0) != 0)
        same->schedule.size = 0;
}

bool prb_same_cpu_begin(struct prb_same_cpu *out, struct prb_proc *proc, pid_t tid)
{
    struct prb_task task = {.tid = tid};
    *out = (struct prb_same_cpu){.from = sched_getcpu()};
    long size = syscall(SYS_sched_getaffinity, 0, sizeof out->processors, out->processors);
    if (size <= 0 || !prb_proc_task_look(proc, &task) || task.real_time)
        return false;
    out->size = (size_t)size;
    out->moved = true;
    take_short_turns(out);
    if (use_one(out, task.processor))
        return true;
    prb_same_cpu_end(out);
    return false;
}

void prb_same_cpu_end(struct prb_same_cpu *same)
{
    if (!same->moved)
        return;
    /* Else we would stay, and take more of its time than the reading needs. */
    use_one(same, same->from);
    use(same->processors, same->size);
    if (same->schedule.size)
        syscall(SYS_sched_setattr, 0, &same->schedule, 0);
    same->moved = false;
}
