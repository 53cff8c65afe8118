/* Rows of a statement as an answer: in json, jsonl, csv or text. */
#ifndef PRB_SERVE_ROUTES_ROWS_H
#define PRB_SERVE_ROUTES_ROWS_H

#include "serve/http/route.h"

/* The statement of a question: its parameter sql, that key of its body, or the body as plain text.  The
 * caller frees it.  USAGE. */
char *prb_question_sql(const struct prb_question *question, struct prb_error *err);
bool prb_answer_rows(struct prb_serve_job *job, const char *sql, struct prb_error *err);

#endif
