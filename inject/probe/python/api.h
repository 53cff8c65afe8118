/*
 * The C functions of the CPython that is in this process, found by name when first needed.
 * All of them are there with these types since 3.4 (Include/ of each version); objects are opaque.
 */
#ifndef PRB_PROBE_PYTHON_API_H
#define PRB_PROBE_PYTHON_API_H

#include <stddef.h>

#include "base/cleanup.h"
#include "base/error.h"

struct prb_py;           /* PyObject */
struct prb_py_allocator; /* PyMemAllocatorEx */
typedef struct prb_py *(*prb_py_function)(struct prb_py *self, struct prb_py *args);

/* PyMethodDef (Include/methodobject.h). */
struct prb_py_method {
    const char *name;
    prb_py_function call;
    int flags;
    const char *doc;
};
#define PRB_PY_VARARGS 0x0001
#define PRB_PY_FASTCALL 0x0080 /* METH_FASTCALL, 3.7+: (self, arguments, count) */
#define PRB_PY_FILE_INPUT 257  /* Py_file_input */

/* result, name, parameters */
#define PRB_PY_FUNCTIONS(F)                                                                        \
    F(int, Py_IsInitialized, (void))                                                               \
    F(int, PyGILState_Ensure, (void))                                                              \
    F(void, PyGILState_Release, (int))                                                             \
    F(void *, PyEval_SaveThread, (void))                                                           \
    F(void, PyEval_RestoreThread, (void *))                                                        \
    F(struct prb_py *, PyEval_GetBuiltins, (void))                                                 \
    F(struct prb_py *, Py_CompileString, (const char *, const char *, int))                        \
    F(struct prb_py *, PyEval_EvalCode, (struct prb_py *, struct prb_py *, struct prb_py *))       \
    F(void, Py_IncRef, (struct prb_py *))                                                          \
    F(void, Py_DecRef, (struct prb_py *))                                                          \
    F(struct prb_py *, PyDict_New, (void))                                                         \
    F(int, PyDict_SetItemString, (struct prb_py *, const char *, struct prb_py *))                 \
    F(struct prb_py *, PyDict_GetItemString, (struct prb_py *, const char *))                      \
    F(struct prb_py *, PyTuple_Pack, (ptrdiff_t, ...))                                             \
    F(struct prb_py *, PyObject_CallObject, (struct prb_py *, struct prb_py *))                    \
    F(struct prb_py *, PyObject_GetAttrString, (struct prb_py *, const char *))                    \
    F(struct prb_py *, PyObject_Str, (struct prb_py *))                                            \
    F(struct prb_py *, PyObject_Repr, (struct prb_py *))                                           \
    F(struct prb_py *, PyUnicode_AsUTF8String, (struct prb_py *))                                  \
    F(struct prb_py *, PyUnicode_DecodeUTF8, (const char *, ptrdiff_t, const char *))              \
    F(struct prb_py *, PyBytes_FromStringAndSize, (const char *, ptrdiff_t))                       \
    F(int, PyBytes_AsStringAndSize, (struct prb_py *, char **, ptrdiff_t *))                       \
    F(struct prb_py *, PyLong_FromUnsignedLongLong, (unsigned long long))                          \
    F(int, PyArg_ParseTuple, (struct prb_py *, const char *, ...))                                 \
    F(struct prb_py *, PyCFunction_NewEx,                                                          \
      (struct prb_py_method *, struct prb_py *, struct prb_py *))                                  \
    F(struct prb_py *, PyCapsule_New, (void *, const char *, void (*)(struct prb_py *)))           \
    F(void *, PyCapsule_GetPointer, (struct prb_py *, const char *))                               \
    F(void, PyErr_Clear, (void))                                                                   \
    F(void, PyErr_Fetch, (struct prb_py **, struct prb_py **, struct prb_py **))                   \
    F(void, PyErr_Restore, (struct prb_py *, struct prb_py *, struct prb_py *))                    \
    F(void, PyErr_SetNone, (struct prb_py *))                                                      \
    F(void, PyErr_SetString, (struct prb_py *, const char *))                                      \
    F(struct prb_py *, PyErr_Occurred, (void))                                                     \
    F(int, PyErr_CheckSignals, (void))                                                             \
    F(void, PyErr_NormalizeException, (struct prb_py **, struct prb_py **, struct prb_py **))      \
    F(struct prb_py *, PyErr_NewException, (const char *, struct prb_py *, struct prb_py *))       \
    F(int, PyException_SetTraceback, (struct prb_py *, struct prb_py *))                           \
    F(struct prb_py *, PyException_GetContext, (struct prb_py *))                                  \
    F(void, PyException_SetContext, (struct prb_py *, struct prb_py *))                            \
    F(struct prb_py *, PyImport_GetModuleDict, (void))                                             \
    F(struct prb_py *, PyObject_Type, (struct prb_py *))                                           \
    F(double, PyFloat_AsDouble, (struct prb_py *))                                                 \
    F(struct prb_py *, PyFloat_FromDouble, (double))                                               \
    F(int, PyErr_GivenExceptionMatches, (struct prb_py *, struct prb_py *))                        \
    F(int, PyDict_SetItem, (struct prb_py *, struct prb_py *, struct prb_py *))                    \
    F(struct prb_py *, PyEval_GetGlobals, (void))                                                  \
    F(struct prb_py *, PyEval_GetLocals, (void))                                                   \
    F(struct prb_py *, PyEval_GetFrame, (void))                                                    \
    F(struct prb_py *, PySys_GetObject, (const char *))                                            \
    F(long, PyLong_AsLong, (struct prb_py *))                                                      \
    F(struct prb_py *, PyLong_FromLong, (long))                                                    \
    F(int, PyObject_IsTrue, (struct prb_py *))                                                     \
    F(ptrdiff_t, PyTuple_Size, (struct prb_py *))                                                  \
    F(struct prb_py *, PyTuple_GetItem, (struct prb_py *, ptrdiff_t))                              \
    F(struct prb_py *, PyList_New, (ptrdiff_t))                                                    \
    F(int, PyList_Append, (struct prb_py *, struct prb_py *))                                      \
    F(ptrdiff_t, PyList_Size, (struct prb_py *))                                                   \
    F(struct prb_py *, PyList_GetItem, (struct prb_py *, ptrdiff_t))                               \
    F(unsigned long, PyThread_get_thread_ident, (void))                                            \
    F(int, PyThreadState_SetAsyncExc, (unsigned long, struct prb_py *))

