/*
 * A route is one file in routes/: a constant descriptor and the function that answers.
 *
 * To add one: routes/NAME.c with `const struct prb_route prb_route_NAME`, the file in SERVE_ROUTES
 * (local.mk), a case in tests/serve/test_routes.py, and what is new among its parameters and keys in
 * fields.c.
 */
#ifndef PRB_SERVE_ROUTE_H
#define PRB_SERVE_ROUTE_H

#include <jansson.h>

#include "serve/serve.h"

enum prb_method { PRB_GET = 1, PRB_POST = 2, PRB_PUT = 4, PRB_DELETE = 8 };

#define PRB_QUERY_MAX 16

struct prb_serve_job;

/* One question.  Strings belong to it. */
struct prb_question {
    enum prb_method method;
    char *path; /* decoded; without the query */
    struct prb_parameter {
        char *name, *value;
    } query[PRB_QUERY_MAX];
    size_t query_count;
    char *accept;       /* the header, or NULL */
    char *content_type; /* of the body, or NULL */
    char known[64];     /* If-None-Match, or "" */
    bool takes_gzip;
    struct prb_buf body;
    unsigned grants; /* of who asks */
    char who[80];
    char token_name[24]; /* of the token that it showed, for the log; "": none */
    bool local;          /* by the Unix socket, of the user himself and not of a proxy */
    bool proxied;
    bool foreign;     /* its Origin is not its Host */
    char mcp[3][128]; /* MCP-Protocol-Version, Mcp-Method, Mcp-Name; "": absent */
};
void prb_question_deinit(struct prb_question *question);
/* The value of a parameter, or NULL; "" for one without '='. */
const char *prb_question_value(const struct prb_question *question, const char *name);
/* A switch: "1", "true", "" (there at all); USAGE: anything else but "0" and "false". */
bool prb_question_flag(const struct prb_question *question, const char *name, bool *out,
                       struct prb_error *err);
/* The body of a question: a JSON object with the keys that its route has (fields.h).  The caller
 * releases it.  USAGE: names the key. */
json_t *prb_question_object(const struct prb_serve_job *job, struct prb_error *err);
/* A number from least to most, left as it is without the parameter; "5s", "2m", "1h" are seconds, too. */
bool prb_question_number(const struct prb_question *question, const char *name, double least,
                         double most, double *out, struct prb_error *err);
/* The address in the path's last part, "0x7f…" or decimal. */
bool prb_question_address(const struct prb_serve_job *job, prb_addr *out, struct prb_error *err);

struct prb_answer {
    int status; /* of HTTP; 0: 200 */
    const char *type;
    struct prb_buf body;
    bool truncated;       /* a bound cut it */
    char etag[24];        /* quoted, or "" */
    char next[64];        /* where the next question goes on, or "" */
    const char *encoding; /* of the body: "gzip"; NULL: as it is */
    const char *caching;  /* Cache-Control; NULL: no-store */
    char allow[40];       /* of 405: the methods that there are */
    const char *policy;   /* Content-Security-Policy; NULL: nothing at all */
};
void prb_answer_deinit(struct prb_answer *answer);
/* The body is this value; takes the reference, also NULL (out of memory). */
bool prb_answer_json(struct prb_answer *answer, json_t *value, struct prb_error *err);
/* The body is an error as routes give it: code, message, remedy, retryable. */
void prb_answer_error(struct prb_answer *answer, const struct prb_error *err);
/* Send it packed, when it is text, large, and who asks takes it so. */
void prb_answer_compress(const struct prb_question *question, struct prb_answer *answer);
/* Who knows its entity tag already gets 304 and no body. */
void prb_answer_spare(const struct prb_question *question, struct prb_answer *answer);
/* The status for an error. */
int prb_http_status(enum prb_code code);

struct prb_serve_targets;

/* One question being answered, by a worker. */
struct prb_serve_job {
    const struct prb_serve *serve;
    struct prb_serve_targets *targets;
    const struct prb_question *question;
    const struct prb_route *route;
    const char *format; /* of route->formats */
    char part[3][256];  /* what stood for each {} of the path */
    struct prb_answer *answer;
    double asked, until; /* s, monotonic: when it came, the deadline */
    atomic_bool *gone;   /* the client has left, or the server ends */
    int wake_fd;         /* can be read from then on */
    char did[201];       /* what changed something, for the log: the code, a setting */
};
/* Whether the answer is still wanted. */
bool prb_serve_job_goes_on(void *job);

struct prb_route {
    unsigned methods;
    const char *path;       /* "/api/v1/p/{}/stacks" */
    const char *summary;    /* one line */
    unsigned grant;         /* what it needs */
    const char *formats;    /* "json csv": what ?format= may be, the first by default */
    const char *parameters; /* "native locals"; others are refused */
    const char *body;       /* "code! thread": keys of a JSON body (fields.h), "!": needed */
    bool slow;              /* may take long by its nature: it holds up no quick one */
    bool upstream;          /* of upstream/: its shapes are not ours, and not in openapi.json */
    double seconds;         /* its deadline; ?timeout= may ask for another, up to 300 */
    bool (*answer)(struct prb_serve_job *job, struct prb_error *err);
};

#define ROUTE(name) extern const struct prb_route prb_route_##name;
#include "serve/routes.inc"
#undef ROUTE
extern const struct prb_route *const prb_routes[]; /* ends with NULL */

/* Find the route of job->question and fill route, format, part.  NOT_FOUND; status says 404, 405 or
 * 406 where the code alone does not. */
bool prb_route_find(struct prb_serve_job *job, int *status, struct prb_error *err);

#endif
