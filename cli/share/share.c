/* Finding what is installed for gdb and editors: see share.h. */
#include "cli/share/share.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* From the folder of the program: in the pip package, and in a build folder. */
static const char *const near[] = {"../share", "../python/share"};

static const char installed[] =
#include "cli/share/folder.inc"
    ;

static bool is_at(const char *folder, const char *below, const char *name, char out[PATH_MAX])
{
    PRB_AUTO_FREE char *path = NULL;
    PRB_AUTO_FREE char *real = NULL;
    if (asprintf(&path, "%s%s%s/%s", folder, *below ? "/" : "", below, name) < 0)
        path = NULL;
    real = path ? realpath(path, NULL) : NULL;
    if (!real || strlen(real) >= PATH_MAX)
        return false;
    strcpy(out, real);
    return true;
}

bool prb_share_find(const char *const *names, char out[PATH_MAX], struct prb_error *err)
{
    char own[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", own, sizeof own - 1);
    own[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(own, '/');
    if (slash)
        *slash = '\0';
    for (size_t i = 0; names[i]; i++) {
        for (size_t place = 0; place < sizeof near / sizeof *near; place++)
            if (is_at(own, near[place], names[i], out))
                return true;
        if (is_at(installed, "", names[i], out))
            return true;
    }
    return prb_cli_fail(err, PRB_NOT_FOUND,
                        "`make install` puts it there, and so does the pip package",
                        "%s is neither beside %s nor in %s", names[0], own, installed);
}

bool prb_share_become(const struct prb_run *run, const char **words, const char *remedy,
                      struct prb_error *err)
{
    fflush(stdout);
    execvp(words[0], (char *const *)words);
    *run->status = errno == ENOENT ? 127 : 126;
    return prb_cli_fail(err, PRB_NOT_FOUND, remedy, "%s cannot be started: %s", words[0],
                        strerror(errno));
}
