/* serve-PID.json in the runtime folder, which each server writes and removes. */
#include "cli/serve/servers.h"

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/print/out.h"

/* The folder, if it is the user's alone; else NULL. */
static DIR *open_folder(void)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    char path[300];
    struct stat info;
    bool own = runtime && *runtime == '/' && stat(runtime, &info) == 0 && info.st_uid == geteuid();
    int len = own ? snprintf(path, sizeof path, "%s/probing", runtime)
                  : snprintf(path, sizeof path, "/tmp/probing-%u", (unsigned)geteuid());
    int fd =
        len < (int)sizeof path ? open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (fd >= 0 && fstat(fd, &info) == 0 && info.st_uid == geteuid() && !(info.st_mode & 077))
        return fdopendir(fd);
    if (fd >= 0)
        close(fd);
    return NULL;
}

/* A file of one that was killed stays. */
static bool is_server(int pid)
{
    char path[40], name[20] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    FILE *file = fopen(path, "re");
    bool found = file && fgets(name, sizeof name, file) && strcmp(name, "probing-serve\n") == 0;
    if (file)
        fclose(file);
    return found;
}

static void note(int pid, const char *place, bool is_url)
{
    char text[200];
    snprintf(text, sizeof text, "process %d serves at %.150s%s", pid, place, is_url ? "/" : "");
    prb_out_note(text);
}

/* Its pid; 0: it has ended. */
static int look_at(int folder, const char *name, bool tell)
{
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    json_t *told = fd >= 0 ? json_loadfd(fd, 0, NULL) : NULL;
    const char *url = json_string_value(json_object_get(told, "url"));
    const char *place = url ? url : json_string_value(json_object_get(told, "socket"));
    int pid = (int)json_integer_value(json_object_get(told, "pid"));
    if (!place || !is_server(pid))
        pid = 0;
    if (pid && tell)
        note(pid, place, url != NULL);
    json_decref(told);
    if (fd >= 0)
        close(fd);
    return pid;
}

static bool is_told(const char *name)
{
    size_t len = strlen(name);
    return len > 11 && strncmp(name, "serve-", 6) == 0 && strcmp(name + len - 5, ".json") == 0;
}

void prb_servers_note(void)
{
    PRB_AUTO(dir) DIR *folder = open_folder();
    for (const struct dirent *one; folder && (one = readdir(folder));)
        if (is_told(one->d_name))
            look_at(dirfd(folder), one->d_name, true);
}

/* Who listens at the socket, as this pid namespace numbers it; 0: nobody, or not this user. */
static int listener(const char *path)
{
    struct sockaddr_un place = {.sun_family = AF_UNIX};
    struct ucred who = {0};
    socklen_t len = sizeof who;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool fits =
        snprintf(place.sun_path, sizeof place.sun_path, "%s", path) < (int)sizeof place.sun_path;
    bool good = fd >= 0 && fits && connect(fd, (struct sockaddr *)&place, sizeof place) == 0 &&
                getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 && who.uid == geteuid();
    if (fd >= 0)
        close(fd);
    return good ? who.pid : 0;
}

int prb_servers_of_host(void)
{
    PRB_AUTO(dir) DIR *folder = open_folder();
    int found = 0;
    for (const struct dirent *one; folder && !found && (one = readdir(folder));) {
        int pid = is_told(one->d_name) ? look_at(dirfd(folder), one->d_name, false) : 0;
        int fd = pid ? openat(dirfd(folder), one->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
        json_t *told = fd >= 0 ? json_loadfd(fd, 0, NULL) : NULL;
        const char *path = json_string_value(json_object_get(told, "socket"));
        const char *name = path ? strrchr(path, '/') : NULL;
        if (name && strcmp(name, "/serve.sock") == 0 && listener(path) == pid)
            found = pid;
        json_decref(told);
        if (fd >= 0)
            close(fd);
    }
    return found;
}
