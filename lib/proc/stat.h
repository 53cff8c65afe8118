/* The one parser of /proc/PID/stat and /proc/PID/task/TID/stat, proc_pid_stat(5). */
#ifndef PRB_PROC_STAT_H
#define PRB_PROC_STAT_H

#include "proc/proc.h"

/* Fields by their numbers in the manual page. */
enum {
    PRB_STAT_PPID = 4,
    PRB_STAT_FLAGS = 9,
    PRB_STAT_UTIME = 14, /* clock ticks */
    PRB_STAT_STIME = 15,
    PRB_STAT_PRIORITY = 18,
    PRB_STAT_NICE = 19,
    PRB_STAT_THREADS = 20,
    PRB_STAT_STARTTIME = 22, /* clock ticks since the machine's start */
    PRB_STAT_VSIZE = 23,     /* bytes */
    PRB_STAT_RSS = 24,       /* pages */
    PRB_STAT_STARTCODE = 26,
    PRB_STAT_STARTSTACK = 28,
    PRB_STAT_PROCESSOR = 39,
    PRB_STAT_POLICY = 41,
    PRB_STAT_ARG_START = 48,
    PRB_STAT_ENV_START = 50,
    PRB_STAT_EXIT_CODE = 52,
    PRB_STAT_FIELDS = 52
};

struct prb_stat {
    pid_t pid;
    char comm[64];                      /* field 2 without its brackets */
    char state;                         /* field 3; '?' where a core does not know it */
    int count;                          /* the last field in the text; those after it are 0 */
    int64_t field[PRB_STAT_FIELDS + 1]; /* by number, from 4; at most INT64_MAX */
};

/* False: the text cannot be parsed. */
bool prb_stat_parse(const char *text, struct prb_stat *out);
/* Of a folder such as "/proc/123", "/proc/self" or "/proc/123/task/124". */
bool prb_stat_of(const char *folder, struct prb_stat *out);
/* Of a target; name: "stat" or "task/123/stat".  False: there is none, or it cannot be parsed. */
bool prb_stat_read(struct prb_proc *proc, const char *name, struct prb_stat *out);
/* Seconds since the epoch at which a process or thread of this machine started. */
double prb_stat_started(const struct prb_stat *stat);

/* Whether a thread has ended or is about to: it runs no more of the program, and the kernel refuses
 * what it would allow of another (no executable, EPERM from ptrace). */
bool prb_task_ending(pid_t pid, pid_t tid);

/* The number after "Key:" in a text such as /proc/PID/status; false: there is none. */
bool prb_status_number(const struct prb_buf *text, const char *key, int64_t *out);

#endif
