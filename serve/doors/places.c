/*
 * The doors' places: one server a user by a lock, flock(2); the Unix socket, TCP, the token's file
 * and serve-PID.json beside it, all for the owner alone.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "net/token.h"
#include "serve/doors/access.h"

#define BACKLOG 128

static bool is_own(const char *path, struct prb_error *err)
{
    struct stat info;
    if (lstat(path, &info) < 0)
        return prb_fail_sys(err, errno, "looking at %s", path);
    if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid() || info.st_mode & 077)
        return prb_fail(err, PRB_PERMISSION, "%s is not a folder of user %u alone", path,
                        (unsigned)geteuid());
    return true;
}

bool prb_serve_folder(char *out, size_t size, struct prb_error *err)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    struct stat info;
    bool owned =
        runtime && *runtime == '/' && stat(runtime, &info) == 0 && info.st_uid == geteuid();
    int n = owned ? snprintf(out, size, "%s/probing", runtime)
                  : snprintf(out, size, "/tmp/probing-%u", (unsigned)geteuid());
    if (n < 0 || (size_t)n >= size)
        return prb_fail(err, PRB_UNSUPPORTED, "the path of XDG_RUNTIME_DIR is too long");
    if (mkdir(out, 0700) < 0 && errno != EEXIST)
        return prb_fail_sys(err, errno, "making %s", out);
    return is_own(out, err) || prb_error_remedy(err, "set XDG_RUNTIME_DIR to a folder of yours");
}

/* A whole file or none, for the owner alone. */
static bool write_file(const char *path, const char *text, struct prb_error *err)
{
    char fresh[200];
    snprintf(fresh, sizeof fresh, "%s.new", path);
    unlink(fresh);
    PRB_AUTO_FD int fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0 && prb_write_all(fd, text, strlen(text)) && rename(fresh, path) == 0)
        return true;
    prb_fail_sys(err, errno, "writing %s", path);
    if (fd >= 0)
        unlink(fresh);
    return false;
}

/* ---- one server a user ---- */

