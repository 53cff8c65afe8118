/* What names the job of a rank: variables of its environment (identities.def). */
#ifndef PRB_PROC_JOB_NAME_H
#define PRB_PROC_JOB_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* The value of a variable in an environment ("NAME=value" texts, each with its NUL, len bytes);
 * NULL: it is not set, or empty. */
const char *prb_environment_get(const char *environment, size_t len, const char *name);
/* A value as UTF-8, cut to size: a byte of no character is written as \xE9. */
void prb_environment_text(const char *value, char *out, size_t size);
/* The name of the job, as prb_environment_text; false: none. */
bool prb_job_name(const char *environment, size_t len, char *out, size_t size);

#endif
