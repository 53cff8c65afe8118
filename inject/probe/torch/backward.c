/*
 * Backward.  torch._C._ImperativeEngine.run_backward is a method descriptor over a static PyMethodDef of
 * libtorch_python; the function in it is replaced.  Tensor.backward, autograd.grad and whoever calls
 * the engine by himself come through it.
 */
#include <string.h>
#include <sys/uio.h>

#include "inject/probe/torch/frames.h"
#include "inject/probe/torch/torch.h"

#define METH_VARARGS_KEYWORDS 0x0003

typedef struct prb_py *run_function(struct prb_py *self, struct prb_py *args,
                                    struct prb_py *kwargs);

/* PyMethodDef (Include/methodobject.h). */
struct method {
    const char *name;
    run_function *_Atomic call;
    int flags;
    const char *doc;
};

static struct method *_Atomic method;
static run_function *_Atomic original;

static struct prb_py *on_backward(struct prb_py *self, struct prb_py *args, struct prb_py *kwargs)
{
    run_function *call = atomic_load_explicit(&original, memory_order_relaxed);
    struct prb_torch_thread *thread =
        atomic_load_explicit(&prb_torch.on, memory_order_acquire) ? prb_torch_thread() : NULL;
    if (!thread)
        return call(self, args, kwargs);
    unsigned arming = thread->arming;
    bool outermost = atomic_fetch_add(&prb_torch.backward, 1) == 0;
    uint64_t begin = prb_clock_ns();
    if (outermost)
        prb_torch_backward_begins(thread, begin);
    int64_t step = atomic_load_explicit(&prb_torch.step, memory_order_relaxed);
    struct prb_torch_event event = {
        .begin = begin,
        .stage = PRB_TRACE_BACKWARD,
        .depth = (unsigned)atomic_load_explicit(&prb_torch.backward, memory_order_relaxed) - 1,
        .recompute = !outermost,
        .step = step,
        .number = prb_torch_number(thread, step),
        .tid = thread->tid,
    };
    thread->scopes++;
    struct prb_py *result = call(self, args, kwargs);
    if (thread->arming != arming || !atomic_load_explicit(&prb_torch.on, memory_order_relaxed))
        return result;
    atomic_fetch_sub(&prb_torch.backward, 1);
    event.end = prb_clock_ns();
    if (outermost) {
        if (atomic_load_explicit(&prb_torch.backwards, memory_order_relaxed))
            prb_torch_record(&event);
        prb_torch_backward_ends(thread, event.end);
    }
    return result;
}

/* PyMethodDescrObject: a PyDescrObject (object, type, name, qualified name), then the PyMethodDef
 * (Include/cpython/descrobject.h, the same since 3.3). */
static struct method *method_of(const struct prb_py *descriptor)
{
    int32_t at = PRB_OFF(prb_torch_layout(), object, size) + 3 * (int32_t)sizeof(void *);
    return (struct method *)(uintptr_t)prb_torch_word((const char *)descriptor, at);
}

/* It has its own descriptor in the class's dict, which type.__dict__ shows; getattr gives it, too. */
static bool is_run_backward(const struct method *candidate)
{
    struct method copy;
    char name[16] = "";
    struct iovec here = {&copy, sizeof copy}, there = {(void *)(uintptr_t)candidate, sizeof copy};
    if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) != (ssize_t)sizeof copy)
        return false;
    here = (struct iovec){name, sizeof "run_backward"};
    there = (struct iovec){(void *)(uintptr_t)copy.name, sizeof "run_backward"};
    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)here.iov_len &&
           strcmp(name, "run_backward") == 0 && copy.flags == METH_VARARGS_KEYWORDS && copy.call;
}

/* Whether its words can be stored to: the same ones, by the kernel, which refuses where we would
 * fault. */
static bool is_writable(struct method *candidate)
{
    struct method copy = {0};
    memcpy(&copy, candidate, sizeof copy);
    struct iovec here = {&copy.call, sizeof copy.call},
                 there = {(void *)(uintptr_t)&candidate->call, sizeof copy.call};
    return process_vm_writev(getpid(), &here, 1, &there, 1, 0) == (ssize_t)sizeof copy.call;
}

static struct prb_py *find_descriptor(const struct prb_py_api *py)
{
    struct prb_py *modules = py->PyImport_GetModuleDict();
    struct prb_py *torch = modules ? py->PyDict_GetItemString(modules, "torch._C") : NULL;
    PRB_AUTO(prb_py)
    struct prb_py *engine = torch ? py->PyObject_GetAttrString(torch, "_ImperativeEngine") : NULL;
    struct prb_py *found = engine ? py->PyObject_GetAttrString(engine, "run_backward") : NULL;
    if (!found)
        py->PyErr_Clear();
    return found;
}

bool prb_torch_backward_arm(const struct prb_py_api *py, struct prb_error *err)
{
    PRB_AUTO(prb_py) struct prb_py *descriptor = find_descriptor(py);
    struct method *found = descriptor ? method_of(descriptor) : NULL;
    if (!found || !is_run_backward(found) || !is_writable(found))
        return prb_fail(err, PRB_UNSUPPORTED,
                        "this PyTorch has no run_backward that can be followed");
    if (found->call != on_backward) {
        original = found->call;
        atomic_store(&found->call, on_backward);
    }
    method = found; /* static memory of a library that is never unloaded */
    return true;
}

void prb_torch_backward_disarm(void)
{
    struct method *there = atomic_exchange(&method, NULL);
    if (there && there->call == on_backward)
        atomic_store(&there->call, original);
}
