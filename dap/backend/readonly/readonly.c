/*
 * The look back end as a whole: which methods it has, its picture of the target, and the handles
 * that belong to it.  Stands on probing.h alone.
 */
#include "dap/backend/readonly/readonly.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void *prb_dap_readonly_fail(struct prb_error *err, enum prb_code code, const char *format, ...)
{
    if (err) {
        va_list arguments;
        *err = (struct prb_error){.code = code};
        va_start(arguments, format);
        vsnprintf(err->text, sizeof err->text, format, arguments);
        va_end(arguments);
    }
    return NULL;
}

json_int_t prb_dap_readonly_integer(const json_t *arguments, const char *key, json_int_t otherwise)
{
    const json_t *value = json_object_get(arguments, key);
    return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

const char *prb_dap_readonly_string(const json_t *arguments, const char *key)
{
    return json_string_value(json_object_get(arguments, key));
}

/* ---- handles ---- */

json_int_t prb_dap_readonly_handle(struct prb_dap_readonly *look,
                                   struct prb_dap_readonly_handle handle)
{
    if (look->handle_count == look->handle_cap) {
        size_t cap = look->handle_cap ? look->handle_cap * 2 : 256;
        struct prb_dap_readonly_handle *grown =
            cap <= 2 * PRB_DAP_READONLY_HANDLES_MAX
                ? realloc(look->handles, cap * sizeof *look->handles)
                : NULL;
        if (!grown) {
            free(handle.expression);
            return 0;
        }
        look->handles = grown;
        look->handle_cap = cap;
    }
    look->handles[look->handle_count] = handle;
    return look->first_handle + (json_int_t)look->handle_count++;
}

const struct prb_dap_readonly_handle *
prb_dap_readonly_find(struct prb_dap_readonly *look, json_int_t number, struct prb_error *err)
{
    if (number < look->first_handle ||
        number >= look->first_handle + (json_int_t)look->handle_count)
        return prb_dap_readonly_fail(err, PRB_NOT_FOUND, "%lld is of an earlier stop",
                                     (long long)number);
    return &look->handles[number - look->first_handle];
}

/* Numbers go on where they were, so that an old one is never a new one; object references of DAP
 * end at 2^31 - 1, native frames begin at PRB_DAP_NATIVE_ID. */
static void drop_handles(struct prb_dap_readonly *look)
{
    for (size_t i = 0; i < look->handle_count; i++)
        free(look->handles[i].expression);
    look->first_handle += (json_int_t)look->handle_count;
    if (look->first_handle > PRB_DAP_NATIVE_ID - 2 * PRB_DAP_READONLY_HANDLES_MAX)
        look->first_handle = 1;
    look->handle_count = 0;
}

/* ---- the picture ---- */

static void drop_picture(struct prb_dap_readonly *look)
{
    drop_handles(look);
    prb_stacks_free(look->picture);
    look->picture = NULL;
}

static bool take_picture(struct prb_dap_readonly *look, struct prb_error *err)
{
    const struct prb_stack_options options = {
        .native = !look->still,
        .locals = true,
        .all_interpreters = true,
        .untouched = true,
        .stop = look->still,
        .source_lines = !look->live,
        .repr_limit = PRB_DAP_READONLY_VALUE,
    };
    struct prb_stacks *stacks = prb_stacks_take(look->target, &options, err);
    if (!stacks)
        return false;
    drop_picture(look);
    look->picture = stacks;
    return true;
}

const struct prb_stacks *prb_dap_readonly_picture(struct prb_dap_readonly *look,
                                                  struct prb_error *err)
{
    if (look->picture)
        return look->picture;
    if (look->live)
        return prb_dap_readonly_fail(err, PRB_UNSUPPORTED,
                                     "the process runs: pause takes a picture of it");
    return take_picture(look, err) ? look->picture : NULL;
}

json_int_t prb_dap_readonly_thread_id(const struct prb_stacks *stacks, size_t i)
{
    pid_t tid = stacks->threads[i].os_thread_id;
    return tid ? tid : PRB_DAP_READONLY_THREAD + (json_int_t)i;
}

const struct prb_thread *prb_dap_readonly_thread_of(const struct prb_stacks *stacks, json_int_t id,
                                                    size_t *index_out)
{
    for (size_t i = 0; i < stacks->thread_count; i++)
        if (prb_dap_readonly_thread_id(stacks, i) == id) {
            *index_out = i;
            return &stacks->threads[i];
        }
    return NULL;
}

const struct prb_thread *prb_dap_readonly_thread_asked(struct prb_dap_readonly *look,
                                                       const json_t *arguments, size_t *index_out,
                                                       struct prb_error *err)
{
    json_int_t id = prb_dap_readonly_integer(arguments, "threadId", 0);
    const struct prb_stacks *stacks = prb_dap_readonly_picture(look, err);
    if (!stacks)
        return NULL;
    const struct prb_thread *thread = prb_dap_readonly_thread_of(stacks, id, index_out);
    return thread ? thread
                  : prb_dap_readonly_fail(err, PRB_NOT_FOUND, "there is no thread %lld",
                                          (long long)id);
}

/* ---- attach, pause, continue ---- */

/* Why a core stands: the signal that ended it, or what a crash dump was written for, at its
 * thread. */
static json_t *stopped_body(struct prb_dap_readonly *look, const struct prb_stacks *stacks)
{
    const struct prb_target_info *info = prb_target_info(look->target);
    const struct prb_crash *crash = info->signal ? NULL : prb_target_crash(look->target);
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

static json_t *attach(struct prb_dap_readonly *look, const json_t *arguments, struct prb_error *err)
{
    const struct prb_target_info *info = prb_target_info(look->target);
    look->still = look->live && json_is_true(json_object_get(arguments, "still"));
    json_t *body = json_pack("{s:o, s:s, s:[], s:[]}", "python", prb_dap_text(info->python),
                             "mechanism", look->base.ops->name, "features", "path");
    if (look->live || !body)
        return body;
    const struct prb_stacks *stacks = prb_dap_readonly_picture(look, err);
    if (!stacks) {
        json_decref(body);
        return NULL;
    }
    json_object_set_new(body, "stopped", stopped_body(look, stacks));
    return body;
}

static json_t *take_pause(struct prb_dap_readonly *look, const json_t *arguments,
                          struct prb_error *err)
{
    size_t index;
    if (!look->live)
        return prb_dap_readonly_fail(err, PRB_UNSUPPORTED, "a %s does not run",
                                     look->base.ops->name);
    if (!take_picture(look, err))
        return NULL;
    json_int_t thread = prb_dap_readonly_integer(arguments, "threadId", 0);
    if (!prb_dap_readonly_thread_of(look->picture, thread, &index))
        thread = look->picture->thread_count ? prb_dap_readonly_thread_id(look->picture, 0) : 0;
    char text[160] = "a picture of this moment; the process goes on";
    if (look->still)
        snprintf(text, sizeof text,
                 "copied while the threads stood still for %.1f ms; what you unfold is read as it "
                 "is then; the process goes on",
                 look->picture->longest_stop * 1e3);
    PRB_AUTO(json)
    json_t *body = json_pack("{s:s, s:s, s:I, s:b}", "reason", "pause", "description", text,
                             "threadId", thread, "allThreadsStopped", 1);
    if (body && look->base.event)
        look->base.event(look->base.context, "stopped", body);
    return json_object();
}

static json_t *go_on(struct prb_dap_readonly *look, const json_t *arguments, struct prb_error *err)
{
    (void)arguments;
    if (!look->live)
        return prb_dap_readonly_fail(err, PRB_UNSUPPORTED, "a %s does not run",
                                     look->base.ops->name);
    drop_picture(look);
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

static prb_dap_readonly_method *method(const struct prb_dap_readonly *look, const char *name)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (strcmp(methods[i].name, name) == 0 && (look->live || !methods[i].live_only))
            return methods[i].run;
    return NULL;
}

static bool look_has(const struct prb_dap_backend *backend, const char *name)
{
    return method((const struct prb_dap_readonly *)backend, name) != NULL;
}

/* A target that begins a program with other rights is not looked at with ours any more. */
static bool is_as_before(const struct prb_dap_readonly *look, struct prb_error *err)
{
    struct prb_ids now;
    if (!look->live || !look->guarded)
        return true;
    if (prb_ids_of(prb_target_info(look->target)->pid, &now) &&
        memcmp(now.users, look->ids.users, sizeof now.users) == 0 &&
        memcmp(now.groups, look->ids.groups, sizeof now.groups) == 0 &&
        !(now.permitted & ~look->ids.permitted))
        return true;
    return prb_dap_readonly_fail(err, PRB_PERMISSION,
                                 "the process has other rights than when it was attached to");
}

static json_t *readonly_call(struct prb_dap_backend *backend, const struct prb_dap_call *call,
                             struct prb_error *err)
{
    struct prb_dap_readonly *look = (struct prb_dap_readonly *)backend;
    prb_dap_readonly_method *run = method(look, call->method);
    if (!run)
        return prb_dap_readonly_fail(err, PRB_UNSUPPORTED,
                                     "%s: not without the probe in a live process", call->method);
    PRB_AUTO(json) json_t *none = call->arguments ? NULL : json_object();
    pthread_mutex_lock(&look->lock);
    PRB_AUTO(json)
    json_t *result = is_as_before(look, err) ? run(look, none ? none : call->arguments, err) : NULL;
    bool good = result && is_as_before(look, err);
    pthread_mutex_unlock(&look->lock);
    return good ? PRB_STEAL(result) : NULL;
}

static void look_close(struct prb_dap_backend *backend)
{
    struct prb_dap_readonly *look = (struct prb_dap_readonly *)backend;
    drop_picture(look);
    free(look->handles);
    prb_target_close(look->target);
    pthread_mutex_destroy(&look->lock);
    free(look);
}

static const struct prb_dap_backend_ops look_ops[] = {
    [PRB_TARGET_PROCESS] = {"look", look_has, readonly_call, look_close},
    [PRB_TARGET_CORE] = {"core", look_has, readonly_call, look_close},
    [PRB_TARGET_SNAPSHOT] = {"snapshot", look_has, readonly_call, look_close},
    [PRB_TARGET_CALLBACK] = {"look", look_has, readonly_call, look_close},
};

struct prb_dap_backend *prb_dap_readonly_open(struct prb_target *target, struct prb_error *err)
{
    struct prb_dap_readonly *look = calloc(1, sizeof *look);
    if (!look) {
        prb_target_close(target);
        return prb_dap_readonly_fail(err, PRB_NOMEM, "out of memory");
    }
    enum prb_target_kind kind = prb_target_info(target)->kind;
    pthread_mutex_init(&look->lock, NULL);
    look->base.ops = &look_ops[kind];
    look->target = target;
    look->live = kind == PRB_TARGET_PROCESS;
    look->first_handle = 1;
    look->guarded =
        look->live && (!prb_ids_of(prb_target_info(target)->pid, &look->ids) ||
                       !prb_ids_all_alike(look->ids.users) || look->ids.users[0] != geteuid());
    return &look->base;
}

void prb_dap_readonly_for(struct prb_dap_backend *backend, uid_t user, gid_t group)
{
    struct prb_dap_readonly *look = (struct prb_dap_readonly *)backend;
    if (look->live || geteuid() != 0 || user == 0)
        return;
    for (size_t i = 0; i < 4; i++) {
        look->ids.users[i] = user;
        look->ids.groups[i] = group;
    }
    look->guarded = true;
}
