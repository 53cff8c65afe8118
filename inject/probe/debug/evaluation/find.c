/*
 * What frame evaluation needs of the interpreter: functions by name, places by the layout of its
 * version.  An interpreter that has not all of it has another mechanism, or none.
 */
#include <dlfcn.h>

#include "inject/probe/debug/evaluation/evaluation.h"

static const struct {
    const char *name;
    size_t offset;
} functions[] = {
#define F(result, member, name, parameters) {#name, offsetof(struct prb_evaluation, member)},
    PRB_EVALUATION_FUNCTIONS(F)
#undef F
};

/* The library that python/api.h's functions are of; NULL: the program itself. */
static void *library(const struct prb_py_api *py)
{
    Dl_info info;
    void *function;
    memcpy(&function, &py->Py_IsInitialized, sizeof function);
    if (!dladdr(function, &info) || !info.dli_fname)
        return NULL;
    return dlopen(info.dli_fname, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
}

static bool find_functions(struct prb_evaluation *new, void *handle, struct prb_error *err)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *address = dlsym(handle, functions[i].name);
        if (!address)
            return prb_fail(err, PRB_UNSUPPORTED, "the interpreter has no %s", functions[i].name);
        memcpy((char *)new + functions[i].offset, &address, sizeof address);
    }
    new->default_evaluator = dlsym(handle, "_PyEval_EvalFrameDefault");
    new->runtime = dlsym(handle, "_PyRuntime");
    if (!new->default_evaluator)
        return prb_fail(err, PRB_UNSUPPORTED, "the interpreter has no frame evaluator to replace");
    return true;
}

static bool find_layout(struct prb_evaluation *new, struct prb_error *err)
{
    struct prb_py *version = new->system("hexversion");
    unsigned long number = version ? new->number(version) : 0;
    if (!prb_layout_find((uint32_t)number, false, &new->layout, err))
        return false;
    const struct prb_layout *layout = &new->layout;
    bool flag = PRB_HAS(layout, thread, use_tracing) || PRB_HAS(layout, cframe, use_tracing);
    if (!PRB_HAS(layout, interp, eval_frame) || !flag)
        return prb_fail(err, PRB_UNSUPPORTED,
                        "in CPython %s tracing cannot be confined to one frame", layout->name);
    if (PRB_HAS(layout, runtime, tracing_possible) && !new->runtime)
        return prb_fail(err, PRB_UNSUPPORTED, "the interpreter has no _PyRuntime");
    new->tracefunc = PRB_OFF(layout, thread, tracefunc);
    new->code = PRB_OFF(layout, frame, code);
    return true;
}

bool prb_evaluation_find(const struct prb_py_api *py, struct prb_error *err)
{
    if (prb_evaluation.ready)
        return true;
    struct prb_evaluation new = {.py = py, .extra = -1};
    void *handle = library(py);
    bool ok = find_functions(&new, handle ? handle : RTLD_DEFAULT, err) && find_layout(&new, err);
    if (handle)
        dlclose(handle); /* it stays loaded: NOLOAD only counted it */
    if (!ok)
        return false;
    new.interp = prb_evaluation_word(new.this_thread(), PRB_OFF(&new.layout, thread, interp));
    new.ready = true;
    prb_evaluation = new;
    return true;
}
