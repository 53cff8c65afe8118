/*
 * Tools for agents, by the Model Context Protocol: a pure function of a message.  Nothing is kept
 * between two, so the newest protocol (2026-07-28: each request says its version) and the older ones
 * (which say `initialize` first) are answered alike, on standard input and over HTTP.
 *
 * To add a tool: a file with its `const struct prb_mcp_tool`, its name below and in tools.c, a case in
 * tests/serve/test_mcp.py.
 */
#ifndef PRB_SERVE_MCP_MCP_H
#define PRB_SERVE_MCP_MCP_H

#include <jansson.h>
#include <limits.h>

#include "serve/work/targets.h"

#define PRB_MCP_NEWEST "2026-07-28"
#define PRB_MCP_RESULT_MAX 20000 /* characters of a result, as text and as structure each */

/* Who asks, and what he may. */
struct prb_mcp {
    struct prb_log_file *log;          /* of what acts; NULL only where nothing may */
    const char *who;                   /* for the log */
    const struct prb_serve *serve;     /* with what it has seen; NULL on standard input */
    struct prb_serve_targets *targets; /* shared with all who ask this server */
    const char *program;               /* of the command line */
    bool eval, unasked;                /* run code; without asking the user each time */
    bool (*goes_on)(void *context);
    void *context;
    double until;        /* s, monotonic: the deadline */
    const char *settled; /* the version that `initialize` asked for on this connection, or "" */
    /* Of HTTP: what stood in its headers, "" when absent; NULL: no such headers. */
    const char *version, *method, *name;
};

/* The answer to a message, a new reference; NULL: it needs none (a notification).  *status: of
 * HTTP. */
json_t *prb_mcp_answer(const struct prb_mcp *mcp, const char *text, size_t len, int *status);
/* Serve standard input to its end.  The exit status. */
int prb_mcp_stdio(unsigned grants, bool unasked, const char *const *files);

/* ---- tools ---- */

struct prb_mcp_call {
    const struct prb_mcp *mcp;
    const json_t *arguments; /* an object that fits the tool's schema */
    json_t *result;          /* an object, made before */
};
struct prb_mcp_tool {
    const char *name, *title, *description;
    const char *input, *output; /* JSON schemas */
    bool acts;                  /* needs eval; the others only read */
    bool (*call)(struct prb_mcp_call *call, struct prb_error *err);
};
extern const struct prb_mcp_tool *const prb_mcp_tools[]; /* ends with NULL */
extern const struct prb_mcp_tool prb_mcp_processes, prb_mcp_diagnose, prb_mcp_stacks, prb_mcp_query,
    prb_mcp_schema, prb_mcp_profile, prb_mcp_eval;

/* The tools/list entry. */
json_t *prb_mcp_tool_json(const struct prb_mcp_tool *tool);
/* Its arguments fit its schema: keys, types, bounds.  USAGE. */
bool prb_mcp_check(const struct prb_mcp_tool *tool, const json_t *arguments, struct prb_error *err);
/* Make a result at most PRB_MCP_RESULT_MAX characters: rows go first, then long texts are cut. */
void prb_mcp_fit(json_t *result);
/* The same as text for people; the caller frees it. */
char *prb_mcp_text(const json_t *result, const char *about);

/* ---- what tools share (call.c) ---- */

#define PRB_MCP_TARGET                                                                             \
    "\"target\":{\"type\":\"string\",\"maxLength\":200,\"description\":\"a pid, the id that "      \
    "processes gave, a part of a command line, file:NAME, or @JOB[:RANKS] for ranks of a job\"}"

/* NULL: the call has none of that name. */
const char *prb_mcp_text_argument(const struct prb_mcp_call *call, const char *key);
json_int_t prb_mcp_number(const struct prb_mcp_call *call, const char *key, json_int_t otherwise);
/* Into the result; takes value. */
void prb_mcp_put(const struct prb_mcp_call *call, const char *key, json_t *value);

/* The target that a call means; wanted points into text, so it is not copied. */
struct prb_mcp_name {
    char text[256];
    struct prb_serve_wanted wanted;
};
/* Nothing is looked up but a part of a command line.  NOT_FOUND, BUSY. */
bool prb_mcp_target(const struct prb_mcp_call *call, struct prb_mcp_name *out,
                    struct prb_error *err);
/* The same as prb_target_open and the command line take it, which the result tells, too. */
bool prb_mcp_spec(const struct prb_mcp_call *call, char spec[PATH_MAX], struct prb_error *err);

/* Open, and shared with who else asks.  slow: what a statement may take holds up no look. */
struct prb_serve_target *prb_mcp_hold(struct prb_mcp_call *call, bool slow, struct prb_error *err);

/* What the command line printed, and what it said on standard error. */
struct prb_mcp_printed {
    const struct prb_mcp *mcp;
    struct prb_buf text, said;
};
void prb_mcp_printed_deinit(struct prb_mcp_printed *printed);
PRB_DEFINE_AUTO(prb_mcp_printed, struct prb_mcp_printed, prb_mcp_printed_deinit)
/* Run it with these words, which end with NULL, as long as the answer is wanted.  *status: as
 * prb_command_run has it. */
bool prb_mcp_command(const struct prb_mcp *mcp, const char *const *words,
                     struct prb_mcp_printed *out, int *status, struct prb_error *err);

/* ---- what a profile is told as (hottest.c) ---- */

json_t *prb_mcp_hottest_begin(void);
/* Add a stack, "outer;inner COUNT", which is changed, to functions by name and to paths.  Its count. */
json_int_t prb_mcp_hottest_add(json_t *hottest, char *line);
/* "samples", "hottest", "paths" of the result; releases it. */
void prb_mcp_hottest_tell(struct prb_mcp_call *call, json_t *hottest, json_int_t all);
/* (profile.c)  "link": the page of the server that answers, with the target's profile; null on standard input. */
void prb_mcp_link(struct prb_mcp_call *call);

/* ---- of a job of several ranks: target "@JOB:RANKS" (jobs.c) ---- */

bool prb_mcp_is_job(const struct prb_mcp_call *call);
/* These fill the result as the tools of one process do, and "coverage". */
bool prb_mcp_job_stacks(struct prb_mcp_call *call, size_t limit, struct prb_error *err);
bool prb_mcp_job_query(struct prb_mcp_call *call, const char *sql, size_t limit,
                       struct prb_error *err);
bool prb_mcp_job_diagnose(struct prb_mcp_call *call, struct prb_error *err);
bool prb_mcp_job_profile(struct prb_mcp_call *call, const char *seconds, const char *mode,
                         bool native, struct prb_error *err);
/* "jobs" of the result. */
void prb_mcp_add_jobs(struct prb_mcp_call *call);

#endif
