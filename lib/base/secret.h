/*
 * What is secret: by its name (AWS_SECRET_ACCESS_KEY=…, --hf-token …), or by its form (a URL's
 * password, Bearer …, password=…, ghp_…, a private key).  One table for everything that is shown or
 * written: SQL, JSON, lists, DAP, snapshots, crash dumps.
 *
 * To add a name: the lists of secret.c.  To add a form: a line of the table in secret_look.c.  A
 * case each in tests/unit/secret.c.
 */
#ifndef PRB_BASE_SECRET_H
#define PRB_BASE_SECRET_H

#include "base/buf.h"

#define PRB_MASK "***"

/* Whether a name looks as if its value were secret: AWS_SECRET_ACCESS_KEY, GITHUB_TOKEN,
 * dbPassword; not KEYBOARD. */
bool prb_secret_name(const char *name);
/*
 * The same of an option or argument (without its dashes), whose names are more often harmless:
 * --max-tokens 4096,
 * --tokenizer-path, --key-dim.  Those that name a file, a size or a kind are none, and a number
 * is secret only where
 * the name says a password.
 */
bool prb_secret_argument(const char *name, const char *value);

/* The same of a variable in a program, where token and key mean other things, too: only words
 * that mean nothing else (password, api_key, client_secret). */
bool prb_secret_variable(const char *name);

/* What a text is.  Names count in the latter two, the form of a value in all. */
enum prb_secret_kind {
    PRB_SECRET_TEXT, /* any text */
    /* "A=1\0B=2\0": /proc/PID/environ; one value of it without a name is a TEXT */
    PRB_SECRET_ENVIRONMENT,
    PRB_SECRET_ARGUMENTS, /* "python\0--token\0x\0": /proc/PID/cmdline */
};

/* A part of a text, bytes. */
struct prb_span {
    size_t at, len; /* never 0 bytes */
};

/* Calls found(context, span) for each secret part, ascending, none within another.  text need
 * not end in a NUL. */
void prb_secret_each(enum prb_secret_kind kind, const char *text, size_t len,
                     void (*found)(void *context, struct prb_span span), void *context);
/* Append text with PRB_MASK in place of each secret part; returns whether there were any. */
bool prb_secret_mask(enum prb_secret_kind kind, const char *text, size_t len, struct prb_buf *out);

/* ---- secret_look.c ---- */

/* The first secret part from there on, by its form. */
bool prb_secret_find(const char *text, size_t len, size_t from, struct prb_span *out);
/* Whether something that looks secret begins at text[at]; *out: its secret part (password=X: X),
 * which may begin later.  Ask only where a head begins, or everywhere. */
bool prb_secret_at(const char *text, size_t len, size_t at, struct prb_span *out);
/* The first bytes of everything prb_secret_at finds but USER:PASSWORD@HOST, at least 3 bytes
 * each; NULL behind the last. Letters stand for both cases. */
const char *prb_secret_head(size_t i);

#endif
