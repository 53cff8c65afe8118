/* Rows as a binary COPY takes them. */
#ifndef PRB_FLEET_HISTORY_POSTGRES_ROWS_H
#define PRB_FLEET_HISTORY_POSTGRES_ROWS_H

#include "base/buf.h"
#include "ring/ring.h"

/* What a COPY begins with: its mark, no flags, no extension. */
extern const char prb_postgres_copy_begins[19];

void prb_postgres_add_integer(struct prb_buf *out, int64_t value);
void prb_postgres_add_text(struct prb_buf *out, const char *text, size_t len);
void prb_postgres_add_value(struct prb_buf *out, enum prb_ring_type type,
                            const struct prb_ring_value *value);

#endif
