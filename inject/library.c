/* Where the library is that goes into the target. */
#include "config.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "inject/inject.h"

static bool fail_missing(const char *own, struct prb_error *err)
{
#ifdef PRB_NO_PROBE
    (void)own;
    prb_fail(err, PRB_UNSUPPORTED,
             "this build has no probe (configure --disable-probe, the default without glibc)");
    return prb_error_remedy(err, "Looking, queries and profiles work; for inject, eval and debug "
                                 "use a build with the probe");
#else
    prb_fail(err, PRB_NOT_FOUND, "libprobe.so is not beside %s", own);
    return prb_error_remedy(err, "Install Probing again, or name a library: --dll PATH");
#endif
}

bool prb_inject_library(char *path, size_t size, struct prb_error *err)
{
    /* Installed, in the package and in the build tree; there beside a program that has this library
     * within itself, too. */
    static const char *const addresses[] = {"", "probing/", "../lib/probing/", ".libs/"};
    Dl_info self;
    char own[PATH_MAX];
    if (!dladdr((void *)(uintptr_t)prb_inject_library, &self) || !realpath(self.dli_fname, own))
        return prb_fail(err, PRB_INTERNAL, "the path of this library is not known");
    int folder = (int)(strrchr(own, '/') - own + 1);
    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
        int n = snprintf(path, size, "%.*s%slibprobe.so", folder, own, addresses[i]);
        if (n > 0 && (size_t)n < size && access(path, R_OK) == 0)
            return true;
    }
    return fail_missing(own, err);
}
