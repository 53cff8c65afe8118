/* The read-only back end as a whole: the methods that it has; attach, pause and continue. */
#include "dap/backend/readonly/readonly.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- attach, pause, continue ---- */

/* Why a core is stopped, and in which thread: by the signal that ended it, or by what a crash dump
 * was written for. */
static json_t *stopped_body(struct prb_dap_readonly *readonly, const struct prb_stacks *stacks)
{
    const struct prb_target_info *info = prb_target_info(readonly->target);
    const struct prb_crash *crash = info->signal ? NULL : prb_target_crash(readonly->target);
    json_int_t thread = crash ? crash->tid : info->signalled;
    char text[400];
    size_t index;
    if (!prb_dap_readonly_thread_of(stacks, thread, &index))
        thread = stacks->thread_count ? prb_dap_readonly_thread_id(stacks, 0) : 0;
    if (info->signal)
        snprintf(text, sizeof text, "ended by signal %d (%s)", info->signal,
                 strsignal(info->signal));
    else if (crash)
        snprintf(text, sizeof text, "%s", crash->title ? crash->title : "a crash");
    else
        snprintf(text, sizeof text, "%s of process %d",
                 info->kind == PRB_TARGET_SNAPSHOT ? "a snapshot" : "a core", (int)info->pid);
    return json_pack("{s:s, s:o, s:o, s:I, s:b}", "reason",
                     info->signal || crash ? "exception" : "pause", "description",
                     prb_dap_text(text), "text", prb_dap_text(text), "threadId", thread,
                     "allThreadsStopped", 1);
}

static json_t *attach(struct prb_dap_readonly *readonly, const json_t *arguments,
                      struct prb_error *err)
{
    const struct prb_target_info *info = prb_target_info(readonly->target);
    readonly->still = readonly->live && json_is_true(json_object_get(arguments, "still"));
    json_t *body = json_pack("{s:o, s:s, s:[], s:[]}", "python", prb_dap_text(info->python),
                             "mechanism", readonly->base.ops->name, "features", "path");
    if (readonly->live || !body)
        return body;
    const struct prb_stacks *stacks = prb_dap_readonly_view(readonly, err);
    if (!stacks) {
        json_decref(body);
        return NULL;
    }
    json_object_set_new(body, "stopped", stopped_body(readonly, stacks));
    return body;
}

static json_t *take_pause(struct prb_dap_readonly *readonly, const json_t *arguments,
                          struct prb_error *err)
{
    size_t index;
    if (!readonly->live)
        return PRB_NULL(
            prb_fail(err, PRB_UNSUPPORTED, "a %s does not run", readonly->base.ops->name));
    if (!prb_dap_readonly_take(readonly, err))
        return NULL;
    json_int_t thread = prb_dap_readonly_integer(arguments, "threadId", 0);
    if (!prb_dap_readonly_thread_of(readonly->view, thread, &index))
        thread = readonly->view->thread_count ? prb_dap_readonly_thread_id(readonly->view, 0) : 0;
    char text[160] = "read at this moment; the process runs on";
    if (readonly->still)
        snprintf(
            text, sizeof text,
            "copied while the threads were stopped for %.1f ms; what you unfold is read when you "
            "unfold it; the process runs on",
            readonly->view->longest_stop * 1e3);
    PRB_AUTO(json)
    json_t *body = json_pack("{s:s, s:s, s:I, s:b}", "reason", "pause", "description", text,
                             "threadId", thread, "allThreadsStopped", 1);
    if (body && readonly->base.event)
        readonly->base.event(readonly->base.context, "stopped", body);
    return json_object();
}

static json_t *go_on(struct prb_dap_readonly *readonly, const json_t *arguments,
                     struct prb_error *err)
{
    (void)arguments;
    if (!readonly->live)
        return PRB_NULL(
            prb_fail(err, PRB_UNSUPPORTED, "a %s does not run", readonly->base.ops->name));
    prb_dap_readonly_drop(readonly);
    return json_pack("{s:b}", "allThreadsContinued", 1);
}

/* ---- the back end ---- */

static const struct {
    const char *name;
    prb_dap_readonly_method *run;
    bool live_only;
} methods[] = {
    {"attach", attach, false},
    {"threads", prb_dap_readonly_threads, false},
    {"stack", prb_dap_readonly_stack, false},
    {"scopes", prb_dap_readonly_scopes, false},
    {"variables", prb_dap_readonly_variables, false},
    {"evaluate", prb_dap_readonly_evaluate, false},
    {"exception_info", prb_dap_readonly_exception_info, false},
    {"source", prb_dap_readonly_source, false},
    {"modules", prb_dap_readonly_modules, false},
    {"loaded_sources", prb_dap_readonly_loaded_sources, false},
    {"pause", take_pause, true},
    {"continue", go_on, true},
};

