/* A message of the stream taken apart, and what takes its rows. */
#ifndef PRB_FLEET_HISTORY_SINK_H
#define PRB_FLEET_HISTORY_SINK_H

#include <jansson.h>

#include "fleet/history/history.h"
#include "ring/ring.h"

/* ---- taken.c, taken_crash.c ---- */

struct prb_taken {
    const char *schema; /* of the store: python, host */
    char name[PRB_RING_NAME_MAX + 1];
    struct prb_ring_column columns[PRB_RING_COLUMNS_MAX];
    size_t count;
    const char *host, *key, *job; /* host, key: of the agent's machine and of it in the roster */
    int rank, world_size;
    int64_t pid, started;
    uint64_t lost; /* rows that the process overwrote before */
    const char *rows;
    size_t len;
    char *names;    /* owned: the columns' */
    char *text;     /* owned, or NULL: rows that no message has so */
    json_t *object; /* the same: the process's texts */
};
/* Borrows from the message.  CORRUPT: it is none of ours: anybody with an agent's key may have
 * written it. */
bool prb_taken_parse(const struct prb_bus_message *message, struct prb_taken *out,
                     struct prb_error *err);
/* The same of event.crash: a row of the table crash_events. */
bool prb_taken_crash(const struct prb_bus_message *message, struct prb_taken *out,
                     struct prb_error *err);
void prb_taken_deinit(struct prb_taken *taken);
PRB_DEFINE_AUTO(prb_taken, struct prb_taken, prb_taken_deinit)
/* Its rows; a line that is no JSON object is left out.  values: one for each column, borrowed. */
bool prb_taken_each(const struct prb_taken *taken,
                    bool (*row)(void *context, const struct prb_ring_value *values,
                                struct prb_error *err),
                    void *context, struct prb_error *err);

/* ---- where rows go: one file for each kind ---- */

/*
 * What is written between begin and commit is kept whole with the position, or not at all.  A sink
 * is used by one thread.
 */
struct prb_sink {
    /* *position: up to which message of the stream its rows are here.  False: nothing is begun;
     * *again: it may be there later (a server that starts anew). */
    bool (*begin)(struct prb_sink *sink, uint64_t stream, uint64_t *position, bool *again,
                  struct prb_error *err);
    /* *rows: how many they are.  CORRUPT, USAGE: these rows cannot be kept here, others can. */
    bool (*take)(struct prb_sink *sink, const struct prb_taken *taken, uint64_t *rows,
                 struct prb_error *err);
    bool (*commit)(struct prb_sink *sink, uint64_t stream, uint64_t position, bool *again,
                   struct prb_error *err);
    void (*rollback)(struct prb_sink *sink);
    void (*free)(struct prb_sink *sink);
    bool earlier;   /* after a take that failed: what was taken before may be at fault */
    char name[200]; /* for people; without a password */
};
/* A file of the store; made where it is not there. */
struct prb_sink *prb_sink_store(const char *path, struct prb_error *err) PRB_MUST_CHECK;
/* "postgresql://…", as libpq takes it.  stop_fd: readable: give up what is waited for; -1: none.
 * Errors: UNSUPPORTED (no libpq), IO, PERMISSION. */
struct prb_sink *prb_sink_postgres(const char *url, int stop_fd,
                                   struct prb_error *err) PRB_MUST_CHECK;
bool prb_sink_is_postgres(const char *target);

#endif
