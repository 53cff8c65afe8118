/* Jobs of several ranks, on this host or on the bus (fleet/cluster.h): what the routes /api/v1/jobs share. */
#ifndef PRB_SERVE_ROUTES_JOB_ROSTER_H
#define PRB_SERVE_ROUTES_JOB_ROSTER_H

#include "serve/http/route.h"

/* The jobs, or the one of that name (NULL: all), as GET /api/v1/jobs tells them: an array.  A server
 * for some processes tells ranks that are its own alone. */
json_t *prb_serve_jobs(const struct prb_serve *serve, const char *name, struct prb_error *err);
/*
 * What the command line is to be given for "@JOB:RANKS": of a server for some processes the ranks that
 * are its own.  serve NULL, here and above: of standard input, which has all.  The caller frees it.
 * Errors: USAGE, PERMISSION.
 */
char *prb_serve_job_address(const struct prb_serve *serve, const char *word, struct prb_error *err);
/* What `probing -t @JOB:RANKS WORDS` prints is the answer, also when not all ranks answered: its
 * coverage says so.  words[0] and words[1] are left free for the address. */
bool prb_serve_job_answer(struct prb_serve_job *job, const char **words, struct prb_error *err);
/* The same answer as that of an equal question of the second before, when there is one (job_shared.c):
 * prb_answer_by_command.  words ends with NULL. */
bool prb_serve_job_shared(struct prb_serve_job *job, const char *const *words, const char *type,
                          struct prb_error *err);

#endif
