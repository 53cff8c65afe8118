/*
 * A kind of question is one file in fleet/kind: a constant descriptor and its three functions.
 *
 * of_rank runs in a child process of the host, one for each rank, which is killed when it overruns:
 * it may block, and may crash.  at_host, in the agent (or the asker itself, where both are one),
 * merges the parts of its ranks before they travel.  at_root, in the asker, adds the reply of one
 * host to the result.  Parts and replies are bytes; the kind chooses their form (JSON by jansson
 * for what is small).  What at_host and at_root are given may come from a hostile rank or host:
 * every length and number is checked.
 *
 * To add one: NAME.c in fleet/kind with `const struct prb_fleet_kind prb_fleet_kind_NAME`, its name
 * in FLEET_KINDS (fleet/kind/local.mk), a case in tests/fleet.
 */
#ifndef PRB_FLEET_KIND_H
#define PRB_FLEET_KIND_H

#include <jansson.h>

#include "base/buf.h"
#include "fleet/fleet.h"

PRB_DEFINE_AUTO_PTR(json_t, json_t, json_decref)

/* Who may ask: classes of grants and of the bus's permissions. */
enum prb_fleet_class { PRB_FLEET_LOOK, PRB_FLEET_CONTROL, PRB_FLEET_EVAL };

/* How long it takes: an agent works on questions of each pace beside those of the others. */
enum prb_fleet_pace {
    PRB_FLEET_QUICK,
    PRB_FLEET_SQL,  /* as what is asked has it */
    PRB_FLEET_LONG, /* seconds, however fast the host is */
    PRB_FLEET_PACES,
};

/* What a child of one rank has: it stays for further questions, and so does the open target. */
struct prb_fleet_seat {
    struct prb_fleet_member member;
    struct prb_target *target; /* NULL until prb_fleet_seat_target */
    struct prb_db *db;         /* NULL until prb_fleet_seat_db */
    double budget;             /* s for this question */
    size_t max_bytes;          /* of its part */
};
/* The rank's process, opened once; borrowed from the seat.  Errors: those of prb_target_open_pid. */
struct prb_target *prb_fleet_seat_target(struct prb_fleet_seat *seat, struct prb_error *err);
/* Whether its process is still there: then what was NOT_FOUND is something else. */
bool prb_fleet_seat_lives(const struct prb_fleet_seat *seat);
/* The tables of the process, the same. */
struct prb_db *prb_fleet_seat_db(struct prb_fleet_seat *seat, struct prb_error *err);

/* The bytes of one rank, or of a host that merged its ranks (rank -1). */
struct prb_fleet_part {
    int rank;
    const char *data;
    size_t len;
};

/* What one host answered. */
struct prb_fleet_reply {
    char host[80];
    double clock; /* s since the epoch on that host, when it began */
    struct prb_fleet_state {
        int rank;
        pid_t pid;
        enum prb_coverage_state state; /* ANSWERED, FAILED, GONE */
        bool truncated;
        double ms;
        char reason[360];
    } *states;
    size_t state_count;
    struct prb_fleet_part *parts; /* one of the host (rank -1), or one of each rank that answered */
    size_t part_count;
};

struct prb_fleet_kind {
    const char *name;
    enum prb_fleet_class needs;
    double budget; /* s, unless the asker says otherwise */
    bool large;    /* a reply may be large: ask shard by shard */
    enum prb_fleet_pace pace;
    /*
     * It is about the host: of_rank is called once for all ranks of the job that are here or ended
     * here, in the child of one of them, and its part is the host's (rank -1).  args then has
     * "host", which the host itself writes: {"job", "folders": [{uid, folder}] of crash dumps (""
     * the default one), "ranks": [{rank, pid, uid, started, ended}]}.
     */
    bool of_host;
    bool streams; /* of one rank: its agent begins a stream (fleet/stream), of_rank is not called */
    /* Begin to look at one rank: append its part to out.  False: the rank is FAILED with err's text
     * (GONE: gone). */
    bool (*of_rank)(struct prb_fleet_seat *seat, const json_t *args, struct prb_buf *out,
                    struct prb_error *err);
    /* One part of the parts of the ranks that answered; NULL: they travel as they are.  A part that
     * cannot be used is a fault of its rank: name it in *faulty_out and return false. */
    bool (*at_host)(const json_t *args, const struct prb_fleet_part *parts, size_t count,
                    struct prb_buf *out, int *faulty_out, struct prb_error *err);
    /* Add a reply to the result, whole or not at all.  False: all ranks of the reply are FAILED
     * with err's text. */
    bool (*at_root)(const json_t *args, const struct prb_fleet_reply *reply, void *result,
                    struct prb_error *err);
};

#define KIND(name) extern const struct prb_fleet_kind prb_fleet_kind_##name;
#include "fleet/kind/kinds.inc"
#undef KIND
/* By name, or NULL. */
const struct prb_fleet_kind *prb_fleet_kind_find(const char *name);

#endif
