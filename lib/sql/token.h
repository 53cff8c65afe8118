/*
 * SQL text cut into tokens by SQLite's own rules (its tokenize.c is described in
 * https://sqlite.org/lang_expr.html and https://sqlite.org/lang_keywords.html): strings, three
 * kinds of quoted names, comments, blobs, numbers, variables.  Pure: works on the bytes alone,
 * never reads behind them.
 */
#ifndef PRB_SQL_TOKEN_H
#define PRB_SQL_TOKEN_H

#include <stdbool.h>
#include <stddef.h>

enum prb_token_kind {
    PRB_TOKEN_END,
    PRB_TOKEN_SPACE,  /* white space or a comment */
    PRB_TOKEN_WORD,   /* a keyword or a plain name */
    PRB_TOKEN_QUOTED, /* "name", `name` or [name] */
    PRB_TOKEN_STRING, /* 'text' */
    PRB_TOKEN_BLOB,   /* x'00ff' */
    PRB_TOKEN_NUMBER,
    PRB_TOKEN_VARIABLE,
    PRB_TOKEN_OPERATOR, /* also ( ) , . */
    PRB_TOKEN_SEMICOLON,
    PRB_TOKEN_ILLEGAL, /* not closed, or no token at all */
};

struct prb_token {
    enum prb_token_kind kind;
    size_t offset, len; /* bytes */
};

/* The token at offset; kind END, len 0 at len. */
struct prb_token prb_token_at(const char *sql, size_t len, size_t offset);

/* Whether the token is this word, in any case; word in lower case. */
bool prb_token_is(const char *sql, const struct prb_token *token, const char *word);

/* What a STRING or QUOTED token means (a WORD: itself), in out; returns its length, which may
 * exceed cap - 1 (then it is cut there). */
size_t prb_token_unquote(const char *sql, const struct prb_token *token, char *out, size_t cap);

#endif
