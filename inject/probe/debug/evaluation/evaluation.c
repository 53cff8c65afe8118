/*
 * The mechanism "frame evaluation" (3.6 to 3.11): a frame evaluator (PEP 523) that confines tracing
 * to the frames of which something is wanted.  The evaluator is in the interpreter only while
 * something is wanted of anybody.
 */
#include "inject/probe/debug/evaluation/evaluation.h"

static bool usable(const struct prb_py_api *py, struct prb_error *err)
{
    return prb_evaluation_find(py, err);
}

/* After a change of what is wanted. */
static bool changed(bool ok)
{
    bool wanted = prb_evaluation.on && (prb_evaluation.wanting || prb_evaluation.gate ||
                                        prb_evaluation.raised || prb_evaluation.new_code);
    if (!prb_evaluation_hook(wanted))
        ok = false;
    prb_evaluation_hook_again();
    prb_evaluation.epoch++;
    memset(prb_evaluation.plain_codes, 0, sizeof prb_evaluation.plain_codes);
    prb_evaluation_apply_all();
    if (!wanted)
        prb_evaluation_keep_none();
    return ok;
}

static bool begin(const struct prb_py_api *py, struct prb_error *err)
{
    if (!prb_evaluation_find(py, err))
        return false;
    char *thread = prb_evaluation.this_thread();
    char *interp = prb_evaluation_word(thread, PRB_OFF(&prb_evaluation.layout, thread, interp));
    if (interp != prb_evaluation.interp)
        return prb_fail(err, PRB_UNSUPPORTED, "another interpreter of this process is debugged");
    if (prb_evaluation.extra < 0)
        prb_evaluation.extra = prb_evaluation.request_extra(prb_evaluation_release_code);
    if (prb_evaluation.extra < 0)
        return prb_fail(err, PRB_UNSUPPORTED,
                        "the interpreter has no room for data of ours at code objects");
    prb_evaluation.on = true;
    return true;
}

static void end(const struct prb_py_api *py)
{
    (void)py;
    if (!prb_evaluation.on)
        return;
    prb_evaluation.gate = prb_evaluation.raised = prb_evaluation.new_code = 0;
    prb_evaluation_drop_codes();
    prb_evaluation.on = false;
    changed(true);
}

static bool plant(const struct prb_py_api *py, struct prb_py *code, const int *lines, size_t count)
{
    (void)py;
    return count <= PRB_EVALUATION_LINES_MAX && changed(prb_evaluation_plant(code, lines, count));
}

static bool watch_new_code(const struct prb_py_api *py, bool on)
{
    (void)py;
    prb_evaluation.new_code = on ? ++prb_evaluation.new_codes : 0;
    return changed(true);
}

static bool watch_exceptions(const struct prb_py_api *py, unsigned events)
{
    (void)py;
    prb_evaluation.raised = events & (PRB_DEBUG_RAISE | PRB_DEBUG_UNWIND);
    return changed(true);
}

static bool step(const struct prb_py_api *py, struct prb_py *code, unsigned events)
{
    (void)py;
    return changed(prb_evaluation_step(code, events));
}

static bool gate(const struct prb_py_api *py, bool armed)
{
    (void)py;
    prb_evaluation.gate =
        armed ? PRB_DEBUG_LINE | PRB_DEBUG_CALL | PRB_DEBUG_RESUME | PRB_DEBUG_JUMP : 0;
    return changed(true);
}

static struct prb_py *local(const struct prb_py_api *py, struct prb_py *frame, struct prb_py *name,
                            long index)
{
    (void)name;
    int32_t at = PRB_OFF(&prb_evaluation.layout, frame, localsplus);
    const char *inner = prb_evaluation_inner(frame);
    struct prb_py *value =
        (struct prb_py *)prb_evaluation_word(inner + index * (long)sizeof(struct prb_py *), at);
    if (value)
        py->Py_IncRef(value);
    return value;
}

static void forked(void)
{
    if (!prb_evaluation.on)
        return;
    prb_evaluation.gate = prb_evaluation.raised = prb_evaluation.new_code = 0;
    prb_evaluation_forget_codes();
    prb_evaluation.on = false;
    prb_evaluation.plain = true;
    changed(true);
    prb_evaluation.plain = false;
}

const struct prb_debug_mechanism prb_debug_evaluation = {
    .name = "frame evaluation",
    .usable = usable,
    .begin = begin,
    .end = end,
    .plant = plant,
    .watch_new_code = watch_new_code,
    .watch_exceptions = watch_exceptions,
    .step = step,
    .gate = gate,
    .local = local,
    .forked = forked,
};
