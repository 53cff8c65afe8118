/*
 * The control group of a process: what it may use, how much it does, and how long it was held back.
 * cgroups(7); Linux Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst.
 *
 * A limit counts for all groups below the one that has it, so the groups from the process's own up
 * to the root are asked, and the tightest limit is the one that is told.  Where version 1 has a
 * controller, version 2 has it not (a machine may have both).
 */
#ifndef PRB_HOST_CGROUP_H
#define PRB_HOST_CGROUP_H

#include "proc/proc.h"

#define PRB_CGROUP_PATH_MAX 512

/* Numbers: -1 is "not known", or of a limit "there is none". */
struct prb_cgroup {
    char path[PRB_CGROUP_PATH_MAX];       /* of its own group with the controller of memory */
    int version;                          /* of that: 1 or 2 */
    int64_t memory_used;                  /* bytes, of the group that limits; else of its own */
    int64_t memory_limit;                 /* bytes */
    char limited_by[PRB_CGROUP_PATH_MAX]; /* the group with that limit; "" */
    int64_t oom_kills;                    /* processes of its own group that the kernel ended */
    double cpus;                          /* the CPU time that it may use in a second */
    double throttled;                     /* s that it wanted to run and might not */
    int64_t throttled_periods;
    double pressure_cpu, pressure_memory, pressure_io; /* % of the last 10 s, "some" (version 2) */
};

#define PRB_CGROUP_FILES 64
/* Where groups are mounted, for who asks again and again: mountinfo, which is long on a machine with
 * many containers, is read again only when poll(2) says that it changed (proc_pid_mountinfo(5)).
 * All zero at first. */
struct prb_cgroup_mounts {
    bool open;
    int fd;
    char *text; /* of mountinfo, lines of control groups alone */
    struct {
        char *path;
        int fd;
    } files[PRB_CGROUP_FILES]; /* that were read, to read them again */
    size_t file_count;
};
void prb_cgroup_mounts_deinit(struct prb_cgroup_mounts *mounts);
PRB_DEFINE_AUTO(prb_cgroup_mounts, struct prb_cgroup_mounts, prb_cgroup_mounts_deinit)

/*
 * Where the group of a controller lies, from the texts of /proc/PID/cgroup and our mountinfo: the
 * folder to out, and how long its part above the group's own path is (never go higher). Version 0:
 * nowhere.
 */
struct prb_cgroup_place {
    int version;
    char folder[2 * PRB_CGROUP_PATH_MAX];
    size_t mount_len;
    struct prb_cgroup_mounts *mounts; /* that keep its files; NULL */
    char path[PRB_CGROUP_PATH_MAX];   /* as /proc/PID/cgroup has it */
};
bool prb_cgroup_find(const char *cgroup, const char *mountinfo, const char *controller,
                     struct prb_cgroup_place *out);

/* For who asks again and again about one process: its groups and their limits, which seldom change,
 * are looked at anew after PRB_CGROUP_ANEW seconds, or when its group is gone.  All zero at first. */
#define PRB_CGROUP_ANEW 10.0
struct prb_cgroup_kept {
    double anew; /* s, monotonic */
    struct prb_cgroup_place memory, cpu;
    struct prb_cgroup_place limiting; /* of memory: the group whose limit it is, else its own */
    struct prb_cgroup limits;         /* the rest of it is not known */
};
/* UNSUPPORTED: the process is in none that can be seen here.  mounts: kept for the next call, as is
 * kept, or NULL. */
bool prb_cgroup_read(struct prb_proc *proc, struct prb_cgroup_mounts *mounts,
                     struct prb_cgroup_kept *kept, struct prb_cgroup *out, struct prb_error *err);

#endif
