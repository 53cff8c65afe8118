/* What the files of the tables of all ranks share (table.c, unite.c, fetch.c, plan.c). */
#ifndef PRB_FLEET_ROWS_SOURCE_H
#define PRB_FLEET_ROWS_SOURCE_H

#include "fleet/rows/ask.h"
#include "fleet/rows/rows.h"

#define PRB_TABLE_NAME_MAX 128

/* What the asker adds to each table. */
enum prb_added {
    PRB_ADDED_RANK,
    PRB_ADDED_HOST,
    PRB_ADDED_HIDDEN_RANK,
    PRB_ADDED_HIDDEN_HOST,
    PRB_ADDED_LOCAL_RANK,
    PRB_ADDED_NODE_RANK,
    PRB_ADDED_ROLE,
    PRB_ADDED_ADDRESS,
    PRB_ADDED
};
struct prb_united {
    struct prb_table table; /* first */
    struct prb_column *columns;
    size_t column_cap;
    int added[PRB_ADDED]; /* the column of each, -1: the table has one of its own */
};

/* The tables of the ranks that have the same ones. */
struct prb_schema {
    char hash[17];
    json_t *tables;
};

struct prb_schema_member {
    int rank;
    char hash[17];
};

struct prb_rows_source {
    struct prb_table_source source; /* first */
    struct prb_rows_asker asker;
    struct prb_schema *schemas;
    size_t schema_count, schema_cap;
    struct prb_schema_member *members; /* as of the last question, by rank */
    size_t member_count, member_cap;
    struct prb_error error; /* of the last question about schemas */
    struct prb_arena texts; /* of the tables */
    struct prb_united **tables;
    size_t table_count, table_cap;
    char note[200];
    /* of the running statement */
    struct prb_ask ask;
    struct prb_answers answers; /* by rank */
    const struct prb_pushed *pushed;
};

/* ---- unite.c ---- */
/* A table as a rank describes it: one of all ranks, or more columns of one.  False: out of memory.
 * What cannot be is left out, with a note. */
bool prb_tables_unite(struct prb_rows_source *source, const json_t *json);
/* The columns of the asker, when all ranks' are there. */
bool prb_united_finish(struct prb_united *united);
/* ---- fetch.c ---- */
bool prb_rows_fetch(struct prb_table_source *base, struct prb_db *db, struct prb_error *err);
bool prb_united_fill(struct prb_rows *rows, struct prb_error *err);
/* The statement's rows are needed no more; context is the source. */
void prb_rows_forget(void *context);
/* ---- plan.c ---- */
bool prb_rows_plan(struct prb_table_source *base, struct prb_db *db, prb_row_fn *each,
                   void *context, struct prb_error *err);

#endif
