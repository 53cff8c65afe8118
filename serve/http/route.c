/* From a question to its route: path, method, format, parameters. */
#include "serve/http/route.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "serve/http/words.h"

const struct prb_route *const prb_routes[] = {
#define ROUTE(name) &prb_route_##name,
#include "serve/routes.inc"
#undef ROUTE
    NULL,
};

/* ---- question ---- */

void prb_question_deinit(struct prb_question *question)
{
    free(question->path);
    for (size_t i = 0; i < question->query_count; i++) {
        free(question->query[i].name);
        free(question->query[i].value);
    }
    free(question->accept);
    free(question->content_type);
    prb_buf_deinit(&question->body);
    *question = (struct prb_question){0};
}

const char *prb_question_value(const struct prb_question *question, const char *name)
{
    for (size_t i = 0; i < question->query_count; i++)
        if (strcmp(question->query[i].name, name) == 0)
            return question->query[i].value;
    return NULL;
}

bool prb_question_flag(const struct prb_question *question, const char *name, bool *out,
                       struct prb_error *err)
{
    const char *value = prb_question_value(question, name);
    *out = value && strcmp(value, "0") != 0 && strcmp(value, "false") != 0;
    return !*out || !*value || strcmp(value, "1") == 0 || strcmp(value, "true") == 0 ||
           prb_fail(err, PRB_USAGE, "%s is 0 or 1, not \"%.40s\"", name, value);
}

bool prb_question_number(const struct prb_question *question, const char *name, double least,
                         double most, double *out, struct prb_error *err)
{
    const char *value = prb_question_value(question, name);
    char *end;
    if (!value)
        return true;
    errno = 0;
    double number = strtod(value, &end);
    double unit = strcmp(end, "m") == 0 ? 60 : strcmp(end, "h") == 0 ? 3600 : 1;
    bool whole = end != value && (!*end || !strcmp(end, "s") || unit != 1);
    number *= unit;
    if (!whole || errno || !isfinite(number) || number < least || number > most)
        return prb_fail(err, PRB_USAGE, "%s is a number from %g to %g, not \"%.40s\"", name, least,
                        most, value);
    *out = number;
    return true;
}

bool prb_question_address(const struct prb_serve_job *job, prb_addr *out, struct prb_error *err)
{
    const char *text = job->part[1];
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 0);
    return (*text >= '0' && *text <= '9' && !*end && !errno) ||
           prb_fail(err, PRB_NOT_FOUND, "\"%.40s\" is no address: 0x7f…", text);
}

/* ---- finding ---- */

/* A job's name may have slashes, which arrive as such, however they were written.  What stands for a
 * {} at the end has none. */
static bool fits_job(const char *form, const char *path, char part[3][256])
{
    static const char before[] = "/api/v1/jobs/", mark[] = "{}";
    size_t len = sizeof before - 1, path_len = strlen(path), rest_len;
    if (strncmp(form, before, len) != 0 || strncmp(form + len, mark, sizeof mark - 1) != 0 ||
        strncmp(path, before, len) != 0)
        return false;
    const char *rest = form + len + sizeof mark - 1;
    rest_len = strlen(rest);
    if (rest_len >= 2 && strcmp(rest + rest_len - 2, mark) == 0) {
        const char *last = strrchr(path, '/') + 1;
        if (!*last || strlen(last) >= sizeof part[1])
            return false;
        snprintf(part[1], sizeof part[1], "%s", last);
        path_len -= strlen(last);
        rest_len -= 2;
    }
    size_t others = len + rest_len;
    if (path_len <= others || path_len - others >= sizeof part[0] ||
        strncmp(path + path_len - rest_len, rest, rest_len) != 0)
        return false;
    snprintf(part[0], sizeof part[0], "%.*s", (int)(path_len - others), path + len);
    return true;
}

/* Whether a path is of this form; what stands for each {} goes to part. */
static bool fits(const char *form, const char *path, char part[3][256])
{
    size_t count = 0;
    for (; *form; form++) {
        if (*form != '{') {
            if (*form != *path++)
                return false;
            continue;
        }
        size_t len = strcspn(path, "/");
        if (!len || len >= 256 || count == 3)
            return false;
        memcpy(part[count], path, len);
        part[count++][len] = '\0';
        path += len;
        form++; /* '}' */
    }
    return !*path;
}

/* A format by its name, when formats has it; static. */
static const char *format_named(const char *formats, const char *name)
{
    static const char *const names[] = {
        "json",      "jsonl", "csv",      "text",   "pyspy",   "speedscope", "flamegraph",
        "collapsed", "pprof", "perfetto", "chrome", "firefox", "heatmap",    "snapshot"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0 && prb_has_word(formats, name))
            return names[i];
    return NULL;
}

static const char *accepted(const char *formats, const char *accept)
{
    static const struct {
        const char *type, *format;
    } types[] = {{"application/json", "json"},
                 {"application/jsonl", "jsonl"},
                 {"application/x-ndjson", "jsonl"},
                 {"text/csv", "csv"},
                 {"text/plain", "text"}};
    for (const char *at = accept; at && *at;) {
        at += strspn(at, " ,");
        size_t len = strcspn(at, ",; ");
        for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
            const char *format = types[i].format;
            if (strlen(types[i].type) == len && strncmp(at, types[i].type, len) == 0 &&
                prb_has_word(formats, format))
                return format_named(formats, format);
        }
        at += strcspn(at, ",");
    }
    return NULL;
}

