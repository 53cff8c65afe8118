/*
 * What a process is before Python: its maps, tasks and the texts of /proc, be it live, a core or
 * a snapshot.
 *
 * A live process answers from /proc/PID, a snapshot from the texts it carries, a core from its
 * notes.  Everything above asks by the names of proc(5), relative to /proc/PID: "maps",
 * "environ", "task/123/stat".
 */
#ifndef PRB_PROC_PROC_H
#define PRB_PROC_PROC_H

#include "arch/registers.h"
#include "base/buf.h"
#include "base/hash_map.h"
#include "mem/mem.h"

/* One line of /proc/PID/maps, proc(5). */
struct prb_map {
    prb_addr start, end; /* [start, end) */
    uint64_t offset;     /* in the file, bytes */
    uint64_t inode;      /* 0: no file */
    unsigned dev_major, dev_minor;
    bool readable, writable, executable, shared;
    bool deleted; /* the file is gone from its path */
    /* as the target sees it, without " (deleted)"; "[heap]", "[stack]", "[vdso]"; "" for
     * anonymous */
    const char *path;
};

struct prb_maps {
    struct prb_map *items; /* ascending */
    size_t count;
    struct prb_arena arena; /* the paths */
};

void prb_maps_deinit(struct prb_maps *maps);
PRB_DEFINE_AUTO(prb_maps, struct prb_maps, prb_maps_deinit)
/* Text of /proc/PID/maps.  A line that cannot be parsed is CORRUPT, a missing last line feed is
 * not. */
bool prb_maps_parse(const char *text, size_t len, struct prb_maps *out, struct prb_error *err);
bool prb_map_same_file(const struct prb_map *a, const struct prb_map *b);
/* The map that holds addr, or NULL. */
const struct prb_map *prb_maps_find(const struct prb_maps *maps, prb_addr addr);

/* A kernel thread of the target. */
struct prb_task {
    pid_t tid;          /* in the caller's pid namespace */
    pid_t inner_tid;    /* in the target's innermost pid namespace: what gettid() says there */
    char comm[64];      /* "" if not known */
    char state;         /* R, S, D, T, t, Z, …; 0: not known */
    uint64_t cpu_ticks; /* utime + stime, clock ticks */
    int cpu;            /* where it runs, or ran last */
    bool real_time;     /* SCHED_FIFO, SCHED_RR or SCHED_DEADLINE */
};

struct prb_tasks {
    struct prb_task *items; /* the main thread first, then ascending tid */
    size_t count;
    bool inner_ascends; /* inner_tid, too, behind the main thread */
};
void prb_tasks_deinit(struct prb_tasks *tasks);
PRB_DEFINE_AUTO(prb_tasks, struct prb_tasks, prb_tasks_deinit)

/* What a blocked thread's system call is: /proc/PID/task/TID/syscall. */
struct prb_syscall {
    bool running;   /* not blocked: nothing below is known */
    int64_t number; /* -1: blocked, but not in a system call */
    uint64_t args[6];
    prb_addr sp, pc;
};

struct prb_proc;

/* A live process.  Errors: NOT_FOUND (no such process), PERMISSION. */
struct prb_proc *prb_proc_open(pid_t pid, struct prb_error *err);
void prb_proc_free(struct prb_proc *proc);
PRB_DEFINE_AUTO_PTR(prb_proc, struct prb_proc, prb_proc_free)

pid_t prb_proc_pid(const struct prb_proc *proc);
/* Whether it answers from a living process that goes on meanwhile (and so can be stopped). */
bool prb_proc_live(const struct prb_proc *proc);
/* Whether the process exists now, live or stopped by a debugger: the kernel answers for its pid. */
bool prb_proc_exists(const struct prb_proc *proc);
/* Seconds since the epoch at which a core or snapshot was taken; 0: live. */
double prb_proc_time(const struct prb_proc *proc);
/*
 * A process that a debugger has stopped, or a core that it has open: texts and files from inner
 * (owned from now on, also on failure); memory by read, else from inner; registers by registers
 * (may be NULL), else by ptrace(2), which works in the debugger's own thread. registers puts the
 * values of count registers by name into values; false: it has none for that thread.
 */
typedef bool prb_registers_fn(void *context, pid_t tid, const char *const *names, size_t count,
                              uint64_t *values);
struct prb_proc *prb_proc_of_debugger(struct prb_proc *inner, prb_mem_fn *read,
                                      prb_registers_fn *registers, void *context,
                                      struct prb_error *err);
/* GONE when the process ended or executes another program than when it was opened; else true. */
bool prb_proc_check(struct prb_proc *proc, struct prb_error *err);
/* Append a text of /proc/PID; at most 16 MiB.  UNSUPPORTED when a core does not know it. */
bool prb_proc_text(struct prb_proc *proc, const char *name, struct prb_buf *out,
                   struct prb_error *err);
/* The same of a short text, by a descriptor that is kept in *fd for the next time: a tenth of the
 * cost.  -1 at first; the caller closes it.  Where none can be kept, as prb_proc_text.  False:
 * there is no such text any more. */
