/*
 * What a statement asks of the tables whose rows are fetched from elsewhere (struct prb_table,
 * fetched), as SQLite's own planner says it: xBestIndex is called for every way in which a table
 * could be read, and each call gives one set of terms that hold together.  What is fetched is what
 * any of the sets wants, so that every plan finds its rows.
 *
 * SQLite looks at each row again, so rows too many are harmless and rows too few are a wrong answer.
 * Hence only terms are taken that were seen to be right in comparison with one database
 * (tests/fetch): `=`, `<`, `<=`, `>`, `>=`, IS and IS NULL; a constant of the column's own class;
 * the collation BINARY.  `<>`, IS NOT, LIKE and GLOB are offered also where they do not hold: for
 * the left table of a LEFT JOIN.
 */
#ifndef PRB_SQL_PUSHED_H
#define PRB_SQL_PUSHED_H

#include "sql/rows.h"
#include "sql/sqlite.h"

enum prb_term_op {
    PRB_TERM_EQ,
    PRB_TERM_LT,
    PRB_TERM_LE,
    PRB_TERM_GT,
    PRB_TERM_GE,
    PRB_TERM_IS,
    PRB_TERM_IS_NULL, /* without a value */
    /* One of prb_pushed's listed numbers, of a column of_rank; it says whom to ask, and is not sent. */
    PRB_TERM_IN,
};
#define PRB_TERM_OPS 8
/* "=", "<" and so on, as SQL has them. */
extern const char *const prb_term_names[PRB_TERM_OPS];

struct prb_term {
    size_t column; /* of the descriptor */
    enum prb_term_op op;
    struct prb_value value; /* text is owned */
};

#define PRB_PUSHED_ORDER_MAX 4

/* One way to read a table. */
struct prb_term_set {
    size_t table; /* in db->tables */
    struct prb_argument arguments[PRB_ARGUMENTS_MAX];
    bool unknown;           /* an argument comes from other rows: nothing can be fetched */
    struct prb_term *terms; /* all of them hold */
    size_t count, cap;
    int64_t limit; /* the first rows suffice; -1: all */
    struct {
        size_t column;
        bool descending;
    } order[PRB_PUSHED_ORDER_MAX]; /* by which they are the first */
    size_t order_count;
};

void prb_term_set_deinit(struct prb_term_set *set);
PRB_DEFINE_AUTO(prb_term_set, struct prb_term_set, prb_term_set_deinit)
/* One more term, whose value is copied.  False: out of memory. */
bool prb_term_set_add(struct prb_term_set *set, const struct prb_term *term);

struct prb_pushed {
    struct prb_term_set *sets;
    size_t count, cap;
    size_t fetched;    /* of these, the sets that the rows were fetched for */
    bool first_rows;   /* LIMIT and ORDER BY of the plan say what is read of the table */
    bool alternatives; /* there is an OR, for whose sides a table may be read one by one */
    bool grouped;      /* no row is shown as it is, so their order is nothing to anybody */
    /* The numbers of all lists of the text, as in rank IN (1, 3); unlisted: an IN may have others. */
    int64_t *listed;
    size_t listed_count, listed_cap;
    bool unlisted;
};

void prb_pushed_deinit(struct prb_pushed *pushed);
/* Before a query is prepared: what its text says of how rows may come. */
void prb_pushed_read(struct prb_pushed *pushed, const char *sql, size_t len);
/*
 * In xBestIndex, when arguments and look-ups have their argvIndex: add the set of this call, and
 * give each of its terms an argvIndex after *count, without which SQLite would not plan again
 * without the terms that need other tables.  arguments: for each argument 1 + its term.
 * *number_out: of the set.  An SQLite code.
 */
int prb_pushed_add(struct prb_pushed *pushed, const struct prb_table *table, size_t index,
                   sqlite3_index_info *info, const int *arguments, int *count, size_t *number_out);

/* In xBestIndex: whether a term is `rank IN (1, 3)`, of a table that is fetched.  Which of the text's
 * lists it is cannot be seen, so it is taken for all of them; it is not looked up. */
bool prb_pushed_is_list(const struct prb_pushed *pushed, const struct prb_table *table,
                        sqlite3_index_info *info, int term);

/* As SQLite orders two numbers, exactly, and two texts (BINARY) or blobs. */
int prb_numbers_compare(const struct prb_value *a, const struct prb_value *b);
int prb_texts_compare(const struct prb_value *a, const struct prb_value *b);
/* Whether a rank can meet a term on a column of_rank.  False is certain. */
bool prb_pushed_rank_holds(const struct prb_pushed *pushed, const struct prb_term *term, int rank);
/* Whether a value, of a row, can meet a term.  False is certain. */
bool prb_term_holds(const struct prb_term *term, enum prb_type column_type,
                    const struct prb_value *value);

#endif
