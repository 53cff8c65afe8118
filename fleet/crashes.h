/* Crash dumps on the hosts of a job: which there are, and the bytes of one. */
#ifndef PRB_FLEET_CRASHES_H
#define PRB_FLEET_CRASHES_H

#include <jansson.h>

#include "base/buf.h"
#include "fleet/fleet.h"

struct prb_fleet_crash {
    char host[80];              /* where the file is: the node's name, unique in the job */
    char *path;                 /* of the file there */
    char *kind, *title, *place; /* as in struct prb_crash_file; "" where not known */
    char *group;                /* equal for equal crashes; "": of no other */
    double time;                /* s since the epoch, by its host; 0: not known */
    pid_t pid;                  /* 0: not known */
    int rank;                   /* -1: none */
    uint64_t bytes;             /* of the file */
    bool told;                  /* by an event: its host does not answer now */
};
struct prb_fleet_crashes {
    struct prb_fleet_crash
        *items; /* earliest first; a file that several hosts share is there once */
    size_t count, cap;
    size_t left_out; /* older ones, or more than a host tells */
    bool events;     /* those of the last day were asked for, and the server keeps them */
    char job[128];   /* whose they are; "": of several jobs */
};
/* Begins as {0}. */
PRB_API void prb_fleet_crashes_deinit(struct prb_fleet_crashes *crashes);
PRB_DEFINE_AUTO(prb_fleet_crashes, struct prb_fleet_crashes, prb_fleet_crashes_deinit)

/*
 * The dumps of a job's processes, from its hosts, also of ranks that have ended; over a bus, those
 * that the server remembers of hosts that do not answer, too.  The coverage: answered are the ranks
 * whose host did.
 */
PRB_API bool prb_fleet_crashes_take(struct prb_fleet *fleet, struct prb_fleet_crashes *out,
                                    struct prb_coverage *coverage_out, struct prb_error *err);
/* Where no agent knows the job any more ("@JOB", or "@" for all): what the server remembers.
 * NOT_FOUND: nothing, or there is no bus. */
PRB_API bool prb_fleet_crashes_told(const char *address, const char *bus,
                                    struct prb_fleet_crashes *out, struct prb_error *err);

#define PRB_FLEET_DUMP_MOST ((uint64_t)64 << 20) /* bytes of a dump that is fetched */
/* Fetch one into a folder, as HOST-NAME, which the caller frees; *was_there: it was fetched before.
 * Errors: PARTIAL (its host does not answer, or has it no more), IO. */
PRB_API char *prb_fleet_crash_pull(struct prb_fleet *fleet, const struct prb_fleet_crash *crash,
                                   const char *folder, bool *was_there, struct prb_error *err);

/* ---- answers/crashes.c: for the kind "crash", and events ---- */

/* What the kind "crash" fills. */
struct prb_crash_answers {
    struct prb_fleet_crashes *list; /* of all hosts; or NULL: */
    const char *host;               /* a part of a file of this one */
    struct prb_buf *bytes;
    uint64_t total; /* of the file */
    bool found;
};
/* A dump as one JSON object: path, kind, title, place, group, time, pid, rank, bytes. */
bool prb_fleet_crash_json(struct prb_buf *out, const char *folder,
                          const struct prb_crash_file *file);
/* Add one, from whoever: its lengths are bounded.  CORRUPT: it is none. */
bool prb_fleet_crashes_add(struct prb_fleet_crashes *crashes, const char *host, const json_t *one,
                           bool told, struct prb_error *err);
/* Without one. */
void prb_fleet_crashes_drop(struct prb_fleet_crashes *crashes, size_t index);
/* All of other, which is empty then.  False: out of memory. */
bool prb_fleet_crashes_join(struct prb_fleet_crashes *crashes, struct prb_fleet_crashes *other);
/* As it was when it had so many. */
void prb_fleet_crashes_cut(struct prb_fleet_crashes *crashes, size_t count);
/* Sort them, and leave one of those that are one file. */
void prb_fleet_crashes_settle(struct prb_fleet_crashes *crashes);

#endif
