/*
 * Rows that a skill keeps, as tables of the schema `kept` for its later statements.  Each skill
 * sees its own; `kept.since` is there for all.
 */
#ifndef PRB_SKILL_KEPT_H
#define PRB_SKILL_KEPT_H

#include "sql/table.h"

#define PRB_KEPT_COLUMNS_MAX 60
#define PRB_KEPT_CELLS_MAX 400000u /* of one table */
#define PRB_KEPT_TEXT_MAX 4096u    /* bytes of one cell */

struct prb_kept;

struct prb_kept *prb_kept_new(struct prb_error *err);
/* For prb_db_add_source; kept is freed with the connection that takes it. */
struct prb_table_source *prb_kept_source(struct prb_kept *kept);
/* Whose tables are seen from here on; borrowed. */
void prb_kept_choose(struct prb_kept *kept, const char *skill);
/* For prb_kept_row: the rows of a query become table NAME of the chosen skill, behind those of its
 * looks before; the first look (0) empties it.  look < 0: there is only one. */
bool prb_kept_begin(struct prb_kept *kept, const char *name, int look, struct prb_error *err);
/* A prb_row_fn; context: kept.  False: it is full, or out of memory. */
bool prb_kept_row(void *context, size_t columns, const char *const *names,
                  const struct prb_value *row);
/* kept.since(os_thread_id, since): a row. */
bool prb_kept_add_since(struct prb_kept *kept, int64_t os_thread_id, double since);

#endif
