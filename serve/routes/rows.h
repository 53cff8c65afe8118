/* Rows of a statement as an answer: in json, jsonl, csv or text. */
#ifndef PRB_SERVE_ROUTES_ROWS_H
#define PRB_SERVE_ROUTES_ROWS_H

#include "serve/http/route.h"

bool prb_answer_rows(struct prb_serve_job *job, const char *sql, struct prb_error *err);

#endif
