/* What tools share: the arguments of a call, its target, its result. */
#include <limits.h>
#include <string.h>

#include "serve/doors/life.h"
#include "serve/mcp/mcp.h"
#include "serve/text/command.h"

#define PRINTED_MAX (16u << 20)

const char *prb_mcp_text_argument(const struct prb_mcp_call *call, const char *key)
{
    return json_string_value(json_object_get(call->arguments, key));
}

json_int_t prb_mcp_number(const struct prb_mcp_call *call, const char *key, json_int_t otherwise)
{
    const json_t *value = json_object_get(call->arguments, key);
    return value ? (json_int_t)json_number_value(value) : otherwise;
}

void prb_mcp_put(const struct prb_mcp_call *call, const char *key, json_t *value)
{
    json_object_set_new(call->result, key, value);
}

bool prb_mcp_target(const struct prb_mcp_call *call, struct prb_mcp_name *out,
                    struct prb_error *err)
{
    const struct prb_mcp *mcp = call->mcp;
    const char *wanted = prb_mcp_text_argument(call, "target");
    char note[PRB_NOTE_MAX];
    bool named = strncmp(wanted, "file:", 5) != 0 && wanted[strspn(wanted, "0123456789.")];
    pid_t pid = named ? prb_process_by_name(wanted, note, err) : 0;
    if (named && !pid)
        return false;
    if (named)
        snprintf(out->text, sizeof out->text, "%d", (int)pid);
    else
        snprintf(out->text, sizeof out->text, "%s", wanted);
    out->wanted = (struct prb_serve_wanted){
        .serve = mcp->serve, .targets = mcp->targets, .name = out->text, .until = mcp->until};
    return true;
}

/* What `processes` gives as id. */
static void tell_target(const struct prb_mcp_call *call, pid_t pid)
{
    prb_mcp_put(call, "target",
                json_sprintf("%d.%llu", (int)pid, (unsigned long long)prb_serve_started(pid)));
}

/* What the model can do instead. */
static bool not_found(const struct prb_mcp_name *name, struct prb_error *err)
{
    if (err->code == PRB_NOT_FOUND && !err->remedy[0])
        prb_error_remedy(err, strncmp(name->text, "file:", 5) == 0
                                  ? "files are named when the server is started, or are crash dumps"
                                  : "the tool `processes` lists them");
    return false;
}

bool prb_mcp_spec(const struct prb_mcp_call *call, char spec[PATH_MAX], struct prb_error *err)
{
    struct prb_mcp_name name;
    if (!prb_mcp_target(call, &name, err))
        return false;
    if (!prb_serve_target_spec(&name.wanted, spec, err))
        return not_found(&name, err);
    if (strncmp(name.text, "file:", 5) != 0)
        tell_target(call, (pid_t)strtol(spec, NULL, 10));
    return true;
}

/* Shared with who else asks.  slow: what a statement may take holds up no look. */
struct prb_serve_target *prb_mcp_hold(struct prb_mcp_call *call, bool slow, struct prb_error *err)
{
    struct prb_mcp_name name;
    if (!prb_mcp_target(call, &name, err))
        return NULL;
    name.wanted.slow = slow;
    struct prb_serve_target *held = prb_serve_target_hold_wanted(&name.wanted, err);
    if (!held)
        return PRB_NULL(not_found(&name, err));
    const struct prb_target_info *info = prb_target_info(prb_serve_target_open(held));
    if (info->kind == PRB_TARGET_PROCESS)
        tell_target(call, info->pid);
    return held;
}

/* ---- the command line ---- */

static bool take_piece(void *context, bool error, const char *bytes, size_t count)
{
    struct prb_mcp_printed *printed = context;
    struct prb_buf *out = error ? &printed->said : &printed->text;
    if (out->len + count > PRINTED_MAX)
        return error;
    prb_buf_add(out, bytes, count);
    return prb_buf_ok(out);
}

static bool goes_on(void *context)
{
    const struct prb_mcp *mcp = ((struct prb_mcp_printed *)context)->mcp;
    return !mcp->goes_on || mcp->goes_on(mcp->context);
}

bool prb_mcp_command(const struct prb_mcp *mcp, const char *const *words,
                     struct prb_mcp_printed *out, int *status, struct prb_error *err)
{
    out->mcp = mcp;
    const struct prb_command_run run = {mcp->program, words, goes_on, take_piece, out};
    return prb_command_run(&run, status, err);
}

void prb_mcp_printed_deinit(struct prb_mcp_printed *printed)
{
    prb_buf_deinit(&printed->text);
    prb_buf_deinit(&printed->said);
}