static bool takes_any(const char *accept)
{
    return !accept || strstr(accept, "*/*") || strstr(accept, "application/*");
}

static bool choose_format(struct prb_serve_job *job, int *status, struct prb_error *err)
{
    const char *formats = job->route->formats,
               *wanted = prb_question_value(job->question, "format");
    char first[16];
    snprintf(first, sizeof first, "%.*s", (int)strcspn(formats, " "), formats);
    if (wanted) {
        job->format = format_named(formats, wanted);
    } else {
        job->format = accepted(formats, job->question->accept);
        if (!job->format && takes_any(job->question->accept))
            job->format = format_named(formats, first);
    }
    if (job->format)
        return true;
    *status = 406;
    return prb_fail(err, PRB_UNSUPPORTED, "the formats are: %s", formats);
}

static bool check_parameters(const struct prb_serve_job *job, struct prb_error *err)
{
    for (size_t i = 0; i < job->question->query_count; i++) {
        const char *name = job->question->query[i].name;
        if (prb_has_word("format timeout", name) || prb_has_word(job->route->parameters, name))
            continue;
        prb_fail(err, PRB_USAGE, "there is no parameter \"%.40s\" here", name);
        return prb_error_remedy(err, "parameters: format timeout %s",
                                job->route->parameters ? job->route->parameters : "");
    }
    return true;
}

/* RFC 9110 section 10.2.1. */
static void tell_methods(unsigned methods, char out[40])
{
    static const char *const names[] = {"GET, HEAD", "POST", "PUT", "DELETE"};
    size_t len = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (methods & 1u << i)
            len += (size_t)snprintf(out + len, 40 - len, "%s%s", len ? ", " : "", names[i]);
}

/* Paths of the other project that have a route of ours instead (upstream/upstream.h). */
static bool nothing_there(const char *path, struct prb_error *err)
{
    static const struct {
        const char *begin, *instead;
    } others[] = {
        {"/apis/files", "files are read where they are; /api/v1/p/{t}/source has a frame's"},
        {"/apis/nodes", "ranks are found by themselves: GET /apis/nodes, /api/v1/processes"},
        {"/apis/pythonext/engines", "/metrics has what this server measures"},
        {"/apis/pythonext/trace", "what is recorded is SQL: POST /api/v1/p/{t}/query, and "
                                  "PUT /api/v1/p/{t}/config/probing.torch.exprs watches variables"},
        {"/apis/pythonext/pytorch", "SELECT * FROM python.torch_trace by POST "
                                    "/api/v1/p/{t}/query; GET /api/v1/p/{t}/profile"},
        {"/apis/pythonext/crash", "GET /api/v1/crashes, PUT /api/v1/p/{t}/crash"},
        {"/apis/pythonext/skills", "GET /api/v1/skills, POST /api/v1/p/{t}/skills/NAME"},
        {"/apis/torchextension", "SELECT * FROM python.torch_trace by POST /api/v1/p/{t}/query"},
        {"/apis/cluster", "POST /api/v1/p/{t}/query, of each rank"},
        {"/apis/", "GET /api/v1/openapi.json has the routes"},
        {"/ws", "the console is the WebSocket /api/v1/live; POST /api/v1/p/{t}/eval runs code"},
    };
    prb_fail(err, PRB_NOT_FOUND, "there is nothing at %.200s", path);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strncmp(path, others[i].begin, strlen(others[i].begin)) == 0)
            return prb_error_remedy(err, "%s", others[i].instead);
    return false;
}

/* What is there: methods, and the route of the question's. */
static unsigned find(struct prb_serve_job *job)
{
    const struct prb_question *question = job->question;
    unsigned methods = 0;
    for (size_t i = 0; prb_routes[i] && !job->route; i++) {
        if (!fits(prb_routes[i]->path, question->path, job->part))
            continue;
        methods |= prb_routes[i]->methods;
        if (prb_routes[i]->methods & question->method)
            job->route = prb_routes[i];
    }
    if (methods)
        return methods;
    size_t longest = 0;
    for (size_t i = 0; prb_routes[i]; i++) { /* the one whose end is not taken for a name's */
        const struct prb_route *route = prb_routes[i];
        char part[3][256] = {{0}};
        if (strlen(route->path) <= longest || !fits_job(route->path, question->path, part))
            continue;
        longest = strlen(route->path);
        methods = route->methods;
        job->route = methods & question->method ? route : NULL;
        memcpy(job->part, part, sizeof part);
    }
    return methods;
}

bool prb_route_find(struct prb_serve_job *job, int *status, struct prb_error *err)
{
    const struct prb_question *question = job->question;
    double seconds = 0;
    unsigned methods = find(job);
    if (!job->route) {
        *status = methods ? 405 : 404;
        tell_methods(methods, job->answer->allow);
        return methods ? prb_fail(err, PRB_UNSUPPORTED, "not by this method")
                       : nothing_there(question->path, err);
    }
    if (!choose_format(job, status, err) || !check_parameters(job, err))
        return false;
    seconds = job->route->seconds;
    if (!prb_question_number(question, "timeout", 0.001, 300, &seconds, err))
        return false;
    job->asked = prb_clock_s();
    job->until = job->asked + seconds;
    return true;
}

bool prb_serve_job_goes_on(void *context)
{
    struct prb_serve_job *job = context;
    return !atomic_load(job->gone) && prb_clock_s() < job->until;
}
