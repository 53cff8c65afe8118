/*
 * The read-only back end: a live process without the probe, a core or a snapshot.
 *   readonly.c  the back end: its methods, attach, pause, continue
 *   view.c      the view, its threads, the handles into it
 *   stack.c     threads and stacks
 *   values.c    scopes and variables
 *   evaluate.c  evaluate: names, attributes and items
 *   source.c    exceptions, sources, modules
 *
 * A view is one reading of all stacks with their locals.  A core has one; a live target gets a new
 * one with each pause and runs on meanwhile.  Handles (frame ids, variablesReference) belong to a
 * view.  Their numbers are never used again, so a handle of an earlier view is refused as such.
 *
 * To add a method: a prb_dap_readonly_method here, its name in readonly.c's table.
 */
#ifndef PRB_DAP_READONLY_H
#define PRB_DAP_READONLY_H

#include <pthread.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "dap/backend/backend.h"
#include "dap/backend/frames.h"
#include "proc/ids.h"

#define PRB_DAP_READONLY_HANDLES_MAX 1000000 /* of one view */
#define PRB_DAP_READONLY_VALUE 1024          /* characters of a value in a list */
#define PRB_DAP_READONLY_CLIPBOARD 65536     /* of a value that is copied */
/* The first id of threads without a kernel id (cores of old interpreters may lack it); above all
 * kernel ids. */
#define PRB_DAP_READONLY_THREAD (1 << 23)

enum prb_dap_readonly_kind {
    PRB_DAP_READONLY_FRAME,
    PRB_DAP_READONLY_LOCALS,
    PRB_DAP_READONLY_GLOBALS,
    PRB_DAP_READONLY_OBJECT
};

struct prb_dap_readonly_handle {
    enum prb_dap_readonly_kind kind;
    size_t thread, frame; /* FRAME, LOCALS, GLOBALS */
    prb_addr object;      /* GLOBALS: the dict; OBJECT */
    char *expression;     /* OBJECT: how to reach it, or NULL */
};

struct prb_dap_readonly {
    struct prb_dap_backend base; /* first */
    pthread_mutex_t lock;
    struct prb_target *target;
    bool live;
    struct prb_ids ids;      /* of a live target when it was opened, or of a file's owner */
    bool guarded;            /* we have more rights than a target with these ids */
    bool still;              /* Python threads are stopped while a view is taken */
    struct prb_stacks *view; /* NULL: a live target that is not paused */
    struct prb_dap_readonly_handle *handles;
    size_t handle_count, handle_cap;
    json_int_t first_handle; /* the number of handles[0] */
};

PRB_DEFINE_AUTO_PTR(prb_stacks, struct prb_stacks, prb_stacks_free)
PRB_DEFINE_AUTO_PTR(prb_parts, struct prb_parts, prb_parts_free)
PRB_DEFINE_AUTO_PTR(prb_exceptions, struct prb_exceptions, prb_exceptions_free)
PRB_DEFINE_AUTO_PTR(json, json_t, json_decref)

typedef json_t *prb_dap_readonly_method(struct prb_dap_readonly *readonly, const json_t *arguments,
                                        struct prb_error *err);
/* stack.c */
prb_dap_readonly_method prb_dap_readonly_threads, prb_dap_readonly_stack;
/* values.c */
prb_dap_readonly_method prb_dap_readonly_scopes, prb_dap_readonly_variables;
/* evaluate.c */
prb_dap_readonly_method prb_dap_readonly_evaluate;
/* source.c */
prb_dap_readonly_method prb_dap_readonly_exception_info, prb_dap_readonly_source,
    prb_dap_readonly_modules, prb_dap_readonly_loaded_sources;

/* An argument of the client; otherwise, or NULL, where it is absent or has another type. */
static inline json_int_t prb_dap_readonly_integer(const json_t *arguments, const char *key,
                                                  json_int_t otherwise)
{
    const json_t *value = json_object_get(arguments, key);
    return json_is_integer(value) ? json_integer_value(value) : otherwise;
}
static inline const char *prb_dap_readonly_string(const json_t *arguments, const char *key)
{
    return json_string_value(json_object_get(arguments, key));
}

/* Take a new view, or drop the view and its handles. */
bool prb_dap_readonly_take(struct prb_dap_readonly *readonly, struct prb_error *err);
void prb_dap_readonly_drop(struct prb_dap_readonly *readonly);
/* The view; a file's is taken when it is first asked for.  UNSUPPORTED: a live target is not
 * paused. */
const struct prb_stacks *prb_dap_readonly_view(struct prb_dap_readonly *readonly,
                                               struct prb_error *err);

/* The number of a new handle, 0 when there are too many.  Takes expression. */
json_int_t prb_dap_readonly_handle(struct prb_dap_readonly *readonly,
                                   struct prb_dap_readonly_handle handle);
/* NOT_FOUND: it belongs to an earlier view, or is not one of ours. */
const struct prb_dap_readonly_handle *
prb_dap_readonly_find(struct prb_dap_readonly *readonly, json_int_t number, struct prb_error *err);
/* The id that DAP knows thread i by. */
json_int_t prb_dap_readonly_thread_id(const struct prb_stacks *stacks, size_t i);
const struct prb_thread *prb_dap_readonly_thread_of(const struct prb_stacks *stacks, json_int_t id,
                                                    size_t *index_out);
/* The thread that `threadId` of arguments means.  NOT_FOUND: there is no such thread. */
const struct prb_thread *prb_dap_readonly_thread_asked(struct prb_dap_readonly *readonly,
                                                       const json_t *arguments, size_t *index_out,
                                                       struct prb_error *err);
/* Add a variable to out: value, type, counts, and a reference where it can be unfolded.
 * expression is copied; hex: ints in hexadecimal. */
void prb_dap_readonly_describe(struct prb_dap_readonly *readonly, json_t *out,
                               const struct prb_part *part, const char *value_key,
                               const char *expression, bool hex);

#endif
