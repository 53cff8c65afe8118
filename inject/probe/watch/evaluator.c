/*
 * Returns of watched functions, from 3.6 to 3.11: a frame evaluator (PEP 523), which looks at a frame
 * of a watched function after it has run.  Its locals are still there: who called the evaluator
 * clears them (Python/ceval.c).  It is in the interpreter only while a watched function is not found
 * on the stack when steps end.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#include "inject/probe/torch/frames.h"
#include "inject/probe/watch/watch.h"

#define LAYOUT (&prb_watch_facts.layout)

typedef struct prb_py *(*of_frame)(char *frame, int throw);
typedef struct prb_py *(*of_thread)(char *thread, char *frame, int throw);

static struct {
    bool begun, in;
    char *interp;
    void *own, *beneath; /* beneath: what ours calls */
    void *before;        /* what stood there: NULL is the standard one from 3.11 on */
} evaluator;

static void look(const char *frame)
{
    const char *code = evaluator.in ? prb_torch_frame_code(frame) : NULL;
    if (code && prb_watch_knows(code))
        prb_watch_returned(frame, code);
}

static struct prb_py *evaluate_frame(char *frame, int throw)
{
    of_frame beneath;
    memcpy(&beneath, &evaluator.beneath, sizeof beneath);
    struct prb_py *result = beneath(frame, throw);
    look(frame);
    return result;
}

static struct prb_py *evaluate_in_thread(char *thread, char *frame, int throw)
{
    of_thread beneath;
    memcpy(&beneath, &evaluator.beneath, sizeof beneath);
    struct prb_py *result = beneath(thread, frame, throw);
    look(frame);
    return result;
}

static void *in_place(void)
{
    void *now;
    memcpy(&now, evaluator.interp + PRB_OFF(LAYOUT, interp, eval_frame), sizeof now);
    return now;
}

static void put_in_place(void *function)
{
    memcpy(evaluator.interp + PRB_OFF(LAYOUT, interp, eval_frame), &function, sizeof function);
}

/*
 * Another one that lies above ours calls it: then it stays, and only passes on.  What stood there is
 * put back to the bit: where NULL is the standard evaluator (3.11), its address instead would have
 * each call of a Python function run in an evaluator of its own.
 */
void prb_watch_evaluator_needed(bool needed)
{
    if (!evaluator.begun || needed == evaluator.in)
        return;
    void *now = in_place();
    evaluator.in = needed;
    if (!needed && now == evaluator.own) {
        put_in_place(evaluator.before);
        return;
    }
    if (!needed || now == evaluator.own)
        return;
    void *standard = dlsym(RTLD_DEFAULT, "_PyEval_EvalFrameDefault");
    evaluator.before = now;
    evaluator.beneath = now ? now : standard;
    put_in_place(evaluator.own);
}

bool prb_watch_evaluator_begin(const struct prb_py_api *py, struct prb_error *err)
{
    if (evaluator.begun) {
        prb_watch_evaluator_needed(true);
        return true;
    }
    if (!PRB_HAS(LAYOUT, interp, eval_frame) || !py->PyInterpreterState_Head ||
        !dlsym(RTLD_DEFAULT, "_PyEval_EvalFrameDefault"))
        return prb_fail(err, PRB_NOT_FOUND, "this interpreter has no frame evaluator to replace");
    if (PRB_IS(LAYOUT, evaluator, FRAME)) {
        of_frame own = evaluate_frame;
        memcpy(&evaluator.own, &own, sizeof own);
    } else {
        of_thread own = evaluate_in_thread;
        memcpy(&evaluator.own, &own, sizeof own);
    }
    evaluator.interp = py->PyInterpreterState_Head();
    evaluator.begun = true;
    prb_watch_evaluator_needed(true);
    return true;
}

void prb_watch_evaluator_end(void)
{
    prb_watch_evaluator_needed(false);
    evaluator.begun = false;
}

/* Plain stores: the child may have no GIL. */
void prb_watch_evaluator_forked(void) { prb_watch_evaluator_end(); }
