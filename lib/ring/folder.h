/* How folders of rings are named and where they may be: what the writer's and the reader's side
 * share. */
#ifndef PRB_RING_FOLDER_H
#define PRB_RING_FOLDER_H

#include <sys/types.h>

#include "ring/ring.h"

#define PRB_RING_DATA_VARIABLE "PROBING_DATA_DIR"
/*
 * DATA_DIR is the first of these that can be made and is ours; the last for those whose user id is
 * another's in the user namespace that a shared file system belongs to. user_namespace:
 * prb_ring_user_namespace.
 */
#define PRB_RING_PLACES 3
void prb_ring_place(size_t which, unsigned uid, uint64_t user_namespace,
                    char out[PRB_RING_PATH_MAX]);
/* Where all of them are, as "probing-…". */
#define PRB_RING_PARENTS 2
extern const char *const prb_ring_parents[PRB_RING_PARENTS];

/* The inode of proc/ns/user, 0 when it is not known. proc: "/proc/PID". */
uint64_t prb_ring_user_namespace(const char *proc);

/* Start time, clock ticks since boot: field 22 of proc/stat (proc_pid_stat(5)). */
bool prb_ring_started(const char *proc, uint64_t *out);
/* "PID-STARTTIME" */
bool prb_ring_folder_name(const char *name, pid_t *pid_out, uint64_t *started_out);

/* Whether the process of a folder ended, and no other one holds it. */
bool prb_ring_folder_ended(int folder, pid_t pid, uint64_t started);

/*
 * What a folder says of its process, for those who come when it has ended: a file beside the rings,
 * which a sweep removes with them.
 */
#define PRB_RING_ABOUT "process.ring-about"
/* Beside it, by the collector: "ID PATH", the process in a file of the store. */
#define PRB_RING_STORE "store.ring-about"
struct prb_ring_about {
    int rank, world_size; /* -1: none */
    char *command;        /* arguments joined by spaces, secrets hidden; freed by the caller */
};
/* False: it says nothing. */
bool prb_ring_about_read(int folder, struct prb_ring_about *out);

/* Beside it, by the process: settings that somebody gave it and that its collector follows, lines
 * "KEY NUMBER". */
#define PRB_RING_SETTINGS "settings.ring-about"
enum prb_ring_setting {
    PRB_RING_CPU_INTERVAL,
    PRB_RING_GPU_INTERVAL,
    PRB_RING_RETENTION,
    PRB_RING_STORE_RAW,
    PRB_RING_STORE_MINUTES,
    PRB_RING_STORE_MEMORY,
    PRB_RING_GIL,
    PRB_RING_PPROF,
    PRB_RING_SETTINGS_COUNT
};
const char *prb_ring_setting_key(enum prb_ring_setting setting);
/* The file's number of a value (s, bytes, 1: on), and back; negative: nobody gave it. */
int64_t prb_ring_setting_number(enum prb_ring_setting setting, double value);
double prb_ring_setting_value(enum prb_ring_setting setting, int64_t number);
/* The number of each. */
void prb_ring_settings_read(int folder, int64_t out[PRB_RING_SETTINGS_COUNT]);
/* All at once, in place of those before. */
bool prb_ring_settings_write(int folder, const int64_t values[PRB_RING_SETTINGS_COUNT]);

#endif
