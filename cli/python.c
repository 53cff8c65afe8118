#include "cli/python.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const pythons[] = {"python3", "python"};

bool prb_find_python(char out[PATH_MAX], struct prb_error *err)
{
    const char *path = getenv("PATH"), *given = getenv(PRB_PYTHON_VARIABLE);
    if (given && *given == '/' && strlen(given) < PATH_MAX && access(given, X_OK) == 0) {
        strcpy(out, given);
        return true;
    }
    for (size_t i = 0; i < sizeof pythons / sizeof *pythons; i++)
        for (const char *at = path; at && *at;) {
            size_t len = strcspn(at, ":");
            int n = snprintf(out, PATH_MAX, "%.*s/%s", (int)len, at, pythons[i]);
            if (*at == '/' && n < PATH_MAX && access(out, X_OK) == 0)
                return true;
            at += len + (at[len] == ':');
        }
    return prb_cli_fail(err, PRB_NOT_FOUND, PRB_PYTHON_VARIABLE " names one", "no python on PATH");
}
