/*
 * What plugs into the probe: one constant `struct prb_probe_part prb_probe_part_NAME` for each NAME of
 * parts.def.  The ground (server/, settings.c, entry.c, python/ for who needs the interpreter) calls
 * parts by the functions below, and knows none of them by name.
 *
 * Every member may be NULL.  None but follow and end may block.
 */
#ifndef PRB_PROBE_PART_H
#define PRB_PROBE_PART_H

#include <stdbool.h>
#include <stdint.h>

struct prb_buf;
struct prb_error;
struct prb_probe_functions;
struct prb_py_api;
struct prb_request_kind;

struct prb_probe_part {
    const char *name;
    /* The requests that it answers (server/request.h), NULL last. */
    const struct prb_request_kind *const *requests;

    /* The probe starts, or a setting changed: act as the settings say.  Any thread, without the
     * GIL. */
    void (*configure)(void);
    /* It needs no server: it is configured even where the probe cannot start one. */
    bool alone;
    /* Whether a client may set a setting to a value that can be read; false with err: this process
     * cannot do it.  On the server's thread. */
    bool (*accepts)(const char *key, const char *value, struct prb_error *err);
    /* Whether the settings have it on, for a part with hooks in Python. */
    bool (*is_on)(void);
    /* is_on() changed: start a job that puts the hooks into Python, or takes them out, and wait for
     * it at most so long (0: the caller is the server, which never waits).  Without the GIL. */
    void (*follow)(bool on, uint32_t wait_ms);

    /* The probe is detached: everything out of the interpreter.  With the GIL, on a job's thread. */
    void (*detach)(const struct prb_py_api *py);
    /* The same because the interpreter begins to end.  With the GIL, on a thread of the program. */
    void (*closing)(const struct prb_py_api *py);
    /* The probe ends, and no client is served any more: give back threads, signals, files.  On the
     * server's thread, without the GIL. */
    void (*end)(void);
    /* In a child after fork(2), from pthread_atfork(3): none of the probe's threads exists here, and
     * locks are as they were: set them and all state back.  Call nothing that allocates or locks. */
    void (*forked)(void);

    /* Fields of its own in the answer to STATUS. */
    void (*status)(struct prb_buf *fields);
    /* Functions of its own for code in the target (start.h). */
    void (*functions)(struct prb_probe_functions *out);
};

#define PART(name) extern const struct prb_probe_part prb_probe_part_##name;
#include "inject/probe/parts.def"
#undef PART

/* Each calls that function of all parts, in the order of parts.def. */
void prb_parts_configure(void);
void prb_parts_configure_alone(void);
/* Whether all parts accept it. */
bool prb_parts_accept(const char *key, const char *value, struct prb_error *err);
void prb_parts_detach(const struct prb_py_api *py);
void prb_parts_closing(const struct prb_py_api *py);
void prb_parts_end(void);
void prb_parts_forked(void);
void prb_parts_status(struct prb_buf *fields);
void prb_parts_functions(struct prb_probe_functions *out);

/* The parts that are on, a bit for each; then, after a change, follow() of those that changed. */
unsigned prb_parts_on(void);
void prb_parts_follow(unsigned before, uint32_t wait_ms);
/* The request of a type that a part answers; NULL: none does. */
const struct prb_request_kind *prb_parts_request(uint16_t type);

#endif
