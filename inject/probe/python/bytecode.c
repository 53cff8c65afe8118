/*
 * See bytecode.h.  PyMarshal_ReadObjectFromString trusts its bytes: only those with a right
 * check that were made by the same version of CPython come to it.
 */
#include "inject/probe/python/bytecode.h"

#include <pthread.h>
#include <string.h>

#include "inject/probe/libc.h"
#include "inject/probe/python/bytecode_form.h"

struct prb_bytecode_blob {
    unsigned references;
    char blob[];
};

static struct {
    pthread_mutex_t lock;
    struct prb_bytecode_blob *now;
} bytecode = {.lock = PTHREAD_MUTEX_INITIALIZER};

void prb_bytecode_release(struct prb_bytecode_blob *kept)
{
    if (__atomic_sub_fetch(&kept->references, 1, __ATOMIC_ACQ_REL) == 0)
        free(kept);
}

struct prb_bytecode_blob *prb_bytecode_copy(const char *blob, size_t len)
{
    struct prb_bytecode_blob *kept =
        prb_bytecode_sound(blob, len) ? malloc(sizeof *kept + len) : NULL;
    if (!kept)
        return NULL;
    kept->references = 1;
    memcpy(kept->blob, blob, len);
    return kept;
}

void prb_bytecode_use(struct prb_bytecode_blob *kept)
{
    pthread_mutex_lock(&bytecode.lock);
    struct prb_bytecode_blob *before = bytecode.now;
    bytecode.now = kept;
    pthread_mutex_unlock(&bytecode.lock);
    if (before)
        prb_bytecode_release(before);
}

void prb_bytecode_forked(void)
{
    pthread_mutex_init(&bytecode.lock, NULL);
    bytecode.now = NULL;
}

static struct prb_bytecode_blob *hold(void)
{
    pthread_mutex_lock(&bytecode.lock);
    struct prb_bytecode_blob *kept = bytecode.now;
    if (kept)
        __atomic_add_fetch(&kept->references, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&bytecode.lock);
    return kept;
}

/* Whether it was made by an interpreter like this one. */
static bool is_own(const struct prb_py_api *py, const char *blob)
{
    struct prb_bytecode_head head;
    memcpy(&head, blob, sizeof head);
    if (!py->PyMarshal_ReadObjectFromString || !py->PyImport_GetMagicNumber || !py->Py_GetVersion)
        return false;
    size_t len;
    const char *made_by = prb_bytecode_version(blob, &len), *version = py->Py_GetVersion();
    uint32_t magic = (uint32_t)py->PyImport_GetMagicNumber(), made_for;
    memcpy(&made_for, head.magic, sizeof made_for);
    return magic == made_for && strlen(version) == len && memcmp(version, made_by, len) == 0;
}

struct prb_py *prb_bytecode_pieces(const struct prb_py_api *py, const char *file)
{
    PRB_AUTO(prb_bytecode_blob) struct prb_bytecode_blob *kept = hold();
    size_t len;
    const char *data = kept ? prb_bytecode_find(kept->blob, file, &len) : NULL;
    if (!data || !is_own(py, kept->blob))
        return NULL;
    PRB_AUTO(prb_py)
    struct prb_py *pieces = py->PyMarshal_ReadObjectFromString(data, (ptrdiff_t)len);
    if (!pieces || py->PyTuple_Size(pieces) < 0) {
        py->PyErr_Clear();
        return NULL;
    }
    return PRB_STEAL(pieces);
}
