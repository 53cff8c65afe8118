/* What the parts of the collector share. */
#ifndef PRB_COLLECT_PARTS_H
#define PRB_COLLECT_PARTS_H

#include <dirent.h>
#include <sys/types.h>

#include "host/cgroup.h"
#include "proc/proc.h"
#include "ring/folder.h"
#include "store/drain.h"
#include "store/host.h"
#include "store/thin.h"

/* ---- job.c: which file a process's rows go to ---- */

struct prb_collect_job {
    char *path; /* of the file; freed by the owner */
    char name[64];
    struct prb_store_process process; /* command is owned, too */
};
void prb_collect_job_deinit(struct prb_collect_job *job);
PRB_DEFINE_AUTO(prb_collect_job, struct prb_collect_job, prb_collect_job_deinit)
/*
 * Of a process, by what /proc says while it lives, else by what its folder of rings says.  A job is
 * the launcher of ranks, or the process that forked others of the same program.
 */
bool prb_collect_job_of(const char *store, pid_t pid, uint64_t started, int folder,
                        struct prb_collect_job *out, struct prb_error *err);

/* ---- rings.c: one process ---- */

struct prb_collect_ring {
    char name[PRB_RING_NAME_MAX + sizeof ".ring"]; /* of the file */
    uint64_t inode;
    struct prb_ring_reader *reader; /* NULL: not a ring */
    struct prb_ring_mark mark;      /* as the file has it */
    struct prb_store_codec *codecs; /* how its columns were packed */
    double row_bytes;               /* of the rows so far, on average */
    uint64_t waiting;               /* bytes, when last looked */
    double since;                   /* s, monotonic: something has waited since; 0: nothing does */
    double next, pause; /* s, monotonic: when it is looked at again; between two looks */
};

enum prb_collect_what { PRB_COLLECT_CPU, PRB_COLLECT_GPU, PRB_COLLECT_WHATS };

struct prb_collected { /* one process that has a folder of rings */
    pid_t pid;
    uint64_t started;
    int folder;
    int pidfd;        /* that says when it ends; -1: none */
    bool ended, done; /* done: everything of it is in its file */
    bool seen;        /* its folder is still there */
    bool elsewhere;   /* in a container: no path of ours leads there */
    struct prb_store_file *file;
    char *path; /* of file */
    int64_t id; /* in file */
    struct prb_collect_ring *rings;
    size_t ring_count, ring_cap;
    struct timespec listed; /* when the folder was changed, as it was listed; 0: it was not */
    struct prb_store_process process;
    struct timespec settings_time; /* of the file that says what the process wishes */
    ino_t settings_inode;
    int64_t settings[PRB_RING_SETTINGS_COUNT]; /* -1: nobody gave it */
    bool settings_told;                        /* its file has them */
    double seconds[PRB_COLLECT_WHATS]; /* between two samples: as the process wishes, else by
                                          PROBING_CPU_SAMPLE_MS, _GPU_SAMPLE_MS; 0: there are none */
    uint64_t moved;                    /* rows, that the next prb_collection_move tells */
    struct prb_collect_host *host;     /* NULL: nothing is sampled */
    bool wants_gil;                    /* as it wishes, else by PROBING_GIL */
    struct prb_collect_gil *gil;       /* NULL: nobody looks at who holds it */
    bool wants_stacks;                 /* as it wishes, else by PROBING_PPROF */
    struct prb_collect_stacks *stacks; /* NULL: they are not sampled */
    bool host_failed;                  /* nor will be: it is not ours to see */
};

void prb_collected_deinit(struct prb_collected *process);
/* Move what is due; all: whatever waits.  Rows of the collector's own are not counted.  False: the
 * file cannot be written, and rows wait. */
bool prb_collect_rings(struct prb_collected *process, bool all, uint64_t *rows_out,
                       struct prb_error *err);

/* ---- settings.c: what a process wishes ---- */

/* Nothing yet. */
void prb_collect_settings_begin(struct prb_collected *process);
/* Read what changed since the last time.  True: how long rows are kept did, and its file says so. */
bool prb_collect_settings(struct prb_collected *process);

