/* See places.h. */
#include "fleet/history/places.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "proc/stat.h"

#define VERSION 2
#define MAGIC 0x6873696c62757070u /* "ppublish" */
#define TABLES "tables"
#define PROCESSES_MAX 4096
#define RINGS_MAX 1024 /* of a process */
#define CHUNKS_MAX (1 << 16)
#define FILE_MAX ((size_t)4 << 20)

struct head {
    uint64_t magic, version;
    int64_t pid, started;
    uint64_t inode;
    double sent;
    uint64_t asked, tries;
    uint64_t mark, next; /* places of each, behind this */
    char name[PRB_RING_NAME_MAX + 1];
    char job[128];
    char host[80];
    int64_t rank;
    char text[PRB_PLACES_TEXT];
    char folder[PRB_RING_PATH_MAX];
    uint64_t uid; /* whose the folder is */
};

static void file_name(const struct prb_placed *process, const struct prb_place *place, char out[80])
{
    snprintf(out, 80, "%d-%" PRId64 "-%" PRIu64, (int)process->pid, process->started, place->inode);
}

/* Whole, or as it was. */
static bool write_file(int folder, const char *name, const void *data, size_t len)
{
    char temporary[100];
    snprintf(temporary, sizeof temporary, ".%s", name);
    PRB_AUTO_FD int fd =
        openat(folder, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd >= 0 && prb_write_all(fd, data, len) &&
           renameat(folder, temporary, folder, name) == 0;
}

static bool read_file(int folder, const char *name, struct prb_buf *out)
{
    PRB_AUTO_FD int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    return fd >= 0 && prb_buf_read(out, fd, FILE_MAX) && prb_buf_ok(out);
}

/* ---- what there is ---- */

struct prb_placed *prb_places_process(struct prb_places *places, pid_t pid, int64_t started)
{
    for (size_t i = 0; i < places->count; i++)
        if (places->items[i].pid == pid && places->items[i].started == started)
            return &places->items[i];
    if (places->count >= PROCESSES_MAX || !PRB_GROW(places->items, places->count, places->cap))
        return NULL;
    places->items[places->count] =
        (struct prb_placed){.pid = pid, .started = started, .folder = -1};
    return &places->items[places->count++];
}

struct prb_place *prb_places_ring(struct prb_placed *process, uint64_t inode, const char *name,
                                  bool *new_out)
{
    *new_out = false;
    for (size_t i = 0; i < process->count; i++)
        if (process->places[i].inode == inode && strcmp(process->places[i].name, name) == 0)
            return &process->places[i];
    if (process->count >= RINGS_MAX || !PRB_GROW(process->places, process->count, process->cap))
        return NULL;
    *new_out = true;
    struct prb_place *place = &process->places[process->count++];
    *place = (struct prb_place){.inode = inode};
    snprintf(place->name, sizeof place->name, "%s", name);
    return place;
}

static void forget(struct prb_placed *process)
{
    for (size_t i = 0; i < process->count; i++) {
        prb_ring_mark_deinit(&process->places[i].mark);
        prb_ring_mark_deinit(&process->places[i].next);
        prb_buf_deinit(&process->places[i].rows);
    }
    free(process->places);
    if (process->folder >= 0)
        close(process->folder);
}

void prb_places_forget(struct prb_places *places, size_t index)
{
    struct prb_placed *process = &places->items[index];
    char name[80];
    for (size_t i = 0; i < process->count; i++) {
        file_name(process, &process->places[i], name);
        if (places->folder >= 0)
            unlinkat(places->folder, name, 0);
    }
    forget(process);
    places->items[index] = places->items[--places->count];
}

/* ---- files ---- */

/* Of one in a container it is no path that will be there. */
static void folder_path(int folder, struct head *out)
{
    char link[40];
    struct stat owner;
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    ssize_t len = folder >= 0 && fstat(folder, &owner) == 0
                      ? readlink(link, out->folder, sizeof out->folder)
                      : 0;
    if (len <= 0 || (size_t)len >= sizeof out->folder) {
        out->folder[0] = '\0';
        return;
    }
    out->folder[len] = '\0';
    out->uid = owner.st_uid;
}

static int open_folder(const struct head *head)
{
    struct stat owner;
    int fd = head->folder[0] == '/'
                 ? open(head->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
                 : -1;
    if (fd < 0 || (fstat(fd, &owner) == 0 && owner.st_uid == head->uid))
        return fd;
    close(fd);
    return -1;
}

bool prb_place_save(const struct prb_places *places, const struct prb_placed *process,
                    const struct prb_place *place)
{
    char name[80];
    struct head head = {.magic = MAGIC,
                        .version = VERSION,
                        .pid = process->pid,
                        .started = process->started,
                        .inode = place->inode,
                        .sent = place->sent,
                        .asked = place->asked,
                        .tries = place->tries,
                        .mark = place->mark.count,
                        .next = place->next.count};
    PRB_AUTO(prb_buf) struct prb_buf out = {0};
    if (places->folder < 0)
        return false;
    snprintf(head.name, sizeof head.name, "%s", place->name);
    snprintf(head.job, sizeof head.job, "%s", process->job);
    snprintf(head.host, sizeof head.host, "%s", process->host);
    head.rank = process->rank;
    snprintf(head.text, sizeof head.text, "%s", process->text);
    folder_path(process->folder, &head);
    prb_buf_add(&out, &head, sizeof head);
    prb_buf_add(&out, place->mark.places, place->mark.count * sizeof *place->mark.places);
    prb_buf_add(&out, place->next.places, place->next.count * sizeof *place->next.places);
    file_name(process, place, name);
    return prb_buf_ok(&out) && write_file(places->folder, name, out.data, out.len);
}

static bool take_mark(const char *at, uint64_t count, struct prb_ring_mark *out)
{
    if (!count)
        return true;
    if (!(out->places = malloc(count * sizeof *out->places)))
        return false;
    memcpy(out->places, at, count * sizeof *out->places);
    out->count = count;
    return true;
}

static bool load(struct prb_places *places, const char *name)
{
    PRB_AUTO(prb_buf) struct prb_buf bytes = {0};
    struct head head;
    bool new;
    if (!read_file(places->folder, name, &bytes) || bytes.len < sizeof head)
        return false;
    memcpy(&head, bytes.data, sizeof head);
    head.name[sizeof head.name - 1] = head.job[sizeof head.job - 1] = '\0';
    head.host[sizeof head.host - 1] = '\0';
    head.text[sizeof head.text - 1] = head.folder[sizeof head.folder - 1] = '\0';
    if (head.magic != MAGIC || head.version != VERSION || head.pid <= 0 || head.pid > INT32_MAX ||
        head.mark > CHUNKS_MAX || head.next > CHUNKS_MAX ||
        bytes.len != sizeof head + (head.mark + head.next) * sizeof(struct prb_ring_place))
        return false;
    struct prb_placed *process = prb_places_process(places, (pid_t)head.pid, head.started);
    struct prb_place *place =
        process ? prb_places_ring(process, head.inode, head.name, &new) : NULL;
    if (!place || !new)
        return false;
    snprintf(process->job, sizeof process->job, "%s", head.job);
    snprintf(process->host, sizeof process->host, "%s", head.host);
    process->rank = (int)head.rank;
    snprintf(process->text, sizeof process->text, "%s", head.text);
    if (process->folder < 0)
        process->folder = open_folder(&head);
    place->sent = head.sent;
    place->asked = head.asked != 0;
    place->tries = head.tries;
    const char *at = bytes.data + sizeof head;
    return take_mark(at, head.mark, &place->mark) &&
           take_mark(at + head.mark * sizeof(struct prb_ring_place), head.next, &place->next);
}

void prb_places_set_tables(struct prb_places *places, const char *tables)
{
    if (places->folder >= 0)
        write_file(places->folder, TABLES, tables, strlen(tables));
}

/* ---- what namespaces of processes left that are no more ---- */

/* Whether a file's ring is no more: its folder was swept from where this one is, too. */
static bool is_swept(int data, int folder, const char *name)
{
    PRB_AUTO(prb_buf) struct prb_buf bytes = {0};
    struct head head;
    struct stat here, there;
    if (!read_file(folder, name, &bytes) || bytes.len < sizeof head)
        return true;
    memcpy(&head, bytes.data, sizeof head);
    head.folder[sizeof head.folder - 1] = '\0';
    char *slash = strrchr(head.folder, '/');
    if (head.magic != MAGIC || head.version != VERSION)
        return true;
    if (!slash || slash == head.folder || lstat(head.folder, &there) == 0)
        return false;
    *slash = '\0';
    return stat(head.folder, &there) == 0 && fstat(data, &here) == 0 &&
           here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

/* remove: all files; else whether nothing is left that a next agent would publish. */
static bool go_through(int data, int folder, bool remove)
{
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    PRB_AUTO(dir) DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    bool done = dir != NULL;
    if (copy >= 0 && !dir)
        close(copy);
    for (struct dirent *entry; done && (entry = readdir(dir));) {
        const char *name = entry->d_name;
        if (remove && strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
            done = unlinkat(folder, name, 0) == 0;
        else if (!remove && name[0] >= '0' && name[0] <= '9')
            done = is_swept(data, folder, name);
    }
    return done;
}

/* Left by an agent that was killed. */
static void clean(int data, const char *name)
{
    struct stat owner;
    PRB_AUTO_FD int folder = openat(data, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (folder >= 0 && fstat(folder, &owner) == 0 && owner.st_uid == geteuid() &&
        go_through(data, folder, false) && go_through(data, folder, true))
        unlinkat(data, name, AT_REMOVEDIR);
}

static void clean_others(const char *data, const char *own_name, unsigned long own)
{
    PRB_AUTO(dir) DIR *dir = opendir(data);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        unsigned long space;
        int64_t began;
        int end = 0;
        char lock_name[40];
        if (sscanf(entry->d_name, "published-%lu-%" SCNd64 "%n", &space, &began, &end) != 2 ||
            entry->d_name[end] || strcmp(entry->d_name, own_name) == 0)
            continue;
        snprintf(lock_name, sizeof lock_name, "agent-%lu.lock", space);
        PRB_AUTO_FD int lock = openat(dirfd(dir), lock_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
        /* Of our own number we have the lock ourselves. */
        bool has_agent =
            space != own && (lock < 0 ? errno != ENOENT : flock(lock, LOCK_EX | LOCK_NB) != 0);
        if (!has_agent)
            clean(dirfd(dir), entry->d_name);
    }
}

void prb_places_open(struct prb_places *places)
{
    char data[PRB_RING_PATH_MAX], path[sizeof places->path];
    struct stat space, own;
    struct prb_stat first;
    PRB_AUTO(prb_buf) struct prb_buf tables = {0};
    *places = (struct prb_places){.folder = -1};
    if (!prb_ring_data_dir(data, NULL))
        return;
    if (stat("/proc/self/ns/pid", &space) != 0)
        space.st_ino = 0;
    /* The number of a namespace that ended is given to another. */
    snprintf(path, sizeof path, "%s/published-%lu-%" PRId64, data, (unsigned long)space.st_ino,
             prb_stat_of("/proc/1", &first) ? first.field[PRB_STAT_STARTTIME] : (int64_t)0);
    clean_others(data, path + strlen(data) + 1, (unsigned long)space.st_ino);
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return;
    places->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (places->folder >= 0 && (fstat(places->folder, &own) != 0 || own.st_uid != geteuid())) {
        close(places->folder);
        places->folder = -1;
    }
    int copy = places->folder >= 0 ? fcntl(places->folder, F_DUPFD_CLOEXEC, 3) : -1;
    PRB_AUTO(dir) DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    if (copy >= 0 && !dir)
        close(copy);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9' && !load(places, entry->d_name))
            unlinkat(places->folder, entry->d_name, 0);
    if (places->folder >= 0 && read_file(places->folder, TABLES, &tables))
        places->tables = prb_buf_steal(&tables);
    snprintf(places->path, sizeof places->path, "%s", path);
}

void prb_places_close(struct prb_places *places)
{
    if (places->folder >= 0 && !places->count)
        unlinkat(places->folder, TABLES, 0);
    for (size_t i = 0; i < places->count; i++)
        forget(&places->items[i]);
    free(places->items);
    free(places->tables);
    if (places->folder < 0)
        return;
    close(places->folder);
    rmdir(places->path); /* stays while there is something in it */
}
