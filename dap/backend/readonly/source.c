/* Exceptions, modules and sources, read without the probe.  The target chose the name of a source,
 * and the client that reads it may have fewer rights than we have. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "dap/backend/readonly/readonly.h"
#include "proc/below.h"

#define SOURCE_MAX (16 << 20) /* bytes of a file that is shown */
#define TRACE_MAX 65536       /* bytes of a traceback's text */

PRB_DEFINE_AUTO_PTR(prb_db, struct prb_db, prb_db_close)

/* ---- the exception ---- */

/* As Python prints it. */
static json_t *trace_text(const struct prb_exception *exception)
{
    PRB_AUTO_FREE char *text = malloc(TRACE_MAX);
    size_t len = 0;
    if (!text)
        return NULL;
    text[0] = 0;
    for (size_t i = 0; i < exception->frame_count && len < TRACE_MAX - 1024; i++) {
        const struct prb_frame *frame = &exception->frames[i];
        int n = snprintf(text + len, TRACE_MAX - len, "  File \"%.400s\", line %d, in %.400s\n",
                         frame->filename ? frame->filename : "?", frame->line,
                         frame->name ? frame->name : "?");
        len += n > 0 ? (size_t)n : 0;
    }
    return prb_dap_text(text);
}

static const char *short_name(const char *type)
{
    const char *dot = strrchr(type, '.');
    return dot ? dot + 1 : type;
}

/* exceptions->items[i] and, inside it, its cause. */
static json_t *details(const struct prb_exceptions *exceptions, size_t i)
{
    const struct prb_exception *exception = &exceptions->items[i];
    json_t *out = json_pack("{s:o, s:o, s:o, s:o}", "message", prb_dap_text(exception->message),
                            "typeName", prb_dap_text(short_name(exception->type)), "fullTypeName",
                            prb_dap_text(exception->type), "stackTrace", trace_text(exception));
    if (out && i + 1 < exceptions->count)
        json_object_set_new(out, "innerException", json_pack("[o]", details(exceptions, i + 1)));
    return out;
}

static json_t *of_signal(const struct prb_target_info *info)
{
    char id[40];
    snprintf(id, sizeof id, "signal %d", info->signal);
    return json_pack("{s:s, s:s, s:s}", "exceptionId", id, "description", strsignal(info->signal),
                     "breakMode", "unhandled");
}

json_t *prb_dap_readonly_exception_info(struct prb_dap_readonly *readonly, const json_t *arguments,
                                        struct prb_error *err)
{
    static const char *const modes[] = {[PRB_EXCEPTION_RAISED] = "always",
                                        [PRB_EXCEPTION_HANDLED] = "always",
                                        [PRB_EXCEPTION_LAST] = "unhandled"};
    const struct prb_target_info *info = prb_target_info(readonly->target);
    size_t index;
    const struct prb_thread *thread =
        prb_dap_readonly_thread_asked(readonly, arguments, &index, err);
    if (!thread)
        return NULL;
    PRB_AUTO(prb_exceptions)
    struct prb_exceptions *exceptions =
        thread->has_python
            ? prb_exceptions_take(
                  readonly->target,
                  thread->os_thread_id ? (uint64_t)thread->os_thread_id : thread->thread_id, NULL)
            : NULL;
    if (exceptions && exceptions->count) {
        const struct prb_exception *first = &exceptions->items[0];
        return json_pack("{s:o, s:o, s:s, s:o}", "exceptionId", prb_dap_text(first->type),
                         "description", prb_dap_text(first->message), "breakMode",
                         modes[first->state], "details", details(exceptions, 0));
    }
    if (info->signal && info->signalled == thread->os_thread_id)
        return of_signal(info);
    return PRB_NULL(prb_fail(err, PRB_NOT_FOUND, "thread %lld has no exception",
                             (long long)prb_dap_readonly_integer(arguments, "threadId", 0)));
}

/* ---- modules ---- */

struct modules {
    json_t *list;
    bool sources; /* only modules with a source file, as sources */
};

static bool add_module(void *context, size_t columns, const char *const *names,
                       const struct prb_value *row)
{
    struct modules *modules = context;
    (void)columns, (void)names;
    if (!row || row[0].type != PRB_TEXT)
        return true;
    const char *file = row[1].type == PRB_TEXT ? row[1].text : NULL;
    size_t len = file ? strlen(file) : 0;
    if (modules->sources && (len < 4 || strcmp(file + len - 3, ".py") != 0))
        return true;
    json_t *item = json_pack("{s:o}", "name", prb_dap_text(row[0].text));
    if (item && !modules->sources)
        json_object_set_new(item, "id", prb_dap_text(row[0].text));
    if (item && file)
        json_object_set_new(item, "path", prb_dap_text(file));
    if (item && !modules->sources && row[2].type == PRB_TEXT)
        json_object_set_new(item, "version", prb_dap_text(row[2].text));
    return json_array_append_new(modules->list, item) == 0;
}

