/* Why SQLite refused a statement: its message, the place in the user's text, and what was probably
 * meant. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/nearest.h"
#include "sql/db.h"
#include "sql/dialect.h"
#include "sql/excerpt.h"

/* The user's text and where the failed statement lies in it. */
struct source {
    const char *text;
    size_t len;
    const struct prb_statement *statement;
};

/* The significant token at or after *offset within the statement. */
static struct prb_token next_token(const struct source *source, size_t *offset)
{
    struct prb_token token;
    do {
        token = prb_token_at(source->text, source->statement->end, *offset);
        *offset = token.offset + token.len;
    } while (token.kind == PRB_TOKEN_SPACE);
    return token;
}

static bool is_name(const struct source *source, const struct prb_token *token, const char *name)
{
    char text[PRB_NAME_MAX];
    if (token->kind != PRB_TOKEN_WORD && token->kind != PRB_TOKEN_QUOTED)
        return false;
    prb_token_unquote(source->text, token, text, sizeof text);
    return strcasecmp(text, name) == 0;
}

/* Where a name, perhaps dotted, or in quotes as a whole, is; else the start of the statement. */
static size_t find_name(const struct source *source, const char *dotted)
{
    const char *last = strrchr(dotted, '.');
    const char *wanted = last ? last + 1 : dotted;
    size_t offset = source->statement->offset, before = source->statement->offset;
    struct prb_token token = next_token(source, &offset);
    size_t first = token.offset;
    bool after_dot = false;
    for (; token.kind != PRB_TOKEN_END; token = next_token(source, &offset)) {
        bool dot = token.len == 1 && source->text[token.offset] == '.';
        if (is_name(source, &token, wanted) && (!last || after_dot))
            return after_dot ? before : token.offset;
        if (token.kind == PRB_TOKEN_QUOTED && is_name(source, &token, dotted))
            return token.offset;
        before = dot ? before : token.offset;
        after_dot = dot;
    }
    return first;
}

/* ---- remedies ---- */

/* Append ", name" while it fits, then "…" once. */
static void list(char *out, size_t cap, const char *schema, const char *name, bool *full)
{
    size_t used = strlen(out);
    char item[2 * PRB_NAME_MAX];
    bool plain = !*schema || strcmp(schema, "main") == 0;
    int len = snprintf(item, sizeof item, "%s%s%s%s", out[0] && out[used - 1] != ' ' ? ", " : "",
                       plain ? "" : schema, plain ? "" : ".", name);
    if (*full)
        return;
    *full = used + (size_t)len + sizeof ", …" > cap;
    snprintf(out + used, cap - used, "%s", *full ? ", …" : item);
}

static bool is_internal(const struct prb_table *table)
{
    return strcmp(table->schema, "information_schema") == 0;
}

bool prb_db_no_table(struct prb_db *db, const char *text, size_t len, size_t offset,
                     const char *schema, const char *name, struct prb_error *err)
{
    char typed[2 * PRB_NAME_MAX];
    snprintf(typed, sizeof typed, "%s%s%s", schema ? schema : "", schema && *schema ? "." : "",
             name);
    prb_query_fail(err, text, len, offset, "no such table: %s", typed);
    if (!err)
        return false;
    const struct prb_table *found = NULL;
    unsigned best = prb_edit_limit(typed) + 1;
    for (size_t i = 0; i < db->table_count; i++) {
        const struct prb_table *table = db->tables[i];
        char full[2 * PRB_NAME_MAX];
        snprintf(full, sizeof full, "%s.%s", table->schema, table->name);
        unsigned whole = prb_edit_distance(typed, full),
                 alone = prb_edit_distance(name, table->name);
        unsigned distance = strcasecmp(name, table->name) == 0 ? 0 : whole;
        if (!schema || !*schema)
            distance = alone < whole && alone <= prb_edit_limit(name) ? alone : whole;
        if (distance < best) {
            best = distance;
            found = table;
        }
    }
    if (found)
        return prb_error_remedy(err, "did you mean %s%s%s?",
                                strcmp(found->schema, "main") == 0 ? "" : found->schema,
                                strcmp(found->schema, "main") == 0 ? "" : ".", found->name);
    bool full = false;
    snprintf(err->remedy, sizeof err->remedy, "tables: ");
    for (size_t i = 0; i < db->table_count; i++)
        if (!is_internal(db->tables[i]))
            list(err->remedy, sizeof err->remedy, db->tables[i]->schema, db->tables[i]->name,
                 &full);
    return false;
}

