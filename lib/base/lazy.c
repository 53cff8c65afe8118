#include "base/lazy.h"

#include <dlfcn.h>
#include <string.h>

static bool missing(const struct prb_lazy *library, struct prb_error *err)
{
    prb_fail(err, PRB_UNSUPPORTED, "%s cannot be used: %s", library->soname, dlerror());
    return prb_error_remedy(err, "Install the library that probing was built with");
}

bool prb_lazy_open(struct prb_lazy *library, struct prb_error *err)
{
    if (atomic_load_explicit(&library->ready, memory_order_acquire))
        return true;
    void *handle = dlopen(library->soname, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return missing(library, err);
    for (size_t i = 0; i < library->count; i++) {
        void *function = dlsym(handle, library->names[i]);
        if (!function) {
            missing(library, err);
            dlclose(handle);
            return false;
        }
        /* Another thread may write the same. */
        memcpy((char *)library->functions + i * sizeof function, &function, sizeof function);
    }
    atomic_store_explicit(&library->ready, true, memory_order_release);
    return true;
}
