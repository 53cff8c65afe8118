/*
 * Routes of another project of this name (PyPI's probing, in Rust), for scripts and clients that were
 * made for it: its paths and shapes, answered from our own data.
 *
 * There each process has a server of its own.  Here a route is about the process of ?pid=, or about
 * the only one that this server has.
 */
#ifndef PRB_SERVE_UPSTREAM_H
#define PRB_SERVE_UPSTREAM_H

#include "serve/http/route.h"

/* The process of ?pid=, else the only one of this server, becomes the first part of the path, as
 * routes/ have it.  USAGE: there are several, the remedy names them.  NOT_FOUND: there is none. */
bool prb_upstream_target(struct prb_serve_job *job, struct prb_error *err);

/* Rows by column; json_decref names and cols. */
struct prb_frame_of_rows {
    json_t *names;
    json_t *cols;  /* for each column {"SeqI64": […]}, SeqF64 or SeqText */
    json_t *nulls; /* {"column": [rows]}: these shapes have no NULL, there stands 0 or "" */
    size_t size;   /* rows */
};
/* Of a statement, at most limit rows (0: as many as any answer has). */
bool prb_upstream_rows(struct prb_serve_job *job, const char *sql, size_t limit,
                       struct prb_frame_of_rows *out, struct prb_error *err);

/* The statement and limit of {"expr", "opts": {"limit"}}, also as "payload" of an envelope; borrowed
 * from body. */
const char *prb_upstream_statement(const json_t *body, size_t *limit, struct prb_error *err);
/* Now, in µs since the epoch. */
json_int_t prb_upstream_now(void);

/* A process as its clients know it: pid, exe, env, cmd, cwd, main_thread, threads.  env: takes the
 * reference. */
json_t *prb_upstream_process(pid_t pid, const char *exe, const char *cmd, json_t *env);

#endif
