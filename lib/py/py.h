/*
 * One CPython runtime inside a target: where it is, which layout fits, and the two ways to read
 * through it.
 *
 * Found by symbol, section or cookie in the modules that look like an interpreter (find.c); a
 * process can hold
 * several.  Everything in lib/py takes a struct prb_py.
 */
#ifndef PRB_PY_PY_H
#define PRB_PY_PY_H

#include "mem/view.h"
#include "proc/elf.h"
#include "py/layout/layout.h"

struct prb_py {
    struct prb_mem *mem;      /* borrowed */
    struct prb_layout layout; /* a copy: patch level and debug offsets applied */
    uint32_t hexversion;      /* 0x030b07f0 */
    prb_addr runtime;         /* _PyRuntime; 0 up to 3.6 */
    prb_addr interpreters;    /* address of the word that heads the interpreter list */
    /* address of _PyThreadState_Current / gilstate.tstate_current; 0: none */
    prb_addr tstate_current;
    /* ≤3.6 with symbols, the GIL's variables of Python/ceval_gil.h; 0: not known */
    prb_addr gil_static, gil_static_end; /* gil_cond */
    prb_addr gil_last_holder, gil_switch_number;
    prb_addr gc_generation0;      /* ≤3.6 with symbols, the word _PyGC_generation0; else 0 */
    struct prb_module *module;    /* the file it lives in; NULL when found without */
    size_t frames_max;            /* of one stack that are followed; 0: PRB_FRAMES_MAX */
    bool by_hash;                 /* dicts may be looked up by hash: nothing records what is read */
    prb_addr hash_secret;         /* _Py_HashSecret; 0: not known yet */
    prb_addr code_type;           /* PyCode_Type, once a code object was seen; else 0 */
    char origin[240];             /* "3.11.7 by Py_Version, table 3.11 checked on 2 threads" */
    struct prb_code_cache *codes; /* code objects read so far (code.h) */
};

/*
 * Find the runtimes of a target, the most likely one first.  modules is borrowed and must
 * outlive them. Errors: NOT_PYTHON, UNSUPPORTED (with the version found), PERMISSION, GONE.
 */
bool prb_py_find(struct prb_modules *modules, struct prb_mem *mem, struct prb_py **out,
                 size_t *count_out, struct prb_error *err);
/* Where the key of its string hashes lies; 0: a dict must be walked. */
prb_addr prb_py_hash_secret(struct prb_py *py);
void prb_py_free(struct prb_py *runtimes, size_t count);

/* ---- reading fields ---- */

/* The field of the struct at addr, by its width (1, 2, 4, 8 bytes, zero-extended).  UNSUPPORTED
 * when the layout lacks it. */
bool prb_py_field(struct prb_py *py, prb_addr addr, enum prb_field field, uint64_t *out,
                  struct prb_error *err);
#define PRB_FIELD_OF(py, addr, struct_, field, out, err)                                           \
    prb_py_field(py, addr, PRB_F_##struct_##_##field, out, err)

#endif
