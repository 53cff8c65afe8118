/*
 * What stands behind struct prb_proc: a live process, or a core file.
 * A source answers with the texts of proc(5); what they mean is read in one place, proc.c and
 * maps.c.
 */
#ifndef PRB_PROC_SOURCE_H
#define PRB_PROC_SOURCE_H

#include "base/index.h"
#include "proc/proc.h"

struct prb_proc_ops {
    const char *name;
    /* Append the text.  UNSUPPORTED: this source does not know it. */
    bool (*text)(struct prb_proc *proc, const char *name, struct prb_buf *out,
                 struct prb_error *err);
    /* Open it, to be read again and again: a descriptor, or -1.  NULL: there are none. */
    int (*open)(struct prb_proc *proc, const char *name);
    /* Append the thread ids, one a line. */
    bool (*tids)(struct prb_proc *proc, struct prb_buf *out, struct prb_error *err);
    /* The maps of files that are executable; NULL, or false: all maps must be read for them. */
    bool (*code_maps)(struct prb_proc *proc, struct prb_maps *out);
    /* prb_proc_map_from; out->end is 0 where there is none.  NULL, or false: as above. */
    bool (*map_from)(struct prb_proc *proc, prb_addr addr, bool code, struct prb_map *out);
    bool (*check)(struct prb_proc *proc, struct prb_error *err);
    bool (*registers)(struct prb_proc *proc, pid_t tid, struct prb_registers *out,
                      struct prb_error *err);
    int (*open_map)(struct prb_proc *proc, const struct prb_map *map, struct prb_error *err);
    /* Open a path of the target's file system; -1 when it cannot be. */
    int (*open_path)(struct prb_proc *proc, const char *path);
    struct prb_mem *(*mem_new)(struct prb_proc *proc, struct prb_error *err);
    void (*free)(struct prb_proc *proc);
};

/* A text that was asked for, saved for a snapshot. */
struct prb_proc_text {
    char *name;
    struct prb_buf text;
};

/* First member of every source. */
struct prb_proc {
    const struct prb_proc_ops *ops;
    pid_t pid;
    double time; /* when it was taken; 0: live */
    int signal;  /* that ended it; 0: none */
    pid_t signalled;
    bool exists; /* such a process is there now */
    bool snapshot;
    bool recording;
    bool stopped; /* what was saved is the answer: prb_proc_set_stopped */
    struct prb_proc_text *texts;
    size_t text_count, text_cap;
    struct prb_index text_index; /* by name */
    struct prb_mem *mem;
    struct prb_maps maps;
    bool maps_read;
    struct prb_map *asked; /* the kernel was asked for one by one: prb_proc_map_at */
    size_t asked_count, asked_cap;
    size_t asks;
    int inner; /* whether it lives in another pid namespace: 0 no, 1 yes, -1 not yet known */
};

/* What every source frees with itself. */
void prb_proc_deinit(struct prb_proc *proc);
/* pid_max of 64-bit Linux: more threads than this cannot be. */
#define PRB_TASKS_MAX 4194304
/* Keep what was appended to out at from, if the process records; false: out of memory. */
bool prb_proc_record_text(struct prb_proc *proc, const char *name, const struct prb_buf *out,
                          size_t from, struct prb_error *err);
/* Append a saved text of a process that does not run (prb_proc_set_stopped); false: it must be
 * read. */
bool prb_proc_answer_saved(const struct prb_proc *proc, const char *name, struct prb_buf *out);
/* Keep a text under its name, in place of the one before. */
bool prb_proc_save_text(struct prb_proc *proc, const char *name, const char *text, size_t len);
const struct prb_proc_text *prb_proc_saved_text(const struct prb_proc *proc, const char *name);

/*
 * The kernel refused: say which of its rules did, and what to do.  sys: the errno; what: "read the
 * memory of". Fills err (PERMISSION; GONE when it is just ending) and returns false.
 */
bool prb_permission_explain(struct prb_error *err, pid_t pid, int sys, const char *what);
/* The maps of code alone (ops->code_maps); false: all maps must be read for them, also for a
 * snapshot that records. */
bool prb_proc_ask_code_maps(struct prb_proc *proc, struct prb_maps *out);
/* By a descriptor of /proc/PID/maps: false where the kernel cannot say (before 6.11). */
bool prb_map_query(int fd, prb_addr addr, bool code, struct prb_map *out);
/* Set the path of a map from the kernel's name of its file, of len bytes; before: the map before it,
 * NULL for none.  False: out of memory. */
bool prb_map_set_path(struct prb_map *map, const char *name, size_t len,
                      const struct prb_map *before, struct prb_arena *arena);
/* The sources. */
extern const struct prb_proc_ops prb_proc_live_ops;

#endif
