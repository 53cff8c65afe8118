/* A process by /proc, as the other project's clients know it. */
#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "serve/upstream/upstream.h"

#include "base/cleanup.h"
#include "format/json.h"

#define THREADS_MAX 65536

static json_t *threads_of(pid_t pid)
{
    char path[40];
    json_t *threads = json_array();
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    PRB_AUTO(dir) DIR *dir = opendir(path);
    for (struct dirent *entry;
         dir && json_array_size(threads) < THREADS_MAX && (entry = readdir(dir));)
        if (isdigit((unsigned char)entry->d_name[0]))
            json_array_append_new(threads, json_integer(strtol(entry->d_name, NULL, 10)));
    return threads;
}

json_t *prb_upstream_process(pid_t pid, const char *exe, const char *cmd, json_t *env)
{
    char link[40], cwd[PATH_MAX];
    snprintf(link, sizeof link, "/proc/%d/cwd", (int)pid);
    ssize_t len = readlink(link, cwd, sizeof cwd - 1);
    cwd[len > 0 ? len : 0] = '\0';
    return json_pack("{s:i,s:o,s:o,s:o,s:o,s:i,s:o}", "pid", (int)pid, "exe",
                     prb_json_text(exe ? exe : ""), "env", env, "cmd",
                     prb_json_text(cmd ? cmd : ""), "cwd", prb_json_text(cwd), "main_thread",
                     (int)pid, "threads", threads_of(pid));
}