static json_t *list_modules(struct prb_dap_readonly *readonly, bool sources, struct prb_error *err)
{
    PRB_AUTO(prb_db) struct prb_db *db = prb_db_open(readonly->target, err);
    PRB_AUTO(json) json_t *list = json_array();
    struct modules modules = {list, sources};
    if (!db ||
        !prb_db_query(db, "SELECT name, file, version FROM python.modules WHERE interpreter = 0",
                      add_module, &modules, err))
        return NULL;
    return PRB_STEAL(list);
}

json_t *prb_dap_readonly_modules(struct prb_dap_readonly *readonly, const json_t *arguments,
                                 struct prb_error *err)
{
    size_t start = (size_t)prb_dap_readonly_integer(arguments, "startModule", 0);
    size_t count = (size_t)prb_dap_readonly_integer(arguments, "moduleCount", 0);
    PRB_AUTO(json) json_t *all = list_modules(readonly, false, err);
    if (!all)
        return NULL;
    json_t *page = json_array();
    for (size_t i = start; i < json_array_size(all) && (!count || i - start < count); i++)
        json_array_append(page, json_array_get(all, i));
    return json_pack("{s:o, s:I}", "modules", page, "totalModules",
                     (json_int_t)json_array_size(all));
}

json_t *prb_dap_readonly_loaded_sources(struct prb_dap_readonly *readonly, const json_t *arguments,
                                        struct prb_error *err)
{
    (void)arguments;
    json_t *list = list_modules(readonly, true, err);
    return list ? json_pack("{s:o}", "sources", list) : NULL;
}

/* ---- sources ---- */

static bool is_in_stacks(const struct prb_stacks *stacks, const char *path)
{
    for (size_t i = 0; stacks && i < stacks->thread_count; i++) {
        const struct prb_thread *thread = &stacks->threads[i];
        for (size_t j = 0; j < thread->frame_count; j++)
            if (thread->frames[j].filename && strcmp(thread->frames[j].filename, path) == 0)
                return true;
    }
    return false;
}

static bool is_of_module(struct prb_dap_readonly *readonly, const char *path)
{
    PRB_AUTO(json) json_t *list = list_modules(readonly, false, NULL);
    bool found = false;
    for (size_t i = 0; i < json_array_size(list) && !found; i++) {
        const char *file = json_string_value(json_object_get(json_array_get(list, i), "path"));
        found = file && strcmp(file, path) == 0;
    }
    return found;
}

/* As the target sees its files, with the rights of its user.  For a core: our own files, which are
 * the nearest, with the rights of the core's owner. */
static int open_source(const struct prb_dap_readonly *readonly, const char *path)
{
    struct prb_rights before;
    if (readonly->live)
        return prb_open_as_target(prb_target_info(readonly->target)->pid, path);
    PRB_AUTO_FD int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0 || (readonly->guarded && !prb_rights_take(&readonly->ids, &before)))
        return -1;
    int fd = prb_open_below(root, path);
    if (readonly->guarded)
        prb_rights_give_back(&before);
    return fd;
}

json_t *prb_dap_readonly_source(struct prb_dap_readonly *readonly, const json_t *arguments,
                                struct prb_error *err)
{
    const char *path = prb_dap_readonly_string(arguments, "path");
    struct stat info;
    if (!path || *path != '/')
        return PRB_NULL(
            prb_fail(err, PRB_NOT_FOUND, "%.200s has no file", path ? path : "that source"));
    if (!is_in_stacks(readonly->view, path) && !is_of_module(readonly, path))
        return PRB_NULL(
            prb_fail(err, PRB_NOT_FOUND, "no frame and no module belongs to %.200s", path));
    PRB_AUTO_FD int fd = open_source(readonly, path);
    if (fd < 0 || fstat(fd, &info) != 0)
        return PRB_NULL(prb_fail(err, PRB_NOT_FOUND, "cannot open %.200s", path));
    if (info.st_size > SOURCE_MAX)
        return PRB_NULL(prb_fail(err, PRB_UNSUPPORTED, "%.200s is too long", path));
    PRB_AUTO_FREE char *text = malloc((size_t)info.st_size + 1);
    ssize_t n = text ? pread(fd, text, (size_t)info.st_size, 0) : -1;
    if (n < 0)
        return PRB_NULL(prb_fail(err, PRB_IO, "cannot read %.200s", path));
    text[n] = 0;
    return json_pack("{s:o, s:s}", "content", prb_dap_text(text), "mimeType", "text/x-python");
}
