/*
 * Backward.  torch._C._ImperativeEngine.run_backward is a method descriptor over a static PyMethodDef of
 * libtorch_python; the function in it is replaced.  Tensor.backward, autograd.grad and whoever calls
 * the engine by himself come through it.
 */
#include "inject/probe/torch/method.h"
#include "inject/probe/torch/torch.h"

typedef struct prb_py *run_function(struct prb_py *self, struct prb_py *args,
                                    struct prb_py *kwargs);

static struct prb_torch_method *_Atomic method;
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
    struct prb_cuda_memory before;
    event.before = outermost && prb_cuda_memory_read(&before) ? &before : NULL;
    thread->scopes++;
    if (outermost)
        prb_torch_collectives_begin();
    struct prb_py *result = call(self, args, kwargs);
    if (thread->arming != arming || !atomic_load_explicit(&prb_torch.on, memory_order_relaxed))
        return result;
    atomic_fetch_sub(&prb_torch.backward, 1);
    event.end = prb_clock_ns();
    if (outermost) {
        prb_torch_move(thread, PRB_PHASE_COMM_WAIT, prb_torch_collectives_waited(event.end),
                       event.end);
        if (atomic_load_explicit(&prb_torch.backwards, memory_order_relaxed))
            prb_torch_record(&event);
        prb_torch_backward_ends(thread, event.end);
    }
    return result;
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
    struct prb_torch_method *found = descriptor ? prb_torch_method_of_descriptor(descriptor) : NULL;
    prb_torch_any_function *ours = (prb_torch_any_function *)on_backward;
    if (!found || !prb_torch_method_is(found, "run_backward") ||
        found->flags != PRB_TORCH_VARARGS_KEYWORDS)
        return prb_fail(err, PRB_UNSUPPORTED,
                        "this PyTorch has no run_backward that can be followed");
    if (found->call != ours) {
        original = (run_function *)found->call;
        atomic_store(&found->call, ours);
    }
    method = found; /* static memory of a library that is never unloaded */
    return true;
}

void prb_torch_backward_disarm(void)
{
    struct prb_torch_method *there = atomic_exchange(&method, NULL);
    if (there && there->call == (prb_torch_any_function *)on_backward)
        atomic_store(&there->call, (prb_torch_any_function *)atomic_load(&original));
}
