/*
 * SQL over the rows of all ranks.
 *
 * A statement runs whole at the asker, over tables that have the rows of every rank; before its
 * first row everything that it reads is fetched with one question ("rows"), so every statement is
 * right, and each rank's rows are of one moment of it.  What is fetched comes from SQLite's own plan
 * (lib/sql/pushed.h): the columns that are used, and constant filters.  Which tables there are is
 * asked before ("schema").
 *
 * Both questions are JSON objects; a rank answers them from its own connection (answer.c).
 */
#ifndef PRB_FLEET_ROWS_ROWS_H
#define PRB_FLEET_ROWS_ROWS_H

#include <jansson.h>

#include "sql/db.h"

/* ---- what ranks answered to one question ---- */

struct prb_answer {
    int rank;
    int local_rank, node_rank; /* -1: not known; the asker may set them */
    char host[80], role[32];   /* role: "": not known; the asker may set it */
    void *data;                /* owned */
    size_t len;
};

struct prb_answers {
    struct prb_answer *items;
    size_t count, cap;
    size_t bytes, bytes_max; /* together; 0: as many as there are */
    size_t rows, rows_max;   /* the same of "rows" */
    /* What is said when there are too many: the code is TIMEOUT. */
    struct prb_error over;
    /* Before an answer comes: whether this rank's is wanted.  NULL: all are.  An unwanted one is
     * harmless. */
    bool (*wants)(const void *what, int rank);
    const void *what;
};

void prb_answers_deinit(struct prb_answers *answers);
PRB_DEFINE_AUTO(prb_answers, struct prb_answers, prb_answers_deinit)
/* The answer of a rank; data is copied.  False: NOMEM, CORRUPT, or too many rows: then ask no more. */
bool prb_answers_add(struct prb_answers *answers, int rank, const char *host, const void *data,
                     size_t len, struct prb_error *err);

/* By rank. */
void prb_answers_sort(struct prb_answers *answers);

/* ---- the asker ---- */

struct prb_rows_asker {
    void *context;
    /* Ask all ranks; what they answer goes to prb_answers_add.  kind: "schema", "rows". */
    bool (*ask)(void *context, const char *kind, const char *args, struct prb_answers *answers,
                struct prb_error *err);
    void (*free)(void *context); /* or NULL */
    size_t rows_max, bytes_max;  /* of one statement; 0: as the settings say */
    /* A table of the schema main that the asker has itself, whatever the ranks have; or NULL. */
    const char *own;
};

/*
 * The tables of all ranks, with the columns rank and host behind their own (a table that has such a
 * column keeps it), and _rank, _host, _local_rank, _node_rank, _role and _addr aside.  Columns that
 * only some ranks have are NULL for the others.
 */
struct prb_table_source *prb_rows_source(const struct prb_rows_asker *asker,
                                         struct prb_error *err) PRB_MUST_CHECK;

/* ---- a rank ---- */

/* The tables that db has: {"hash"}, with args {"columns": true} and "tables", too. */
bool prb_schema_answer(struct prb_db *db, const json_t *args, struct prb_buf *out,
                       struct prb_error *err);
/* The rows that are asked for, of one moment, as pack.h has them.  bytes_max: of the answer; more is
 * TIMEOUT. */
bool prb_rows_answer(struct prb_db *db, const json_t *args, size_t bytes_max, struct prb_buf *out,
                     struct prb_error *err);

#endif
