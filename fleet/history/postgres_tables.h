/* Tables in the database: made, or given the columns that rows of the stream have. */
#ifndef PRB_FLEET_HISTORY_POSTGRES_TABLES_H
#define PRB_FLEET_HISTORY_POSTGRES_TABLES_H

#include "fleet/history/postgres.h"
#include "fleet/history/sink.h"

#define PRB_POSTGRES_MADE_LOCK "7309453186320551" /* of who makes tables and schemas */

/* Beside the table's columns. */
enum prb_postgres_own {
    PRB_OWN_RANK,
    PRB_OWN_HOST,
    PRB_OWN_JOB,
    PRB_OWN_PID,
    PRB_OWN_PROCESS,
    PRB_OWN_COUNT
};

/* What rows of one kind are copied by. */
struct prb_postgres_shape {
    char *key;               /* schema, name, columns */
    char *copy;              /* the statement */
    bool own[PRB_OWN_COUNT]; /* which of these it has */
};

/* Those that are known in this transaction. */
struct prb_postgres_shapes {
    struct prb_postgres *server; /* borrowed */
    struct prb_postgres_shape *items;
    size_t count, cap;
};

/* The table is there with all columns then.  Borrowed, until the next call. */
const struct prb_postgres_shape *prb_postgres_shape_of(struct prb_postgres_shapes *shapes,
                                                       const struct prb_taken *taken,
                                                       struct prb_error *err);
/* The items stay. */
void prb_postgres_forget_shapes(struct prb_postgres_shapes *shapes);

#endif
