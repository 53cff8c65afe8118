/*
 * How far the rings of this host's ranks were published, in files that the next agent finds: a
 * folder published-NS-BEGAN (0700) beside the rings, of this pid namespace, with a file for each
 * ring, written before a message goes and after the server has it.
 */
#ifndef PRB_FLEET_HISTORY_PLACES_H
#define PRB_FLEET_HISTORY_PLACES_H

#include <sys/types.h>

#include "base/buf.h"
#include "ring/ring.h"

#define PRB_PLACES_TEXT 1024 /* bytes of a process's texts */

struct prb_place {
    char name[PRB_RING_NAME_MAX + 1]; /* of the table */
    uint64_t inode;                   /* of the ring */
    struct prb_ring_mark mark;        /* up to here the server has its rows */
    struct prb_ring_mark next;        /* and of a message on its way up to here; count 0: none is */
    double sent;                      /* when that was, s since the epoch */
    bool asked;                       /* whether the server has it, and no answer came */
    uint64_t tries;                   /* names of messages that were used up */
    struct prb_buf rows;              /* it, in the agent that sent it */
    uint64_t lost;                    /* rows that were overwritten before these */
};

/* A process whose rings are published. */
struct prb_placed {
    pid_t pid;
    int64_t started;            /* field 22 of proc_pid_stat(5) */
    char job[128];              /* PRB_PLACES_TEXT holds it and */
    char text[PRB_PLACES_TEXT]; /* what the header Probing-Process says of it */
    char host[80];
    int rank;
    int folder; /* of its rings; -1: not open */
    bool lives; /* seen in this round */
    struct prb_place *places;
    size_t count, cap;
};

struct prb_places {
    int folder; /* -1: nothing is kept */
    char path[PRB_RING_PATH_MAX + 80];
    struct prb_placed *items;
    size_t count, cap;
    char *tables; /* which the agent before published; NULL: there was none */
};

/* What the agent before left.  Never fails: without it begins anew. */
void prb_places_open(struct prb_places *places);
void prb_places_close(struct prb_places *places);
/* What is published from now on, for the next agent. */
void prb_places_set_tables(struct prb_places *places, const char *tables);

/* Find or add.  NULL: out of memory, or there are too many. */
struct prb_placed *prb_places_process(struct prb_places *places, pid_t pid, int64_t started);
struct prb_place *prb_places_ring(struct prb_placed *process, uint64_t inode, const char *name,
                                  bool *new_out);
/* As it is now.  False: the next agent would not know of it. */
bool prb_place_save(const struct prb_places *places, const struct prb_placed *process,
                    const struct prb_place *place);
/* With its files: it has ended, and nothing of it is left to publish. */
void prb_places_forget(struct prb_places *places, size_t index);

#endif