static prb_dap_readonly_method *method(const struct prb_dap_readonly *readonly, const char *name)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (strcmp(methods[i].name, name) == 0 && (readonly->live || !methods[i].live_only))
            return methods[i].run;
    return NULL;
}

static bool readonly_has(const struct prb_dap_backend *backend, const char *name)
{
    return method((const struct prb_dap_readonly *)backend, name) != NULL;
}

/* A target that has started a program with other rights is not read with our rights any more. */
static bool is_as_before(const struct prb_dap_readonly *readonly, struct prb_error *err)
{
    struct prb_ids now;
    if (!readonly->live || !readonly->guarded)
        return true;
    if (prb_ids_of(prb_target_info(readonly->target)->pid, &now) &&
        memcmp(now.users, readonly->ids.users, sizeof now.users) == 0 &&
        memcmp(now.groups, readonly->ids.groups, sizeof now.groups) == 0 &&
        !(now.permitted & ~readonly->ids.permitted))
        return true;
    return prb_fail(err, PRB_PERMISSION,
                    "the process has other rights than when you attached to it");
}

static json_t *readonly_call(struct prb_dap_backend *backend, const struct prb_dap_call *call,
                             struct prb_error *err)
{
    struct prb_dap_readonly *readonly = (struct prb_dap_readonly *)backend;
    prb_dap_readonly_method *run = method(readonly, call->method);
    if (!run)
        return PRB_NULL(
            prb_fail(err, PRB_UNSUPPORTED, "%s needs the probe in a live process", call->method));
    PRB_AUTO(json) json_t *none = call->arguments ? NULL : json_object();
    pthread_mutex_lock(&readonly->lock);
    PRB_AUTO(json)
    json_t *result =
        is_as_before(readonly, err) ? run(readonly, none ? none : call->arguments, err) : NULL;
    bool good = result && is_as_before(readonly, err);
    pthread_mutex_unlock(&readonly->lock);
    return good ? PRB_STEAL(result) : NULL;
}

static void readonly_close(struct prb_dap_backend *backend)
{
    struct prb_dap_readonly *readonly = (struct prb_dap_readonly *)backend;
    prb_dap_readonly_drop(readonly);
    free(readonly->handles);
    prb_target_close(readonly->target);
    pthread_mutex_destroy(&readonly->lock);
    free(readonly);
}

static const struct prb_dap_backend_ops readonly_ops[] = {
    [PRB_TARGET_PROCESS] = {"look", readonly_has, readonly_call, readonly_close},
    [PRB_TARGET_CORE] = {"core", readonly_has, readonly_call, readonly_close},
    [PRB_TARGET_SNAPSHOT] = {"snapshot", readonly_has, readonly_call, readonly_close},
    [PRB_TARGET_CALLBACK] = {"look", readonly_has, readonly_call, readonly_close},
};

struct prb_dap_backend *prb_dap_readonly_open(struct prb_target *target, struct prb_error *err)
{
    struct prb_dap_readonly *readonly = calloc(1, sizeof *readonly);
    if (!readonly) {
        prb_target_close(target);
        return PRB_NULL(prb_fail(err, PRB_NOMEM, "out of memory"));
    }
    enum prb_target_kind kind = prb_target_info(target)->kind;
    pthread_mutex_init(&readonly->lock, NULL);
    readonly->base.ops = &readonly_ops[kind];
    readonly->target = target;
    readonly->live = kind == PRB_TARGET_PROCESS;
    readonly->first_handle = 1;
    readonly->guarded =
        readonly->live &&
        (!prb_ids_of(prb_target_info(target)->pid, &readonly->ids) ||
         !prb_ids_all_alike(readonly->ids.users) || readonly->ids.users[0] != geteuid());
    return &readonly->base;
}

void prb_dap_readonly_owned_by(struct prb_dap_backend *backend, uid_t user, gid_t group)
{
    struct prb_dap_readonly *readonly = (struct prb_dap_readonly *)backend;
    if (readonly->live || geteuid() != 0 || user == 0)
        return;
    for (size_t i = 0; i < 4; i++) {
        readonly->ids.users[i] = user;
        readonly->ids.groups[i] = group;
    }
    readonly->guarded = true;
}
