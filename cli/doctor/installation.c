/* What was installed: the parts of ours, the libraries they open, and what is in the way. */
#include "config.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/doctor/doctor.h"
#include "cli/serve/program.h"
#include "inject/inject.h"

/* Opened when a command needs them (lib/base/lazy.h). */
static const struct {
    const char *soname, *what, *package;
} libraries[] = {
    {PRB_SONAME_SQLITE, "query, tables, skill, the store", "libsqlite3-0"},
    {PRB_SONAME_UNWIND, "native frames", "libunwind8"},
    {PRB_SONAME_DW, "native frames", "libdw1"},
    {PRB_SONAME_EDIT, "line editing in repl", "libedit2"},
    {PRB_SONAME_CURSES, "top", "libncursesw6"},
#ifdef PRB_SONAME_ZSTD
    {PRB_SONAME_ZSTD, "packed cores, the store", "libzstd1"},
#endif
#ifdef PRB_SONAME_LZ4
    {PRB_SONAME_LZ4, "cores packed by lz4", "liblz4-1"},
#endif
#ifdef PRB_SONAME_LZMA
    {PRB_SONAME_LZMA, "cores packed by xz", "liblzma5"},
#endif
#ifdef PRB_SONAME_ZLIB
    {PRB_SONAME_ZLIB, "cores packed by gzip", "zlib1g"},
#endif
};

void prb_doctor_libraries(struct prb_doctor *doctor)
{
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        char remedy[200];
        if (dlopen(libraries[i].soname, RTLD_LAZY | RTLD_LOCAL)) {
            prb_doctor_tell(doctor, "library", PRB_WORKS, "", "%s, for %s", libraries[i].soname,
                            libraries[i].what);
            continue;
        }
        snprintf(remedy, sizeof remedy, "Install it (Debian, Ubuntu: apt install %s)",
                 libraries[i].package);
        prb_doctor_tell(doctor, "library", PRB_LIMITED, remedy, "no %s: %s", libraries[i].what,
                        dlerror());
    }
}

void prb_doctor_probe(struct prb_doctor *doctor)
{
    char path[PATH_MAX];
    struct prb_error err = {0};
    if (prb_inject_library(path, sizeof path, &err))
        prb_doctor_tell(doctor, "probe", PRB_WORKS, "", "%s", path);
    else
        prb_doctor_tell_error(doctor, "probe",
                              err.code == PRB_UNSUPPORTED ? PRB_LIMITED : PRB_FAILS, &err);
}

void prb_doctor_server(struct prb_doctor *doctor)
{
    char path[PATH_MAX];
    struct prb_error err = {0};
    if (prb_serve_program(path, &err))
        prb_doctor_tell(doctor, "server", PRB_WORKS, "", "%s", path);
    else
        prb_doctor_tell_error(doctor, "server", PRB_LIMITED, &err);
}

/* ---- the other project of this name ---- */

#define OTHER_REMEDY                                                                               \
    "In that environment: pip uninstall probing && pip install --force-reinstall probing-c"

/* Its command is a script that imports what only it has. */
static bool is_others_command(const char *path)
{
    char text[512];
    PRB_AUTO(file) FILE *file = fopen(path, "re");
    if (!file)
        return false;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    return text[0] == '#' && text[1] == '!' && strstr(text, "probing.cli");
}

/* The start-up hook that its package has beside it, in the environment that a folder of commands
 * belongs to. */
static bool others_package(const char *folder, char out[PATH_MAX])
{
    static const char *const kinds[] = {"site", "dist"};
    bool found = false;
    for (size_t i = 0; i < 2 && !found; i++) {
        char pattern[PATH_MAX];
        glob_t hooks = {0};
        int n = snprintf(pattern, sizeof pattern, "%s/../lib/python3*/%s-packages/probing_hook.py",
                         folder, kinds[i]);
        found = n < (int)sizeof pattern && glob(pattern, GLOB_NOSORT, NULL, &hooks) == 0 &&
                hooks.gl_pathc > 0 && realpath(hooks.gl_pathv[0], out);
        globfree(&hooks);
    }
    return found;
}

/* What of it is in one folder of commands, and in the environment of that folder: how much. */
static size_t tell_others(struct prb_doctor *doctor, const char *folder, char last[PATH_MAX])
{
    char path[PATH_MAX];
    size_t found = 0;
    snprintf(path, sizeof path, "%s/probing", folder);
    if (is_others_command(path)) {
        prb_doctor_tell(doctor, "other-probing", PRB_LIMITED, OTHER_REMEDY,
                        "%s is another project's command", path);
        found++;
    }
    if (others_package(folder, path) && strcmp(path, last) != 0) {
        prb_doctor_tell(doctor, "other-probing", PRB_LIMITED, OTHER_REMEDY,
                        "another project's package of this name: %s", path);
        snprintf(last, PATH_MAX, "%s", path);
        found++;
    }
    return found;
}

/* Along PATH, and where the Python is that our own command belongs to (_tool.py), as a command of
 * an environment can be called by its path. */
void prb_doctor_other_probing(struct prb_doctor *doctor)
{
    size_t found = 0;
    char last[PATH_MAX] = "", own[PATH_MAX - 16] = "";
    const char *python = getenv("PROBING_PYTHON"), *slash = python ? strrchr(python, '/') : NULL;
    if (slash && slash != python && python[0] == '/' && (size_t)(slash - python) < sizeof own) {
        snprintf(own, sizeof own, "%.*s", (int)(slash - python), python);
        found += tell_others(doctor, own, last);
    }
    for (const char *at = getenv("PATH"); at && *at;) {
        char folder[PATH_MAX - 16];
        size_t len = strcspn(at, ":");
        if (*at == '/' && len < sizeof folder) {
            snprintf(folder, sizeof folder, "%.*s", (int)len, at);
            if (strcmp(folder, own) != 0)
                found += tell_others(doctor, folder, last);
        }
        at += len + (at[len] == ':');
    }
    if (!found)
        prb_doctor_tell(doctor, "other-probing", PRB_WORKS, "",
                        "no other project's probing along PATH");
}
