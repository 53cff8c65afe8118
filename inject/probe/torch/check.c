/*
 * Whether the observer works in a version of PyTorch that this release does not know: a label of our
 * own is opened, with the GIL, and must arrive with its name.  Known versions are not asked: a
 * profiler of the program's would see the label.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "inject/probe/torch/torch.h"

#define LABEL "probing: is this seen?"
#define FIRST 113 /* 1.13: since then the observer can be changed while others run */
#define LAST 214  /* 2.14: the last one whose headers were compared */

atomic_bool prb_torch_checking;
static atomic_bool seen;

void prb_torch_check_sees(const char *name)
{
    char there[sizeof LABEL] = "";
    struct iovec to = {there, sizeof there}, from = {(void *)(uintptr_t)name, sizeof there};
    /* By the kernel: another version may return another thing. */
    if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)sizeof there &&
        memcmp(there, LABEL, sizeof LABEL) == 0)
        atomic_store(&seen, true);
}

/* "2.13.0+cpu"; 0: it says none. */
static int version_of(const struct prb_py_api *py, char out[32])
{
    struct prb_py *modules = py->PyImport_GetModuleDict();
    struct prb_py *torch = modules ? py->PyDict_GetItemString(modules, "torch") : NULL;
    PRB_AUTO(prb_py)
    struct prb_py *version = torch ? py->PyObject_GetAttrString(torch, "__version__") : NULL;
    PRB_AUTO(prb_py) struct prb_py *bytes = version ? py->PyUnicode_AsUTF8String(version) : NULL;
    char *text, *end;
    ptrdiff_t len;
    snprintf(out, 32, "?");
    if (!bytes || py->PyBytes_AsStringAndSize(bytes, &text, &len) != 0) {
        py->PyErr_Clear();
        return 0;
    }
    snprintf(out, 32, "%s", text);
    long major = strtol(text, &end, 10), minor = *end == '.' ? strtol(end + 1, NULL, 10) : -1;
    return major < 0 || major > 99 || minor < 0 || minor > 99 ? 0 : (int)(100 * major + minor);
}

static bool call(const struct prb_py_api *py, struct prb_py *object, const char *method,
                 struct prb_py *args)
{
    PRB_AUTO(prb_py) struct prb_py *given = args;
    PRB_AUTO(prb_py)
    struct prb_py *function = object ? py->PyObject_GetAttrString(object, method) : NULL;
    PRB_AUTO(prb_py)
    struct prb_py *result = function && given ? py->PyObject_CallObject(function, given) : NULL;
    return result;
}

static void open_label(const struct prb_py_api *py)
{
    struct prb_py *modules = py->PyImport_GetModuleDict();
    struct prb_py *profiler =
        modules ? py->PyDict_GetItemString(modules, "torch.autograd.profiler") : NULL;
    PRB_AUTO(prb_py)
    struct prb_py *kind = profiler ? py->PyObject_GetAttrString(profiler, "record_function") : NULL;
    PRB_AUTO(prb_py)
    struct prb_py *name = py->PyUnicode_DecodeUTF8(LABEL, sizeof LABEL - 1, NULL);
    PRB_AUTO(prb_py) struct prb_py *args = name ? py->PyTuple_Pack(1, name) : NULL;
    PRB_AUTO(prb_py)
    struct prb_py *label = kind && args ? py->PyObject_CallObject(kind, args) : NULL;
    if (!label || !call(py, label, "__enter__", py->PyTuple_Pack(0)) ||
        !call(py, label, "__exit__", py->PyTuple_Pack(3, py->none, py->none, py->none)))
        py->PyErr_Clear();
}

bool prb_torch_check_begin(const struct prb_py_api *py)
{
    char text[32];
    int version = version_of(py, text);
    bool known = version >= FIRST && version <= LAST;
    atomic_store(&seen, false);
    atomic_store(&prb_torch_checking, !known);
    return !known;
}

bool prb_torch_check_end(const struct prb_py_api *py, struct prb_error *err)
{
    char text[32];
    open_label(py);
    atomic_store(&prb_torch_checking, false);
    version_of(py, text);
    return seen ||
           prb_fail(err, PRB_UNSUPPORTED,
                    "PyTorch %s is not known to this release, and labels do not arrive", text);
}
