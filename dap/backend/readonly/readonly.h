/*
 * The look back end: a live process without the probe, a core or a snapshot.  What its files share.
 *   look.c     the back end, its picture of the target, attach, pause, continue
 *   stack.c    threads and stacks
 *   values.c   scopes and variables
 *   path.c     evaluate: names, attributes and items
 *   source.c   exceptions, sources, modules
 *
 * A picture is one reading of all stacks with their locals.  A core has one; a live target gets one
 * with each pause and goes on all the while.  What the client holds (frame ids, variablesReference)
 * belongs to a picture: numbers are never used again, so those of an earlier one are told as such.
 */
#ifndef PRB_DAP_READONLY_H
#define PRB_DAP_READONLY_H

#include <pthread.h>

#include "base/cleanup.h"
#include "dap/backend/backend.h"
#include "dap/backend/live/native_frames.h"
#include "proc/ids.h"

#define PRB_DAP_READONLY_HANDLES_MAX 1000000 /* of one picture */
#define PRB_DAP_READONLY_VALUE 1024          /* characters of a value in a list */
#define PRB_DAP_READONLY_CLIPBOARD 65536     /* of one that is copied */
/* Of threads that have no kernel id, which cores of old interpreters may lack; above all of those.
 */
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
    struct prb_ids ids;         /* of a live target when it was opened; of a file's owner */
    bool guarded;               /* we may more than a target with these ids */
    bool still;                 /* Python threads stop for a picture */
    struct prb_stacks *picture; /* NULL: a live target that is not paused */
    struct prb_dap_readonly_handle *handles;
    size_t handle_count, handle_cap;
    json_int_t first_handle; /* the number of handles[0] */
};

PRB_DEFINE_AUTO_PTR(prb_stacks, struct prb_stacks, prb_stacks_free)
PRB_DEFINE_AUTO_PTR(prb_parts, struct prb_parts, prb_parts_free)
PRB_DEFINE_AUTO_PTR(prb_exceptions, struct prb_exceptions, prb_exceptions_free)
PRB_DEFINE_AUTO_PTR(json, json_t, json_decref)

typedef json_t *prb_dap_readonly_method(struct prb_dap_readonly *look, const json_t *arguments,
                                        struct prb_error *err);
/* stack.c */
prb_dap_readonly_method prb_dap_readonly_threads, prb_dap_readonly_stack;
/* values.c */
prb_dap_readonly_method prb_dap_readonly_scopes, prb_dap_readonly_variables;
/* path.c */
prb_dap_readonly_method prb_dap_readonly_evaluate;
/* source.c */
prb_dap_readonly_method prb_dap_readonly_exception_info, prb_dap_readonly_source,
    prb_dap_readonly_modules, prb_dap_readonly_loaded_sources;

/* Fill err; NULL. */
void *prb_dap_readonly_fail(struct prb_error *err, enum prb_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Arguments of the client: absent or of another type, the default. */
json_int_t prb_dap_readonly_integer(const json_t *arguments, const char *key, json_int_t otherwise);
const char *prb_dap_readonly_string(const json_t *arguments, const char *key);

/* The number of a new handle, 0 when there are too many; takes expression. */
json_int_t prb_dap_readonly_handle(struct prb_dap_readonly *look,
                                   struct prb_dap_readonly_handle handle);
/* NOT_FOUND: it is of an earlier picture, or none of ours. */
const struct prb_dap_readonly_handle *
prb_dap_readonly_find(struct prb_dap_readonly *look, json_int_t number, struct prb_error *err);
/* The picture; UNSUPPORTED while a live target is not paused. */
const struct prb_stacks *prb_dap_readonly_picture(struct prb_dap_readonly *look,
                                                  struct prb_error *err);
/* The id that DAP knows thread i by. */
json_int_t prb_dap_readonly_thread_id(const struct prb_stacks *stacks, size_t i);
const struct prb_thread *prb_dap_readonly_thread_of(const struct prb_stacks *stacks, json_int_t id,
                                                    size_t *index_out);
/* The thread that `threadId` of arguments means; NULL: there is none (NOT_FOUND), or no picture. */
const struct prb_thread *prb_dap_readonly_thread_asked(struct prb_dap_readonly *look,
                                                       const json_t *arguments, size_t *index_out,
                                                       struct prb_error *err);
/* A variable: value, type, counts and a reference where it can be unfolded, put into out.
 * expression is copied; hex: ints in hexadecimal. */
void prb_dap_readonly_describe(struct prb_dap_readonly *look, json_t *out,
                               const struct prb_part *part, const char *value_key,
                               const char *expression, bool hex);

#endif