/* ---- rules.c: which tables are thinned out ---- */

extern const struct prb_store_rule prb_collect_rules[];
extern const size_t prb_collect_rule_count;

/* ---- processes.c: all of them ---- */

#define PRB_COLLECTED_MAX 10000
#define PRB_COLLECT_LOOKS 2 /* at a process that is new (containers.c) */
struct prb_collection {
    const char *store; /* folder */
    struct prb_collected *items;
    size_t count, cap;
    size_t live; /* of them, run */
    struct file {
        char *path;
        struct prb_store_file *file;
        size_t users;
    } *files;
    size_t file_count, file_cap;
    struct prb_cgroup_mounts mounts;
    double next_gpus; /* s, monotonic: when these are asked again */
    double searched;  /* s, monotonic: when all processes were looked at */
    double searched_all;
    DIR *proc;
    long
        searched_to[PRB_COLLECT_LOOKS]; /* where in it the last searches ended, the last one last */
    long newest;                        /* pid, as they were looked at */
    unsigned looked;                    /* so often since it was given */
    struct prb_listed {
        ino_t inode;
        struct timespec changed; /* 0: it may change without a change of this */
    } places[PRB_RING_PLACES];   /* folders of data, as they were listed */
    bool wishes_change;          /* how long something is kept was changed */
};
void prb_collection_deinit(struct prb_collection *collection);
PRB_DEFINE_AUTO(prb_collection, struct prb_collection, prb_collection_deinit)
/* Look for folders of rings in this user's data folders. */
bool prb_collection_look(struct prb_collection *collection, struct prb_error *err);
/* Add one that is not known yet; folder is taken over.  NULL: there are too many, or err. */
struct prb_collected *prb_collection_add(struct prb_collection *collection, pid_t pid,
                                         uint64_t started, int folder, struct prb_error *err);
/* The same in containers of this user's, now and then (containers.c). */
bool prb_collection_search(struct prb_collection *collection, struct prb_error *err);
/* prb_collect_rings of all.  False: err, of the last one that failed. */
bool prb_collection_move(struct prb_collection *collection, bool all, uint64_t *rows_out,
                         struct prb_error *err);

/* ---- gil.c: who holds the GIL ---- */

/* One look at each process that wants_gil.  False: there is none. */
bool prb_collect_gil_look(const struct prb_collection *collection);
/* Before the threads of one are sampled: what the looks since the last sample said, or begin to
 * look.  time: s, monotonic. */
void prb_collect_gil(struct prb_collected *process, double time);
/* Of a thread, in %; -1: not looked at. */
double prb_collect_gil_share(const struct prb_collected *process, pid_t tid);
void prb_collect_gil_free(struct prb_collect_gil *gil);

/* ---- stacks.c: where they are ---- */

/* One look at each process that wants_stacks.  False: there is none. */
bool prb_collect_stacks_look(const struct prb_collection *collection);
/* Begin to look where it is wished; write rows of what was counted when it is time.  last: the
 * process, or the collector, ends.  time: s, monotonic; now: s since the epoch. */
void prb_collect_stacks(struct prb_collected *process, double time, double now, bool last);
void prb_collect_stacks_free(struct prb_collect_stacks *stacks);

/* ---- host.c: what the machine says of them ---- */

struct prb_collected_stack {
    pid_t tid;                          /* 0: not known */
    const char *thread, *state, *stack; /* thread: NULL: it has no name */
    int64_t samples;
};
/* A row of it, when the process has a folder to write to. */
void prb_collect_put_stack(const struct prb_collected *process, double now,
                           const struct prb_collected_stack *stack);

/* Whether GPUs were sampled for it. */
bool prb_collect_has_gpus(const struct prb_collected *process);
/* A row for each thread, memory, control group, interface and GPU of those that run and are due. */
void prb_collect_hosts(struct prb_collection *collection);
void prb_collect_host_free(struct prb_collect_host *host);

#endif
