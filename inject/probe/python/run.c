/*
 * Sources of ours are executed statement by statement, with pauses in which the program's threads
 * have the GIL: none of its steps waits long for us.  What came as byte code is not
 * compiled.
 */
#include <string.h>

#include "inject/probe/python/bytecode.h"
#include "inject/probe/python/job.h"
#include "inject/probe/python/sources.h"
#include "inject/probe/python/switch_interval.h"

#define SLICE_NS 200000u /* that we keep the GIL, and until a piece ends: 0.25 ms are allowed */
#define PAUSE_NS 50000u  /* for another thread to get it */
#define PAUSE_MAX_NS 4000000u
/* Threads that compute get it for so many times as long as we held it.  Four times as long made an
 * attach a fifth longer, and its longest step no shorter (5 to 7 ms more). */
#define SHARE 1u
#define BUSY 4u /* others ran for so much (1/4) of a pause */
/* No more pauses than these, so that a client does not wait long. */
#define PAUSES_NS 70000000u
#define PAUSE_WINDOW_NS 1000000000u

/* With the GIL: which thread of ours holds it, since when; when the last one released it, and for
 * how long it had held it since its last pause (ns). */
static struct {
    unsigned long ident;
    uint64_t since, gave, unpaid;
} holder;

void prb_py_gil_acquired(const struct prb_py_api *py)
{
    uint64_t now = prb_clock_ns();
    bool paid = now - holder.gave > holder.unpaid * SHARE;
    holder.ident = py->PyThread_get_thread_ident();
    holder.since = now - (paid ? 0 : holder.unpaid);
    holder.unpaid = 0;
}

void prb_py_gil_releasing(const struct prb_py_api *py)
{
    if (holder.ident != py->PyThread_get_thread_ident())
        return;
    holder.gave = prb_clock_ns();
    holder.unpaid = holder.gave - holder.since;
    holder.ident = 0;
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The CPU time of the process's other threads. */
static uint64_t others_ran(void)
{
    uint64_t own = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID) - own;
}

/* How long others get the GIL after we held it for so long (ns); 0: no more. */
static uint64_t pause_for(uint64_t held, uint64_t spent, bool busy)
{
    if (spent > PAUSES_NS)
        return prb_switch_interval_known() ? PAUSE_NS : 0;
    uint64_t fair = busy && prb_switch_interval_known() ? held * SHARE : PAUSE_NS;
    return fair < PAUSE_MAX_NS ? fair : PAUSE_MAX_NS;
}

void prb_py_yield_gil(const struct prb_py_api *py)
{
    static uint64_t window, spent, looked, ran; /* ns; with the GIL */
    static bool busy;
    uint64_t began = prb_clock_ns();
    bool known = holder.ident == py->PyThread_get_thread_ident();
    uint64_t held = known ? began - holder.since : SLICE_NS;
    if (held < SLICE_NS)
        return;
    if (began - window > PAUSE_WINDOW_NS) {
        window = began, spent = 0;
        busy = (others_ran() - ran) * BUSY > began - looked;
    }
    struct timespec pause = {.tv_nsec = (long)pause_for(held, spent, busy)};
    if (!pause.tv_nsec)
        return;
    ran = others_ran();
    void *saved = py->PyEval_SaveThread();
    nanosleep(&pause, NULL);
    prb_switch_interval_shorten(true);
    py->PyEval_RestoreThread(saved);
    prb_switch_interval_shorten(false);
    prb_py_gil_acquired(py);
    uint64_t now = others_ran();
    busy = (now - ran) * BUSY > holder.since - began;
    spent += holder.since - began;
    looked = holder.since, ran = now;
}

static bool run_piece(const struct prb_py_api *py, const struct prb_buf *text, const char *file,
                      struct prb_py *space)
{
    PRB_AUTO(prb_py)
    struct prb_py *code = py->Py_CompileString(text->data, file, PRB_PY_FILE_INPUT);
    PRB_AUTO(prb_py) struct prb_py *done = code ? py->PyEval_EvalCode(code, space, space) : NULL;
    return done;
}

/* Code objects, one after another. */
static bool run_pieces(const struct prb_py_api *py, struct prb_py *pieces, struct prb_py *space)
{
    for (ptrdiff_t i = 0, count = py->PyTuple_Size(pieces); i < count; i++) {
        prb_py_yield_gil(py);
        struct prb_py *code = py->PyTuple_GetItem(pieces, i);
        PRB_AUTO(prb_py)
        struct prb_py *done = code ? py->PyEval_EvalCode(code, space, space) : NULL;
        if (!done)
            return false;
    }
    return true;
}

static bool compile_and_run(const struct prb_py_api *py, const char *source, const char *file,
                            struct prb_py *space)
{
    unsigned line = 0; /* before the piece */
    for (const char *at = source; *at;) {
        const char *end = strstr(at, PRB_PY_PIECE_END);
        size_t len = end ? (size_t)(end - at) + strlen(PRB_PY_PIECE_END) : strlen(at);
        PRB_AUTO(prb_buf) struct prb_buf text = {0};
        for (unsigned i = 0; i < line; i++)
            prb_buf_addc(&text, '\n');
        prb_buf_add(&text, at, len);
        if (at != source)
            prb_py_yield_gil(py);
        if (!prb_buf_ok(&text)) {
            py->PyErr_SetNone(*py->memory_error);
            return false;
        }
        if (!run_piece(py, &text, file, space))
            return false;
        for (size_t i = 0; i < len; i++)
            line += at[i] == '\n';
        at += len;
    }
    return true;
}

/* What ran, a new reference: a tuple of code objects, or None when it came as a source. */
static struct prb_py *run(const struct prb_py_api *py, const struct prb_py_source *source,
                          struct prb_py *space)
{
    prb_py_yield_gil(py);
    PRB_AUTO(prb_py) struct prb_py *pieces = prb_bytecode_pieces(py, source->file);
    bool ran = pieces ? run_pieces(py, pieces, space)
                      : compile_and_run(py, source->text, source->file, space);
    if (ran && !pieces)
        py->Py_IncRef(py->none);
    return !ran ? NULL : pieces ? PRB_STEAL(pieces) : py->none;
}

bool prb_py_run(const struct prb_py_api *py, const struct prb_py_source *source,
                struct prb_py *space)
{
    PRB_AUTO(prb_py) struct prb_py *ran = run(py, source, space);
    return ran;
}

static struct prb_py *on_run(struct prb_py *self, struct prb_py *args)
{
    (void)self;
    const struct prb_py_api *py = prb_py_api(NULL);
    struct prb_py *space;
    char *file;
    if (!py || !py->PyArg_ParseTuple(args, "sO", &file, &space))
        return NULL;
    const struct prb_py_source *source = prb_py_source(file);
    if (source)
        return run(py, source, space);
    py->PyErr_SetString(*py->runtime_error, file);
    return NULL;
}

struct prb_py_method prb_py_run_method = {
    "run", on_run, PRB_PY_VARARGS, "run(file, space) -> its code objects, None: from the source"};
