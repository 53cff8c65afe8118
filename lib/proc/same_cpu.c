#include "proc/same_cpu.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A turn of 0.1 ms lets us begin at once where the scheduler knows turns (Linux 6.12, sched(7));
 * older ones ignore it, and we wait for the end of the task's turn, some milliseconds. */
#define TURN_NS 100000

#define WORD_BITS (8 * sizeof(unsigned long))

static bool allowed(const struct prb_same_cpu *same, int cpu)
{
    return cpu >= 0 && (size_t)cpu < 8 * same->size &&
           same->cpus[(size_t)cpu / WORD_BITS] >> ((size_t)cpu % WORD_BITS) & 1;
}

static bool use(const unsigned long *cpus, size_t size)
{
    return syscall(SYS_sched_setaffinity, 0, size, cpus) == 0;
}

static bool use_one(const struct prb_same_cpu *same, int cpu)
{
    unsigned long one[sizeof same->cpus / sizeof *same->cpus] = {0};
    if (!allowed(same, cpu))
        return false;
    one[(size_t)cpu / WORD_BITS] = 1ul << (size_t)cpu % WORD_BITS;
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
    long size = syscall(SYS_sched_getaffinity, 0, sizeof out->cpus, out->cpus);
    if (size <= 0 || !prb_proc_task_read(proc, &task) || task.real_time)
        return false;
    out->size = (size_t)size;
    out->moved = true;
    take_short_turns(out);
    if (use_one(out, task.cpu))
        return true;
    prb_same_cpu_end(out);
    return false;
}

void prb_same_cpu_end(struct prb_same_cpu *same)
{
    if (!same->moved)
        return;
    /* Else we would remain, and take more of its time than the reading needs. */
    use_one(same, same->from);
    use(same->cpus, same->size);
    if (same->schedule.size)
        syscall(SYS_sched_setattr, 0, &same->schedule, 0);
    same->moved = false;
}