/* The same; NULL where this CPython has none. */
#define PRB_PY_OPTIONAL(F)                                                                         \
    F(int, PyFrame_LocalsToFast, (struct prb_py *, int))   /* up to 3.12 it does something */      \
    F(struct prb_py *, PyFrame_GetBack, (struct prb_py *)) /* 3.9 */                               \
    F(struct prb_py *, PyFrame_GetVar, (struct prb_py *, struct prb_py *)) /* 3.12 */              \
    /* Up to 3.6 the GIL is made with the second thread (Python/ceval.c). */                       \
    F(int, PyEval_ThreadsInitialized, (void))                                                      \
    F(void, PyEval_InitThreads, (void))                                                            \
    F(int, Py_AddPendingCall, (int (*)(void *), void *))                                           \
    F(void *, _PyThreadState_UncheckedGet, (void))                                                 \
    F(void *, PyThreadState_GetUnchecked, (void)) /* 3.13: the same */                             \
    F(void *, PyGILState_GetThisThreadState, (void))                                               \
    F(void, PyMem_GetAllocator, (int, struct prb_py_allocator *))                                  \
    F(void, PyMem_SetAllocator, (int, struct prb_py_allocator *))                                  \
    F(void *, PyMem_Malloc, (size_t))                                                              \
    F(void, PyMem_Free, (void *))                                                                  \
    F(void *, PyObject_Malloc, (size_t))                                                           \
    F(void *, PyObject_Calloc, (size_t, size_t)) /* 3.5 */                                         \
    F(void, PyObject_Free, (void *))                                                               \
    F(void *, PyInterpreterState_Head, (void))                                                     \
    F(int, PyCode_Addr2Line, (struct prb_py *, int))                                               \
    F(struct prb_py *, PyMarshal_ReadObjectFromString, (const char *, ptrdiff_t))                  \
    F(long, PyImport_GetMagicNumber, (void))                                                       \
    F(const char *, Py_GetVersion, (void))

struct prb_py_api {
#define F(result, name, parameters) result(*name) parameters;
    PRB_PY_FUNCTIONS(F)
    PRB_PY_OPTIONAL(F)
#undef F
    struct prb_py *none;
    struct prb_py **keyboard_interrupt; /* PyExc_KeyboardInterrupt */
    struct prb_py **exception, **runtime_error, **memory_error;
    int (*is_finalizing)(void); /* NULL before 3.7 */
    void **finalizing;          /* 3.6: _Py_Finalizing, set when it ends */
};

/* The functions, the same at every call; NULL and NOT_PYTHON when there are none or no interpreter
 * runs yet. */
const struct prb_py_api *prb_py_api(struct prb_error *err);
/* None, a new reference: the answer of a hook that CPython calls while it ends, when the functions are
 * no longer to be had. */
struct prb_py *prb_py_nothing(void);
/* Whether the interpreter ends: nobody may take the GIL any more. */
bool prb_py_finalizing(const struct prb_py_api *py);
/* Before PyGILState_Ensure: a program that computes in its only thread must make the GIL itself, as
 * it would go on without one.  BUSY: that thread is in native code which does not come back to
 * Python. */
bool prb_py_make_gil(const struct prb_py_api *py, struct prb_error *err);
/* Py_XDECREF; with the GIL. */
void prb_py_drop(struct prb_py *object);
PRB_DEFINE_AUTO_PTR(prb_py, struct prb_py, prb_py_drop)
/* In a child after fork(2). */
void prb_py_forked(void);

/* ---- what is ours (inside.c) ---- */

/* This thread begins to run code of ours (1), or ends it (-1): hooks leave it alone meanwhile. */
void prb_py_inside(int change);
bool prb_py_is_inside(void);
/* The class of our own interruptions (borrowed): a KeyboardInterrupt of ours, not the user's. */
struct prb_py *prb_py_interruption(const struct prb_py_api *py);

#endif