/* Whether the statement names the table anywhere, and where it names a schema, this one's. */
static bool is_mentioned(const struct source *source, const struct prb_table *table)
{
    size_t offset = source->statement->offset;
    struct prb_token token = next_token(source, &offset), before[2] = {0};
    for (; token.kind != PRB_TOKEN_END; token = next_token(source, &offset)) {
        bool dotted = before[1].len == 1 && source->text[before[1].offset] == '.';
        if (is_name(source, &token, table->name) &&
            (!dotted || is_name(source, &before[0], table->schema)))
            return true;
        before[0] = before[1];
        before[1] = token;
    }
    return false;
}

/* Whether the column is "…_name" for a name. */
static bool ends_in(const char *column, const char *name)
{
    size_t len = strlen(column), n = strlen(name);
    return len > n + 1 && column[len - n - 1] == '_' && strcasecmp(column + len - n, name) == 0;
}

/* What tables call by other names. */
static const char *const same[][3] = {
    {"os_thread_id", "tid"}, {"thread_name", "thread", "name"}, {"lineno", "line"},
    {"pid", "process"},      {"duration", "duration_ms"},
};

/* The column of the table that means what another table calls so, or NULL. */
static const char *other_name(const struct prb_table *table, const char *name)
{
    enum { NAMES = sizeof *same / sizeof **same };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        const char *found = NULL;
        bool is_one = false;
        for (size_t n = 0; n < NAMES && same[i][n]; n++) {
            is_one = is_one || strcasecmp(same[i][n], name) == 0;
            if (!found && strcasecmp(same[i][n], name) != 0 &&
                prb_table_column(table, same[i][n]) >= 0)
                found = same[i][n];
        }
        if (is_one)
            return found;
    }
    return NULL;
}

static bool no_column(struct prb_db *db, const struct source *source, size_t offset,
                      const char *dotted, struct prb_error *err)
{
    const char *dot = strrchr(dotted, '.');
    const char *name = dot ? dot + 1 : dotted;
    struct prb_token token = prb_token_at(source->text, source->len, offset);
    if (token.kind == PRB_TOKEN_QUOTED && is_name(source, &token, dotted))
        return prb_error_remedy(err, "text stands in single quotes: '%s'", dotted);
    const struct prb_table *last = NULL;
    const char *found = NULL, *longer = NULL, *other = NULL;
    unsigned best = prb_edit_limit(name) + 1;
    for (size_t i = 0; i < db->table_count; i++) {
        if (!is_mentioned(source, db->tables[i]))
            continue;
        last = db->tables[i];
        other = other ? other : other_name(last, name);
        for (const struct prb_column *column = last->columns; column->name; column++) {
            unsigned distance = prb_edit_distance(name, column->name);
            /* The very name is of another of the tables, and was not meant. */
            if (distance && distance < best) {
                best = distance;
                found = column->name;
            }
            if (!longer && ends_in(column->name, name))
                longer = column->name;
        }
    }
    found = other ? other : found ? found : longer;
    if (found)
        return prb_error_remedy(err, "did you mean %s?", found);
    if (!err || !last)
        return prb_error_remedy(err, "DESCRIBE table tells the columns of a table");
    bool full = false;
    snprintf(err->remedy, sizeof err->remedy, "columns of %s.%s: ", last->schema, last->name);
    for (const struct prb_column *column = last->columns; column->name; column++)
        list(err->remedy, sizeof err->remedy, "", column->name, &full);
    return false;
}

/* The nearest of all functions that the connection knows. */
static bool no_function(struct prb_db *db, const char *name, struct prb_error *err)
{
    sqlite3_stmt *list_of = NULL;
    char found[PRB_NAME_MAX] = "";
    unsigned best = prb_edit_limit(name) + 1;
    sqlite3_set_authorizer(db->sqlite, NULL, NULL);
    sqlite3_prepare_v2(db->sqlite, "SELECT DISTINCT name FROM pragma_function_list", -1, &list_of,
                       NULL);
    while (list_of && sqlite3_step(list_of) == SQLITE_ROW) {
        const char *one = (const char *)sqlite3_column_text(list_of, 0);
        unsigned distance = one ? prb_edit_distance(name, one) : best;
        if (distance < best) {
            best = distance;
            snprintf(found, sizeof found, "%s", one);
        }
    }
    sqlite3_finalize(list_of);
    prb_db_authorize(db);
    return *found ? prb_error_remedy(err, "did you mean %s()?", found)
                  : prb_error_remedy(err, "SHOW FUNCTIONS lists those beyond SQLite's own");
}