static int open_lock(const char *folder, int flags)
{
    char path[160];
    snprintf(path, sizeof path, "%s/serve.lock", folder);
    return open(path, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/* Who took the lock writes its pid next, over that of the server before; who only looks at it holds
 * it for a moment, too. */
#define LOOKS 5000
#define BETWEEN_LOOKS_NS 1000000

/* The pid of who holds the lock, which may be in another pid namespace; -1: it has not said so for 5 s.
 * 0: nobody did, and with take it is taken now. */
static long holder(int lock, bool take)
{
    long pid = -1;
    for (int look = 0; look < LOOKS; look++) {
        char text[32] = "";
        if (flock(lock, (take ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0) {
            if (!take)
                flock(lock, LOCK_UN);
            return 0;
        }
        if (errno != EWOULDBLOCK && errno != EINTR)
            break;
        if (pread(lock, text, sizeof text - 1, 0) > 0 && strchr(text, '\n'))
            pid = strtol(text, NULL, 10);
        if (pid > 0 && (kill((pid_t)pid, 0) == 0 || errno == EPERM))
            break;
        nanosleep(&(struct timespec){.tv_nsec = BETWEEN_LOOKS_NS}, NULL);
    }
    return pid;
}

static bool url_of(const char *folder, long pid, char *out, size_t size, struct prb_error *err)
{
    char path[160];
    snprintf(path, sizeof path, "%s/serve-%ld.json", folder, pid);
    json_t *told = json_load_file(path, 0, NULL);
    const char *url = json_string_value(json_object_get(told, "url"));
    const char *token_file = json_string_value(json_object_get(told, "token_file"));
    const char *socket_path = json_string_value(json_object_get(told, "socket"));
    char token[129] = "";
    bool found = socket_path != NULL;
    if (url && token_file && prb_read_text(token_file, token, sizeof token) > 0) {
        token[strcspn(token, "\n")] = '\0';
        snprintf(out, size, "%s/#token=%s", url, token);
    } else if (url) {
        snprintf(out, size, "%s/", url);
    } else if (found) {
        snprintf(out, size, "%s", socket_path);
    }
    json_decref(told);
    return found || prb_fail(err, PRB_NOT_FOUND, "%s says no address", path);
}

bool prb_doors_url(char *out, size_t size, struct prb_error *err)
{
    char folder[96];
    if (!prb_serve_folder(folder, sizeof folder, err))
        return false;
    PRB_AUTO_FD int lock = open_lock(folder, O_RDONLY);
    long pid = lock < 0 ? 0 : holder(lock, false);
    if (pid)
        return url_of(folder, pid, out, size, err);
    prb_fail(err, PRB_NOT_FOUND, "no server of yours runs");
    return prb_error_remedy(err, "`probing serve` starts one");
}

/* The pid in "serve-PID.json" of a server that lives; 0: it is no such name, or was killed. */
static long told_by(const char *name)
{
    char *end, path[40];
    if (strncmp(name, "serve-", 6) != 0)
        return 0;
    long pid = strtol(name + 6, &end, 10);
    snprintf(path, sizeof path, "/proc/%ld", pid);
    return pid > 0 && strcmp(end, ".json") == 0 && access(path, F_OK) == 0 ? pid : 0;
}

size_t prb_doors_own_urls(void (*each)(const char *url))
{
    char folder[96], url[400];
    size_t count = 0;
    if (!prb_serve_folder(folder, sizeof folder, NULL))
        return 0;
    PRB_AUTO(dir) DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        long pid = told_by(entry->d_name);
        if (!pid || !url_of(folder, pid, url, sizeof url, NULL))
            continue;
        each(url);
        count++;
    }
    explicit_bzero(url, sizeof url);
    return count;
}

/* What serve-PID.json says, when that server is at this address. */
static bool own_at(const char *folder, const char *name, const struct prb_address *address,
                   struct prb_own_server *out)
{
    char path[400], wanted[PRB_ADDRESS_TEXT];
    prb_address_print(address, wanted);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    json_auto_t *told = json_load_file(path, 0, NULL);
    const char *url = json_string_value(json_object_get(told, "url"));
    const char *file = json_string_value(json_object_get(told, "token_file"));
    const char *pin = json_string_value(json_object_get(told, "certificate"));
    out->pid = (int)json_integer_value(json_object_get(told, "pid"));
    const char *host = url ? strstr(url, "://") : NULL;
    if (!host || strcmp(host + 3, wanted) != 0)
        return false;
    snprintf(out->pin, sizeof out->pin, "%s", pin ? pin : "");
    if (file && prb_read_text(file, out->token, sizeof out->token) <= 0)
        return false;
    out->token[strcspn(out->token, "\n")] = '\0';
    return true;
}

bool prb_doors_own(const char *address, struct prb_own_server *out, struct prb_error *err)
{
    struct prb_address parsed;
    char folder[96];
    bool found = false;
    *out = (struct prb_own_server){0};
    if (!prb_address_parse(address, &parsed, err) || !prb_serve_folder(folder, sizeof folder, err))
        return false;
    PRB_AUTO(dir) DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && !found && (entry = readdir(dir));) {
        size_t len = strlen(entry->d_name);
        if (strncmp(entry->d_name, "serve-", 6) == 0 && len > 5 &&
            strcmp(entry->d_name + len - 5, ".json") == 0)
            found = own_at(folder, entry->d_name, &parsed, out);
    }
    if (found)
        return true;
    prb_fail(err, PRB_NOT_FOUND, "no server of yours is at %s, and no token is given", address);
    return prb_error_remedy(err, "give its address with the token, as `probing serve` prints it, "
                                 "or set PROBING_AUTH_TOKEN");
}

static bool take_lock(struct prb_serve *serve, struct prb_doors *out, struct prb_error *err)
{
    char url[400], text[32];
    out->lock = open_lock(serve->folder, O_RDWR | O_CREAT);
    if (out->lock < 0)
        return prb_fail_sys(err, errno, "opening %s/serve.lock", serve->folder);
    long pid = holder(out->lock, true);
    if (pid) {
        prb_fail(err, PRB_BUSY, "a server of yours runs already: process %ld", pid);
        if (url_of(serve->folder, pid, url, sizeof url, NULL))
            prb_error_remedy(err, "%s", url);
        return false;
    }
    int n = snprintf(text, sizeof text, "%d\n", (int)getpid());
    return (ftruncate(out->lock, 0) == 0 && pwrite(out->lock, text, (size_t)n, 0) == n) ||
           prb_fail_sys(err, errno, "writing %s/serve.lock", serve->folder);
}

/* ---- servers for some processes ---- */

#define TURN_S 10 /* until one goes on without */

static void wake(int signal) { (void)signal; }

int prb_doors_turn(void)
{
    char folder[96];
    const struct sigaction ours = {.sa_handler = wake}; /* without SA_RESTART: flock(2) ends */
    struct sigaction before;
    if (!prb_serve_folder(folder, sizeof folder, NULL))
        return -1;
    /* The folder itself is the lock: nothing is left in it. */
    int lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (lock < 0 || sigaction(SIGALRM, &ours, &before) != 0)
        return lock;
    alarm(TURN_S);
    flock(lock, LOCK_EX);
    alarm(0);
    sigaction(SIGALRM, &before, NULL);
    return lock;
}

/* ---- doors ---- */

bool prb_serve_socket(const char *folder, const struct prb_address *own, char *out, size_t size,
                      struct prb_error *err)
{
    char text[PRB_ADDRESS_TEXT] = "";
    if (own)
        prb_address_print(own, text);
    int n = own ? snprintf(out, size, "%s/serve-%s.sock", folder, text)
                : snprintf(out, size, "%s/serve.sock", folder);
    return (n > 0 && (size_t)n < size) || prb_fail(err, PRB_UNSUPPORTED, "the path is too long");
}

static bool open_local(struct prb_serve *serve, struct prb_doors *out, struct prb_error *err)
{
    struct prb_address address;
    if (!prb_serve_socket(serve->folder, serve->options->target ? &serve->address : NULL,
                          out->local_path, sizeof out->local_path, err))
        return false;
    unlink(out->local_path); /* of a server that was killed: ours is the lock */
    if (!prb_address_parse(out->local_path, &address, err))
        return false;
    out->local = prb_address_listen(&address, BACKLOG, err);
    return out->local >= 0;
}

bool prb_doors_token(struct prb_serve *serve, struct prb_error *err)
{
    const char *given = getenv("PROBING_AUTH_TOKEN"), *file = serve->options->token_file;
    if (!serve->options->address || serve->options->no_token)
        return true;
    if (file) {
        if (prb_read_text(file, serve->token, sizeof serve->token) <= 0)
            return prb_fail_sys(err, errno, "reading the token from %s", file);
        serve->token[strcspn(serve->token, "\r\n")] = '\0';
    } else if (given && *given) {
        snprintf(serve->token, sizeof serve->token, "%s", given);
    } else {
        char half[PRB_NET_TOKEN_SIZE], other[PRB_NET_TOKEN_SIZE];
        if (!prb_net_token_make(half, err) || !prb_net_token_make(other, err))
            return false;
        snprintf(serve->token, sizeof serve->token, "%s%s", half, other);
        explicit_bzero(half, sizeof half);
        explicit_bzero(other, sizeof other);
    }
    return strlen(serve->token) >= PRB_NET_TOKEN_MIN ||
           prb_fail(err, PRB_USAGE, "the token has fewer than %d characters", PRB_NET_TOKEN_MIN);
}

/* Whether this process is a server; a file of one that was killed may be left. */
static bool is_server(int pid)
{
    char path[40], name[32];
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    return prb_read_text(path, name, sizeof name) > 0 && strncmp(name, "probing-serve", 13) == 0;
}

/* Who has it, if it is ours.  False. */
static bool is_taken(const struct prb_address *address, struct prb_error *err)
{
    char text[PRB_ADDRESS_TEXT];
    struct prb_own_server own;
    struct prb_error none;
    prb_address_print(address, text);
    if (err->sys != EADDRINUSE || !prb_doors_own(text, &own, &none) || !is_server(own.pid))
        return false;
    explicit_bzero(own.token, sizeof own.token);
    int sys = err->sys;
    prb_fail_sys(err, sys, "%s has your server, process %d", text, own.pid);
    return prb_error_remedy(err, "`probing -t %s list` asks it, and another port is free", text);
}

static bool open_tcp(struct prb_serve *serve, struct prb_doors *out, struct prb_error *err)
{
    if (!serve->options->address)
        return true;
    if (!prb_address_parse(serve->options->address, &serve->address, err))
        return false;
    if (serve->address.any.sa_family == AF_UNIX)
        return prb_fail(err, PRB_USAGE, "%s is no address of TCP", serve->options->address);
    if (!prb_access_carries(serve, serve->grants, err))
        return false;
    for (const char *const *name = serve->options->hosts; *name; name++)
        if (strcmp(*name, "*") == 0)
            return prb_fail(err, PRB_USAGE, "--host '*' is for --unix alone");
    if (serve->options->no_token && !prb_address_is_loopback(&serve->address.any))
        return prb_fail(err, PRB_USAGE, "--no-token is for loopback: %s is open to others",
                        serve->options->address);
    out->tcp = prb_address_listen(&serve->address, BACKLOG, err);
    return out->tcp >= 0 || is_taken(&serve->address, err);
}

/* serve-PID.json and the token's file. */
static bool tell(const struct prb_serve *serve, struct prb_doors *doors, struct prb_error *err)
{
    char url[160] = "", text[PRB_ADDRESS_TEXT];
    snprintf(doors->file_path, sizeof doors->file_path, "%s/serve-%d.json", serve->folder,
             (int)getpid());
    if (doors->tcp >= 0) {
        prb_address_print(&serve->address, text);
        snprintf(url, sizeof url, "%s://%s", serve->certificate ? "https" : "http", text);
    }
    if (*serve->token) {
        char line[sizeof serve->token + 1];
        snprintf(doors->token_path, sizeof doors->token_path, "%s/serve-%d.token", serve->folder,
                 (int)getpid());
        snprintf(line, sizeof line, "%s\n", serve->token);
        bool written = write_file(doors->token_path, line, err);
        explicit_bzero(line, sizeof line);
        if (!written)
            return false;
    }
    json_t *told = json_pack("{s:i,s:s,s:s*,s:s*,s:s*}", "pid", (int)getpid(), "socket",
                             doors->local_path, "url", *url ? url : NULL, "token_file",
                             *doors->token_path ? doors->token_path : NULL, "certificate",
                             serve->certificate ? prb_certificate_pin(serve->certificate) : NULL);
    PRB_AUTO_FREE char *json = told ? json_dumps(told, JSON_INDENT(2)) : NULL;
    json_decref(told);
    return json ? write_file(doors->file_path, json, err) : prb_nomem(err);
}

bool prb_doors_open(struct prb_serve *serve, struct prb_doors *out, struct prb_error *err)
{
    *out = (struct prb_doors){.local = -1, .tcp = -1, .lock = -1};
    if (prb_serve_folder(serve->folder, sizeof serve->folder, err) &&
        (serve->options->target || take_lock(serve, out, err)) && open_tcp(serve, out, err) &&
        open_local(serve, out, err) && tell(serve, out, err))
        return true;
    prb_doors_close(out);
    return false;
}

void prb_doors_close(struct prb_doors *doors)
{
    const char *const made[] = {doors->local >= 0 ? doors->local_path : "", doors->file_path,
                                doors->token_path};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        if (*made[i])
            unlink(made[i]);
    const int open[] = {doors->local, doors->tcp, doors->lock};
    for (size_t i = 0; i < sizeof open / sizeof *open; i++)
        if (open[i] >= 0)
            close(open[i]);
    *doors = (struct prb_doors){.local = -1, .tcp = -1, .lock = -1};
}
