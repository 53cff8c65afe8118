/*
 * Steps of optimizers where the observer is not to be had: the hooks that PyTorch 2.0 and newer has
 * for all of them (register_optimizer_step_pre_hook and …_post_hook of torch/optim/optimizer.py), with
 * functions of C.
 */
#include <stdio.h>
#include <string.h>

#include "inject/probe/torch/torch.h"

#define MODULE "torch.optim.optimizer"

static struct prb_py *handles[2]; /* by which they are taken out again */

/* ---- the hooks, with the GIL ---- */

/* As PyTorch labels it: "Optimizer.step#AdamW.step". */
static unsigned label_of(const struct prb_py_api *py, struct prb_py *optimizer)
{
    char text[PRB_TORCH_LABEL_MAX + 1], *name;
    ptrdiff_t len;
    PRB_AUTO(prb_py) struct prb_py *type = py->PyObject_Type(optimizer);
    PRB_AUTO(prb_py)
    struct prb_py *called = type ? py->PyObject_GetAttrString(type, "__name__") : NULL;
    PRB_AUTO(prb_py) struct prb_py *bytes = called ? py->PyUnicode_AsUTF8String(called) : NULL;
    if (!bytes || py->PyBytes_AsStringAndSize(bytes, &name, &len) != 0) {
        py->PyErr_Clear();
        return 0;
    }
    int made = snprintf(text, sizeof text, "Optimizer.step#%s.step", name);
    return prb_torch_label(text, made < PRB_TORCH_LABEL_MAX ? (size_t)made : PRB_TORCH_LABEL_MAX);
}

static struct prb_torch_thread *thread_if_on(void)
{
    return atomic_load_explicit(&prb_torch.on, memory_order_acquire) ? prb_torch_thread() : NULL;
}

static struct prb_py *nothing(const struct prb_py_api *py)
{
    py->Py_IncRef(py->none);
    return py->none;
}

static struct prb_py *before(struct prb_py *self, struct prb_py *args)
{
    const struct prb_py_api *py = prb_py_api(NULL);
    struct prb_torch_thread *thread = thread_if_on();
    (void)self, (void)args;
    if (!thread)
        return nothing(py);
    uint64_t now = prb_clock_ns();
    if (thread->hook_begin) /* that one raised */
        prb_torch_leave(thread, now);
    prb_torch_enter(thread, PRB_PHASE_OPTIMIZER, now);
    thread->hook_begin = now;
    return nothing(py);
}

/* (optimizer, args, kwargs) */
static struct prb_py *after(struct prb_py *self, struct prb_py *args)
{
    const struct prb_py_api *py = prb_py_api(NULL);
    struct prb_torch_thread *thread = thread_if_on();
    struct prb_py *optimizer = py->PyTuple_GetItem(args, 0);
    (void)self;
    if (!thread || !thread->hook_begin || !optimizer) {
        py->PyErr_Clear();
        return nothing(py);
    }
    unsigned label = label_of(py, optimizer);
    uint64_t now = prb_clock_ns();
    prb_torch_leave(thread, now);
    int64_t step = prb_torch_step_of(true);
    const struct prb_torch_event event = {
        .begin = thread->hook_begin,
        .end = now,
        .stage = PRB_TRACE_OPTIMIZER,
        .object = (uintptr_t)optimizer,
        .label = label,
        .depth = thread->depth,
        .step = step,
        .number = prb_torch_number(thread, step),
        .tid = thread->tid,
    };
    thread->hook_begin = 0;
    thread->scopes++;
    prb_torch_record(&event);
    prb_torch_optimizer_ends(thread, now, event.object, label);
    return nothing(py);
}

/* ---- in and out ---- */

static struct prb_py *add(const struct prb_py_api *py, struct prb_py *module, const char *name,
                          struct prb_py_method *method)
{
    PRB_AUTO(prb_py) struct prb_py *function = py->PyCFunction_NewEx(method, NULL, NULL);
    PRB_AUTO(prb_py) struct prb_py *args = function ? py->PyTuple_Pack(1, function) : NULL;
    PRB_AUTO(prb_py)
    struct prb_py *registers = args ? py->PyObject_GetAttrString(module, name) : NULL;
    struct prb_py *handle = registers ? py->PyObject_CallObject(registers, args) : NULL;
    if (!handle)
        py->PyErr_Clear();
    return handle;
}

bool prb_torch_optimizers_arm(const struct prb_py_api *py, struct prb_error *err)
{
    static struct prb_py_method methods[] = {{"probing_before", before, PRB_PY_VARARGS, NULL},
                                             {"probing_after", after, PRB_PY_VARARGS, NULL}};
    struct prb_py *modules = py->PyImport_GetModuleDict();
    struct prb_py *module = modules ? py->PyDict_GetItemString(modules, MODULE) : NULL;
    if (handles[0] && handles[1])
        return true;
    if (module) {
        handles[0] = add(py, module, "register_optimizer_step_pre_hook", &methods[0]);
        handles[1] =
            handles[0] ? add(py, module, "register_optimizer_step_post_hook", &methods[1]) : NULL;
    }
    if (handles[1])
        return true;
    prb_torch_optimizers_disarm(py);
    return prb_fail(err, PRB_UNSUPPORTED, "this PyTorch has no hooks for all optimizers");
}

void prb_torch_optimizers_disarm(const struct prb_py_api *py)
{
    for (size_t i = 0; i < sizeof handles / sizeof *handles; i++) {
        PRB_AUTO(prb_py) struct prb_py *handle = handles[i];
        handles[i] = NULL;
        PRB_AUTO(prb_py)
        struct prb_py *remove = handle ? py->PyObject_GetAttrString(handle, "remove") : NULL;
        PRB_AUTO(prb_py)
        struct prb_py *none = remove ? py->PyObject_CallObject(remove, NULL) : NULL;
        if (handle && !none)
            py->PyErr_Clear();
    }
}
