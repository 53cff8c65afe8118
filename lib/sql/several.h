/*
 * The tables of several processes as one: each has the rows of all of them, with the columns rank
 * and pid before the others.  A table that only some have has the rows of those.
 */
#ifndef PRB_SQL_SEVERAL_H
#define PRB_SQL_SEVERAL_H

#include "sql/db.h"

struct prb_several;

/* For count processes, which prb_several_add gives. */
struct prb_several *prb_several_new(size_t count, struct prb_error *err) PRB_MUST_CHECK;
void prb_several_free(struct prb_several *several);
PRB_DEFINE_AUTO_PTR(prb_several, struct prb_several, prb_several_free)
/* db, the tables of one process, is taken. */
void prb_several_add(struct prb_several *several, struct prb_db *db, pid_t pid, int rank);
/* several is its own source: it is freed with the connection that takes it. */
struct prb_table_source *prb_several_source(struct prb_several *several);

#endif
