/* Names that questions use: parameters of the query, keys of a JSON body; what each may be. */
#ifndef PRB_SERVE_FIELDS_H
#define PRB_SERVE_FIELDS_H

#include <stddef.h>

enum prb_field_type {
    PRB_FIELD_FLAG,
    PRB_FIELD_INTEGER,
    PRB_FIELD_NUMBER,
    PRB_FIELD_SECONDS, /* in a query also "5s", "2m", "1h" */
    PRB_FIELD_TEXT,
    PRB_FIELD_OBJECT, /* texts by key */
    PRB_FIELD_WORDS,  /* an array of texts */
};

struct prb_field {
    const char *name;
    enum prb_field_type type;
    const char *doc; /* NULL ends the table */
};
extern const struct prb_field prb_fields[];
/* By the first len bytes of its name; NULL: there is none. */
const struct prb_field *prb_field_named(const char *name, size_t len);

#endif
