/* What reading needs of the interpreter, and reading itself: see watch.h. */
#include <dlfcn.h>
#include <string.h>
#include <sys/uio.h>

#include "inject/probe/libc.h"
#include "inject/probe/torch/frames.h"
#include "inject/probe/watch/watch.h"

#define LOWEST 4096u

struct prb_watch_facts prb_watch_facts;

/* In the library that python/api.h's functions are of, or the program itself. */
static void *library(const struct prb_py_api *py)
{
    Dl_info info;
    void *function;
    memcpy(&function, &py->Py_IsInitialized, sizeof function);
    if (!dladdr(function, &info) || !info.dli_fname)
        return NULL;
    return dlopen(info.dli_fname, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
}

static bool find_symbols(struct prb_watch_facts *facts, void *handle)
{
    const struct {
        const char *name;
        void *place;
    } symbols[] = {
        {"PyUnicode_InternFromString", &facts->intern},
        {"PyWeakref_NewRef", &facts->new_reference},
        {"PyCell_Type", &facts->cell},
        {"PyFloat_Type", &facts->float_type},
        {"PyLong_Type", &facts->int_type},
        {"PyBool_Type", &facts->bool_type},
        {"PyUnicode_Type", &facts->str_type},
        {"PyDict_Type", &facts->dict_type},
        {"PyList_Type", &facts->list_type},
        {"PyTuple_Type", &facts->tuple_type},
    };
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *at = dlsym(handle ? handle : RTLD_DEFAULT, symbols[i].name);
        if (!at)
            return false;
        memcpy(symbols[i].place, &at, sizeof at);
    }
    return true;
}

bool prb_watch_facts_find(const struct prb_py_api *py, struct prb_error *err)
{
    if (prb_watch_facts.intern)
        return true;
    struct prb_watch_facts facts = {.none = (const char *)py->none};
    void *handle = library(py);
    bool found = find_symbols(&facts, handle);
    if (handle)
        dlclose(handle); /* it stays loaded: NOLOAD only counted it */
    if (!found)
        return prb_fail(err, PRB_UNSUPPORTED, "this interpreter hides what its objects are");
    if (!prb_torch_frames_find(py, err))
        return false;
    facts.layout = *prb_torch_layout();
    /* Here, as what reads values may be without the GIL. */
    facts.module_key = (const char *)facts.intern("__module__");
    if (!facts.module_key) {
        py->PyErr_Clear();
        return prb_nomem(err);
    }
    prb_watch_facts = facts;
    return true;
}

/* ---- reading ---- */

bool prb_watch_read(const struct prb_watch_reader *reader, const char *at, void *out, size_t len)
{
    if ((uintptr_t)at < LOWEST)
        return false;
    if (reader->direct) {
        memcpy(out, at, len);
        return true;
    }
    struct iovec mine = {out, len}, there = {(void *)(uintptr_t)at, len};
    return process_vm_readv(getpid(), &mine, 1, &there, 1, 0) == (ssize_t)len;
}

bool prb_watch_field(const struct prb_watch_reader *reader, const char *at, enum prb_field field,
                     uint64_t *out)
{
    int32_t offset = prb_watch_facts.layout.offset[field];
    unsigned width = prb_field_width(field);
    *out = 0;
    return offset != PRB_ABSENT && prb_watch_read(reader, at + offset, out, width ? width : 8);
}

const char *prb_watch_type_of(const struct prb_watch_reader *reader, const char *object)
{
    uint64_t type;
    return PRB_WATCH_FIELD(reader, object, object, type, &type) ? (const char *)(uintptr_t)type
                                                                : NULL;
}
