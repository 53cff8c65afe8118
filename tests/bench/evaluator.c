/*
 * The floor of a debugger that sees calls by PEP 523: a frame evaluator that only calls CPython's
 * own.  calls.py loads it by ctypes and calls evaluator_set() with the GIL.  3.9 to 3.11
 * (Include/cpython/pystate.h: _PyFrameEvalFunction takes the thread's state, the frame, throw).
 */
#include <dlfcn.h>
#include <stddef.h>

/* 0: it is set. */
__attribute__((visibility("default"))) int evaluator_set(void);

typedef void *evaluator(void *thread, void *frame, int throw);

static evaluator *beneath;

static void *evaluate(void *thread, void *frame, int throw)
{
    return beneath(thread, frame, throw);
}

int evaluator_set(void)
{
    void *(*interpreter)(void) = NULL;
    void (*set)(void *, evaluator *) = NULL;
    *(void **)&interpreter = dlsym(RTLD_DEFAULT, "PyInterpreterState_Get");
    *(void **)&set = dlsym(RTLD_DEFAULT, "_PyInterpreterState_SetEvalFrameFunc");
    *(void **)&beneath = dlsym(RTLD_DEFAULT, "_PyEval_EvalFrameDefault");
    if (!interpreter || !set || !beneath)
        return -1;
    set(interpreter(), evaluate);
    return 0;
}