static bool wrong_arguments(const char *name, struct prb_error *err)
{
    size_t count, len = strcspn(name, "(");
    const struct prb_function_doc *docs = prb_function_docs(&count);
    for (size_t i = 0; i < count; i++)
        for (const char *at = docs[i].form; (at = strchr(at, name[0])) != NULL; at++)
            if (strncmp(at, name, len) == 0 && at[len] == '(')
                return prb_error_remedy(err, "it is %s: %s", docs[i].form, docs[i].doc);
    return false;
}

/* ---- the whole ---- */

/* The part of the message behind prefix, or NULL. */
static const char *behind(const char *message, const char *prefix)
{
    size_t len = strlen(prefix);
    return strncmp(message, prefix, len) == 0 ? message + len : NULL;
}

static bool refuse_table(struct prb_db *db, const struct source *source, const char *dotted,
                         struct prb_error *err)
{
    char schema[PRB_NAME_MAX] = "";
    const char *dot = strchr(dotted, '.');
    if (dot)
        snprintf(schema, sizeof schema, "%.*s", (int)(dot - dotted), dotted);
    return prb_db_no_table(db, source->text, source->len, find_name(source, dotted), schema,
                           dot ? dot + 1 : dotted, err);
}

/* Since 3.41 SQLite quotes the name and adds advice of its own, which the remedy gives: the message
 * as it was before. */
static void without_advice(char *message)
{
    const char *column = behind(message, "no such column: \"");
    char *advice = strstr(message, "\" - should this be a string literal");
    if (!column || !advice || advice < column)
        return;
    *advice = '\0';
    memmove(message + (column - message) - 1, column, strlen(column) + 1);
}

static bool refuse_rest(struct prb_db *db, const struct source *source, int place, char *message,
                        struct prb_error *err)
{
    without_advice(message);
    const char *column = behind(message, "no such column: ");
    const char *function = behind(message, "no such function: ");
    const char *count = behind(message, "wrong number of arguments to function ");
    const char *name = strrchr(message, ' ');
    size_t offset = source->statement->edit_count || source->statement->sql.len
                        ? prb_statement_origin(source->statement, place >= 0 ? (size_t)place : 0)
                        : source->statement->offset;
    if (place < 0)
        offset = find_name(source, column ? column : name ? name + 1 : message);
    if (strcmp(message, "incomplete input") == 0)
        offset = source->statement->end;
    prb_query_fail(err, source->text, source->len, offset, "%s", message);
    if (column)
        return no_column(db, source, offset, column, err);
    if (function)
        return no_function(db, function, err);
    return count ? wrong_arguments(count, err) : false;
}

bool prb_db_failure(struct prb_db *db, int rc, const char *text, size_t len,
                    const struct prb_statement *statement, struct prb_error *err)
{
    const struct source source = {text, len, statement};
    if (db->view.failed) {
        if (err)
            *err = db->view.error;
        return false;
    }
    if (db->view.stopped)
        return prb_fail(err, PRB_TIMEOUT, "the statement was stopped");
    if (db->view.timed_out) {
        prb_fail(err, PRB_TIMEOUT, "the statement ran longer than %lld ms and was ended",
                 (long long)(db->settings.query_timeout * 1000));
        return prb_error_remedy(err,
                                "add LIMIT or a WHERE term, or SET probing.query_timeout = 300");
    }
    if ((rc & 0xff) == SQLITE_NOMEM)
        return prb_nomem(err);
    char message[400];
    snprintf(message, sizeof message, "%s", sqlite3_errmsg(db->sqlite));
    if (db->refused || strstr(message, "may not be modified")) {
        prb_query_fail(err, text, len, find_name(&source, ""), "%s is refused: queries only read",
                       db->refused ? db->refused : "a change of a table");
        return prb_error_remedy(err, "use SELECT, SHOW TABLES or DESCRIBE");
    }
    int place = prb_sqlite_error_offset(db->sqlite);
    const char *table = behind(message, "no such table: ");
    return table ? refuse_table(db, &source, table, err)
                 : refuse_rest(db, &source, place, message, err);
}
