/*
 * Sources of ours are executed statement by statement, with breaths between, in which the program's
 * threads have the GIL: none of its steps waits long for us.
 */
#include <string.h>

#include "inject/probe/debug/core.h"
#include "inject/probe/python_job.h"

#define PIECE_END "\n\n\n" /* between top-level statements, nowhere else in our sources */
#define SLICE_NS 250000u   /* of the GIL for us */
#define BREATH_NS 50000u   /* for another thread to get it */
#define BREATH_MAX_NS 4000000u
#define SHARE 4u /* a thread that computes gets it for so many times as long as we had it */
#define CONTENDED_NS 40000u /* to get it back from such a one takes longer */
/* No more breaths than these, so that a client does not wait long. */
#define BREATHS_NS 70000000u
#define BREATH_WINDOW_NS 1000000000u

/* With the GIL: who of us has it, since when. */
static struct {
    unsigned long ident;
    uint64_t since;
} holder;

void prb_py_got(const struct prb_py_api *py)
{
    holder.ident = py->PyThread_get_thread_ident();
    holder.since = prb_job_now();
}

/* How long others shall have the GIL, which we had for so long (ns); 0: no more. */
static uint64_t breath(uint64_t held, uint64_t spent, bool contended)
{
    if (spent > BREATHS_NS)
        return prb_debug_can_hurry() ? BREATH_NS : 0;
    uint64_t fair = contended && prb_debug_can_hurry() ? held * SHARE : BREATH_NS;
    return fair < BREATH_MAX_NS ? fair : BREATH_MAX_NS;
}

void prb_py_breathe(const struct prb_py_api *py)
{
    static uint64_t window, spent; /* ns; with the GIL */
    static bool contended;
    uint64_t began = prb_job_now();
    bool known = holder.ident == py->PyThread_get_thread_ident();
    uint64_t held = known ? began - holder.since : SLICE_NS;
    if (held < SLICE_NS)
        return;
    if (began - window > BREATH_WINDOW_NS)
        window = began, spent = 0, contended = false;
    struct timespec pause = {.tv_nsec = (long)breath(held, spent, contended)};
    if (!pause.tv_nsec)
        return;
    void *saved = py->PyEval_SaveThread();
    nanosleep(&pause, NULL);
    uint64_t asked = prb_job_now();
    prb_debug_hurry(true);
    py->PyEval_RestoreThread(saved);
    prb_debug_hurry(false);
    prb_py_got(py);
    contended = holder.since - asked > CONTENDED_NS;
    spent += holder.since - began;
}

static bool run_piece(const struct prb_py_api *py, const struct prb_buf *text, const char *file,
                      struct prb_py *space)
{
    PRB_AUTO(prb_py)
    struct prb_py *code = py->Py_CompileString(text->data, file, PRB_PY_FILE_INPUT);
    PRB_AUTO(prb_py) struct prb_py *done = code ? py->PyEval_EvalCode(code, space, space) : NULL;
    return done;
}

bool prb_py_run(const struct prb_py_api *py, const char *source, const char *file,
                struct prb_py *space)
{
    unsigned line = 0; /* before the piece */
    for (const char *at = source; *at;) {
        const char *end = strstr(at, PIECE_END);
        size_t len = end ? (size_t)(end - at) + strlen(PIECE_END) : strlen(at);
        PRB_AUTO(prb_buf) struct prb_buf text = {0};
        for (unsigned i = 0; i < line; i++)
            prb_buf_addc(&text, '\n');
        prb_buf_add(&text, at, len);
        if (at != source)
            prb_py_breathe(py);
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

static struct prb_py *on_run(struct prb_py *self, struct prb_py *args)
{
    (void)self;
    const struct prb_py_api *py = prb_py_api(NULL);
    struct prb_py *bytes, *space;
    char *source, *file;
    ptrdiff_t len;
    if (!py || !py->PyArg_ParseTuple(args, "OsO", &bytes, &file, &space) ||
        py->PyBytes_AsStringAndSize(bytes, &source, &len) != 0 ||
        !prb_py_run(py, source, file, space))
        return NULL;
    py->Py_IncRef(py->none);
    return py->none;
}

struct prb_py_method prb_py_run_method = {"run", on_run, PRB_PY_VARARGS,
                                          "run(source, file, space): a part, with breaths"};
