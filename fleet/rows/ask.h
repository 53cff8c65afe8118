/*
 * What is asked of each rank's tables, as JSON:
 *
 *     {"settings": {"reveal_secrets": false, "native_lines": false, "repr_limit": 4096},
 *      "needs": ["native", "locals"], "grouped": false,
 *      "tables": [{"schema": "python", "name": "backtrace", "arguments": {"with_native": 1},
 *                  "columns": ["func", "depth"], "where": [[["depth", "=", 0]]],
 *                  "limit": 10, "order": [["depth", "asc"]]}]}
 *
 * where: one of the lists holds, in which every term holds; absent: all rows.  grouped: equal rows
 * may be folded wherever they stand, else only neighbours.
 */
#ifndef PRB_FLEET_ROWS_ASK_H
#define PRB_FLEET_ROWS_ASK_H

#include <jansson.h>

#include "sql/db.h"

PRB_DEFINE_AUTO_PTR(json_t, json_t, json_decref)

#define PRB_ASKED_COLUMNS_MAX 1024

/* One table, asked for one list of arguments: by the asker from the plan, by a rank from JSON. */
struct prb_asked {
    const struct prb_table *table; /* NULL: the rank has not that one */
    size_t index;                  /* in db->tables */
    struct prb_argument arguments[PRB_ARGUMENTS_MAX];
    int *columns; /* of the descriptor, in the order in which they are sent; -1: not there */
    size_t column_count;
    struct prb_term_set *sets; /* one of them holds; 0: all rows */
    size_t set_count;
    bool sets_borrow; /* the terms belong to the plan */
    int64_t limit;    /* -1: none */
    struct {
        int column;
        bool descending;
    } order[PRB_PUSHED_ORDER_MAX];
    size_t order_count;
};

struct prb_ask {
    struct prb_asked *items;
    size_t count;
    unsigned needs; /* PRB_NEED_* */
    bool grouped;
};
void prb_ask_deinit(struct prb_ask *ask);
PRB_DEFINE_AUTO(prb_ask, struct prb_ask, prb_ask_deinit)

/* PRB_NEED_* as a list of words. */
json_t *prb_needs_json(unsigned bits);
unsigned prb_needs_parse(const json_t *list);

/* own: whether a column of the table is the ranks' own: the others are the asker's, and not sent. */
json_t *prb_ask_json(const struct prb_ask *ask, const struct prb_settings *settings,
                     bool (*own)(const struct prb_table *table, size_t column));
/* Of a rank's tables.  What it cannot parse: CORRUPT.  settings as they are at first. */
bool prb_ask_parse(const json_t *args, const struct prb_db *db, struct prb_ask *out,
                   struct prb_settings *settings, struct prb_error *err);

#endif
