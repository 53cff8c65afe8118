/* Standard input and output: a message a line.  Requests run one at a time; one that is cancelled
 * meanwhile ends, and gets no answer. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "format/log_file.h"
#include "serve/doors/doors.h"
#include "serve/mcp/mcp.h"
#include "serve/text/command.h"

#define LINE_MAX_ (4u << 20) /* bytes of a message */
#define LONGEST 120.0        /* s for a request, as over HTTP */
#define SWEEP_MS 60000

struct input {
    struct prb_buf text; /* read, and not taken */
    bool ended;
    json_t *running; /* the id of the request that runs, or NULL */
    bool cancelled;
};

/* The first whole line of the text, from at on; NULL: there is none yet. */
static const char *line_end(const struct prb_buf *text, size_t at)
{
    return text->len > at ? memchr(text->data + at, '\n', text->len - at) : NULL;
}

static void drop(struct prb_buf *text, size_t from, size_t count)
{
    memmove(text->data + from, text->data + from + count, text->len - from - count);
    text->len -= count;
}

/* Wait for more; milliseconds -1: until it comes. */
static void read_more(struct input *input, int milliseconds)
{
    struct pollfd polled = {STDIN_FILENO, POLLIN, 0};
    if (input->ended || poll(&polled, 1, milliseconds) <= 0)
        return;
    if (input->text.len > LINE_MAX_ || prb_buf_read_some(&input->text, STDIN_FILENO, 65536) <= 0)
        input->ended = true;
}

static bool cancels(const char *line, size_t len, const json_t *id)
{
    json_auto_t *message = json_loadb(line, len, 0, NULL);
    const char *method = json_string_value(json_object_get(message, "method"));
    const json_t *meant = json_object_get(json_object_get(message, "params"), "requestId");
    return method && strcmp(method, "notifications/cancelled") == 0 && json_equal(meant, id);
}

/* Asked while a request runs: lines that came meanwhile stay, but one that cancels it is taken. */
static bool goes_on(void *context)
{
    struct input *input = context;
    if (input->cancelled)
        return false;
    if (!line_end(&input->text, 0) || input->text.len < LINE_MAX_ / 2)
        read_more(input, 0);
    for (size_t at = 0; !input->cancelled;) {
        const char *end = line_end(&input->text, at);
        if (!end)
            break;
        size_t len = (size_t)(end - input->text.data) - at;
        if (cancels(input->text.data + at, len, input->running)) {
            input->cancelled = true;
            drop(&input->text, at, len + 1);
        } else {
            at += len + 1;
        }
    }
    return !input->cancelled;
}

static bool answer_line(struct prb_mcp *mcp, struct input *input, const char *line, size_t len)
{
    int status;
    json_auto_t *message = json_loadb(line, len, 0, NULL);
    input->running = json_object_get(message, "id");
    input->cancelled = false;
    json_auto_t *answer = prb_mcp_answer(mcp, line, len, &status);
    bool said = !answer || input->cancelled;
    input->running = NULL;
    if (said)
        return true;
    return json_dumpf(answer, stdout, JSON_COMPACT) == 0 && putchar('\n') != EOF &&
           fflush(stdout) == 0;
}

/* What `initialize` settled counts for the connection: the older clients' results need it. */
static void note_version(const char *line, size_t len, char out[16])
{
    json_auto_t *message = json_loadb(line, len, 0, NULL);
    const char *method = json_string_value(json_object_get(message, "method"));
    const char *version =
        json_string_value(json_object_get(json_object_get(message, "params"), "protocolVersion"));
    if (method && strcmp(method, "initialize") == 0 && version)
        snprintf(out, 16, "%s", version);
}

/* serve.log, where code may be run: it is not run unseen. */
static struct prb_log_file *open_log(struct prb_error *err)
{
    char folder[96];
    return prb_serve_folder(folder, sizeof folder, err)
               ? prb_log_file_open(folder, "serve.log", err)
               : NULL;
}

int prb_mcp_stdio(unsigned grants, bool unasked, const char *const *files)
{
    char program[4096], version[16] = "", who[40];
    bool eval = grants & PRB_MAY_EVAL;
    struct input input = {0};
    struct prb_error err = {0};
    PRB_AUTO(prb_log_file) struct prb_log_file *log = eval ? open_log(&err) : NULL;
    PRB_AUTO(prb_serve_targets) struct prb_serve_targets *targets = prb_serve_targets_new(files);
    if (!prb_command_program(program, sizeof program, &err) || (eval && !log) ||
        (!targets && !prb_nomem(&err))) {
        fprintf(stderr, "probing: %s\n", err.text);
        return prb_code_exit(err.code);
    }
    snprintf(who, sizeof who, "probing mcp of process %d", (int)getppid());
    struct prb_mcp mcp = {.log = log,
                          .who = who,
                          .targets = targets,
                          .program = program,
                          .eval = eval,
                          .unasked = unasked,
                          .goes_on = goes_on,
                          .context = &input,
                          .settled = version};
    bool ok = true;
    while (ok) {
        const char *end = line_end(&input.text, 0);
        if (!end && input.ended)
            break;
        if (!end) {
            read_more(&input, SWEEP_MS);
            prb_serve_targets_sweep(targets);
            continue;
        }
        size_t len = (size_t)(end - input.text.data);
        PRB_AUTO_FREE char *line = strndup(input.text.data, len);
        drop(&input.text, 0, len + 1);
        if (line && len && line[len - 1] == '\r')
            len--;
        if (!line || !line[strspn(line, " \t\r")])
            continue;
        note_version(line, len, version);
        mcp.until = prb_clock_s() + LONGEST;
        ok = answer_line(&mcp, &input, line, len);
    }
    prb_buf_deinit(&input.text);
    return ok ? 0 : prb_code_exit(PRB_IO);
}