bool prb_proc_line(struct prb_proc *proc, const char *name, int *fd, struct prb_buf *out);
/* Maps, read once and saved; refresh reads them again.  Borrowed until the next refresh. */
const struct prb_maps *prb_proc_maps(struct prb_proc *proc, bool refresh, struct prb_error *err);
/* The maps of this moment, owned by the caller; does not change what prb_proc_maps gives. */
bool prb_proc_maps_now(struct prb_proc *proc, struct prb_maps *out, struct prb_error *err);
/* The maps of files with code, of this moment, owned by the caller; where the kernel cannot say
 * which these are, all maps. */
bool prb_proc_code_maps(struct prb_proc *proc, struct prb_maps *out, struct prb_error *err);
/* The first, by a descriptor of /proc/PID/maps: false where the kernel cannot say (before 6.11). */
bool prb_code_maps_query(int fd, struct prb_maps *out);
/* The same question of one file: whether there is one whose name, without folders, begins so.
 * others: the files, of all processes that were asked about, whose names are known to be others. */
bool prb_code_maps_search(int fd, const char *begin, struct prb_hash_map *others, bool *found_out);
/* The map that covers addr, else the next one above it, without its path; code: of files with code
 * alone.  Of this moment where the kernel can be asked for one, else of the maps that
 * prb_proc_maps saved.  False: there is none. */
bool prb_proc_map_from(struct prb_proc *proc, prb_addr addr, bool code, struct prb_map *out);
/* The map that covers addr, asked for and saved alone, without its path, where the kernel can be
 * asked, else of the maps that prb_proc_maps saved.  NULL: there is none.  Borrowed until the next
 * call. */
const struct prb_map *prb_proc_map_at(struct prb_proc *proc, prb_addr addr);
/* What was saved of the maps is old: read them again when they are needed. */
void prb_proc_forget_maps(struct prb_proc *proc);
/* Tasks now. inner_tid is read only when the target is in another pid namespace than we. */
bool prb_proc_tasks(struct prb_proc *proc, struct prb_tasks *out, struct prb_error *err);
/* The same with tid and inner_tid alone: a stat text costs some 10 µs a thread. */
bool prb_proc_tids(struct prb_proc *proc, struct prb_tasks *out, struct prb_error *err);
/* Fill the rest of a task by its tid.  False: it ended. */
bool prb_proc_task_read(struct prb_proc *proc, struct prb_task *task);
/* A task by what gettid() says in the target; NULL: none. */
const struct prb_task *prb_tasks_by_inner(const struct prb_tasks *tasks, uint64_t inner);
/* By its pthread_t.  The id stands in struct pthread, at 0x2d0 in glibc on x86-64
 * (nptl/descr.h), elsewhere in other
 * libraries.  Any task id of this process within is it: the words around are pointers and flags. */
const struct prb_task *prb_tasks_by_pthread(const struct prb_tasks *tasks, struct prb_mem *mem,
                                            prb_addr pthread);
bool prb_proc_syscall(struct prb_proc *proc, pid_t tid, struct prb_syscall *out,
                      struct prb_error *err);
/* The text of that file. */
bool prb_syscall_parse(const char *text, struct prb_syscall *out);
/* Registers that a core or snapshot holds; UNSUPPORTED for a live process (native/unwinder.h takes
 * those). */
bool prb_proc_registers(struct prb_proc *proc, pid_t tid, struct prb_registers *out,
                        struct prb_error *err);
/* Open the file behind a map as the target sees it: /proc/PID/map_files, then its root and path
 * if device and inode agree, then /proc/PID/exe; of a core: under its sysroot.  Returns a
 * descriptor (close-on-exec), or -1. */
int prb_proc_open_map(struct prb_proc *proc, const struct prb_map *map, struct prb_error *err);
/* Open a path of the target's own file system: /proc/PID/root, or a core's sysroot.  -1 with
 * errno when it cannot be. */
int prb_proc_open_path(struct prb_proc *proc, const char *path);
/* The memory of this process: its own for a core or snapshot, process_vm_readv for a live one.
 * Borrowed. */
struct prb_mem *prb_proc_mem(struct prb_proc *proc, struct prb_error *err);
/* Whether path is an ELF core or one of our snapshots (by its first bytes). */
bool prb_proc_is_core(const char *path);
/* Open a core or snapshot.  exe, sysroot may be NULL.  Errors: CORRUPT (truncated: says how much
 * is missing), IO. */
struct prb_proc *prb_proc_open_core(const char *path, const char *exe, const char *sysroot,
                                    struct prb_error *err);
bool prb_proc_is_snapshot(const struct prb_proc *proc);
/* The signal that ended the process of a core and the thread it came to; 0: none. */
int prb_proc_signal(const struct prb_proc *proc, pid_t *tid_out);

/* Write the pages of record and the texts of proc that were read, with registers of the given
 * tasks, to path. */
struct prb_saved_task {
    pid_t tid;
    struct prb_registers registers; /* known 0: none */
    /* that ended the process came to it; 0: none.  Such a task goes first */
    int signal;
};
bool prb_proc_save(struct prb_proc *proc, struct prb_mem *record,
                   const struct prb_saved_task *tasks, size_t count, const char *path,
                   uint64_t *bytes_out, struct prb_error *err);
/* From now on save every text that is asked for, for prb_proc_save. */
void prb_proc_record(struct prb_proc *proc);
bool prb_proc_records(const struct prb_proc *proc);
/* The process does not run from now on: each text is read once, then answered from what was saved.
 * After prb_proc_record. */
void prb_proc_set_stopped(struct prb_proc *proc);

#endif
