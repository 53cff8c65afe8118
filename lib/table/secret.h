/* Which environment variables hold secrets, and what of their values may be shown. */
#ifndef PRB_TABLE_SECRET_H
#define PRB_TABLE_SECRET_H

#include "base/buf.h"

#define PRB_MASK "***"

/* Whether a name looks as if its value were secret: AWS_SECRET_ACCESS_KEY, GITHUB_TOKEN,
 * dbPassword; not KEYBOARD. */
bool prb_secret_name(const char *name);
/* Append value with the passwords of its URLs masked (scheme://user:password@host); returns whether
 * there were any. */
bool prb_secret_mask_urls(const char *value, struct prb_buf *out);
/* Append an environment, "A=1\0B=2\0" (NUL-terminated), with all of that masked. */
void prb_environment_mask(const char *text, size_t len, struct prb_buf *out);

#endif
