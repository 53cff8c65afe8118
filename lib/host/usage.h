/*
 * What the threads of a process did between two readings: CPU time, waiting for a CPU, faults,
 * switches, and bytes to and from disks.  From /proc alone: nothing in the process.
 *
 * proc(5): task/TID/stat (clock ticks of 10 ms), schedstat (ns; its first number is the time on a
 * CPU, its second the time it waited for one, its third how often it got one), status (switches), PID/io (bytes; the process's
 * owner alone may read it).
 */
#ifndef PRB_HOST_USAGE_H
#define PRB_HOST_USAGE_H

#include "proc/proc.h"

/* Of a thread; the process has its stat and io. */
enum {
    PRB_USAGE_STAT,
    PRB_USAGE_SCHEDSTAT,
    PRB_USAGE_STATUS,
    PRB_USAGE_IO = PRB_USAGE_SCHEDSTAT,
    PRB_USAGE_TEXTS = 3
};

/* One thread, or the whole process: counters since it began.  -1: not known. */
struct prb_usage_count {
    pid_t tid; /* 0: the process */
    char comm[64];
    char state;
    double at;                 /* s, monotonic: when it was read */
    double user, system;       /* s, by clock ticks */
    double on_cpu, wait;       /* s, by schedstat */
    int64_t slices;            /* how often it got a CPU */
    bool ran;                  /* since the reading before, as far as that is known */
    int64_t minor, major;      /* page faults */
    int64_t voluntary, forced; /* switches */
    int64_t read, written;     /* bytes, of the process alone, as the rest */
    int64_t resident, threads; /* now: bytes; how many */
    int kept[PRB_USAGE_TEXTS]; /* descriptors, to read them again; -1: none */
};

struct prb_usage {
    struct prb_usage_count *items; /* the process first, then its threads as prb_tasks has them */
    size_t count;
    int64_t others; /* ns: what the process took beside its threads; -1: not known */
};
void prb_usage_deinit(struct prb_usage *usage);
PRB_DEFINE_AUTO(prb_usage, struct prb_usage, prb_usage_deinit)

/*
 * switches: read those, too: they are most of the cost (10 of 15 µs a thread).  before: an earlier
 * reading, or NULL; a thread that has not run since has its numbers, with the time of now: half the
 * cost.  Its state is that of then, so one that has waited for a CPU all the time may say S.  With
 * it descriptors are kept, and move from one reading to the next; and where the process has as many
 * threads as then, of which none has ended, these are its threads: its folder is not listed.  Those
 * that had not run then are not read again while the process's CPU clock says that only the rest has.
 */
bool prb_usage_read(struct prb_proc *proc, bool switches, struct prb_usage *before,
                    struct prb_usage *out, struct prb_error *err);
/* Those of one thread, which was read without them. */
void prb_usage_read_switches(struct prb_proc *proc, struct prb_usage_count *thread);
/* The same thread in an earlier reading; NULL: it has begun since. */
const struct prb_usage_count *prb_usage_find(const struct prb_usage *usage, pid_t tid);
/* The same, of threads asked for in the order of a reading: *at (0 at first) says how far it is. */
const struct prb_usage_count *prb_usage_next(const struct prb_usage *usage, size_t *at, pid_t tid);

/* Before the process's numbers of two readings are compared: those that are sums of its threads have in the earlier one
 * the threads of the later one alone.  So one that ended takes nothing away, and one that came counts from its begin. */
void prb_usage_settle(struct prb_usage *before, const struct prb_usage *after);

/* What lies between two readings of one thread. */
struct prb_usage_rate {
    double seconds;
    double user, system, wait; /* %, of one CPU; < 0: not known */
};
struct prb_usage_rate prb_usage_between(const struct prb_usage_count *before,
                                        const struct prb_usage_count *after);

#endif
