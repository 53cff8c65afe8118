/* Finding and reading bus files, which may hold anything: see bus_file.h. */
#include "fleet/bus/bus_file.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"

#define FILE_MAX (256 << 10)
#define SERVER_MAX 280
#define TEXT_MAX 4096
#define CA_MAX (128 << 10)

const char *prb_bus_class_name(enum prb_bus_class class)
{
    static const char *const names[] = {
#define CLASS(name) #name,
        PRB_BUS_CLASSES(CLASS)
#undef CLASS
    };
    return names[class];
}

/* ---- addresses ---- */

static const char *const schemes[] = {"tls://", "nats://"};

/* The part behind "SCHEME://", or NULL. */
static const char *address_of(const char *server)
{
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (strncmp(server, schemes[i], strlen(schemes[i])) == 0)
            return server + strlen(schemes[i]);
    return NULL;
}

bool prb_bus_server_is_tls(const char *server) { return strncmp(server, "tls://", 6) == 0; }

bool prb_bus_server_is_loopback(const char *server)
{
    static const char *const names[] = {"127.", "localhost:", "[::1]:"};
    const char *at = address_of(server);
    for (size_t i = 0; at && i < sizeof names / sizeof *names; i++) {
        if (strncmp(at, names[i], strlen(names[i])) != 0)
            continue;
        /* 127.0.0.1, and not the name 127.example.com */
        return i || at[strspn(at, "0123456789.")] == ':';
    }
    return false;
}

/* HOST:PORT, [V6]:PORT: characters of host names and addresses alone. */
static bool good_server(const char *server)
{
    static const char of_host[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
    const char *at = address_of(server);
    if (!at || strnlen(server, SERVER_MAX) == SERVER_MAX)
        return false;
    size_t host = *at == '[' ? strspn(at + 1, "0123456789abcdefABCDEF:.") + 1 : strspn(at, of_host);
    if (*at == '[' && at[host++] != ']')
        return false;
    if (host == 0 || at[host] != ':')
        return false;
    const char *port = at + host + 1;
    size_t digits = strspn(port, "0123456789");
    long number = digits && digits <= 5 ? strtol(port, NULL, 10) : 0;
    return port[digits] == '\0' && number > 0 && number < 65536;
}

/* ---- one file ---- */

void prb_bus_file_deinit(struct prb_bus_file *file)
{
    for (size_t i = 0; i < file->server_count; i++)
        free(file->servers[i]);
    if (file->password)
        explicit_bzero(file->password, strlen(file->password));
    free(file->path);
    free(file->ca);
    free(file->creds);
    free(file->user);
    free(file->password);
    free(file->name);
    explicit_bzero(&file->key, sizeof file->key);
    *file = (struct prb_bus_file){0};
}

/* Ours or root's, and nobody else reads or changes it; the group may read what root gave it, as a
 * Kubernetes secret is. */
static bool is_private(const struct stat *info)
{
    return (info->st_uid == geteuid() || info->st_uid == 0) && !(info->st_mode & 027) &&
           (info->st_uid == 0 || !(info->st_mode & 040));
}

static bool read_text(const char *path, struct prb_buf *text, struct prb_error *err)
{
    struct stat info;
    PRB_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &info) != 0)
        return prb_fail_sys(err, errno, "the bus file %.200s", path);
    if (!S_ISREG(info.st_mode))
        return prb_fail(err, PRB_USAGE, "the bus file %.200s is not a file", path);
    if (!is_private(&info)) {
        prb_fail(err, PRB_PERMISSION,
                 "the bus file %.200s, which holds a secret, is open to others", path);
        return prb_error_remedy(err, "chmod 600 %.200s; it must belong to you or root", path);
    }
    if (prb_buf_read(text, fd, FILE_MAX))
        return true;
    if (errno == EFBIG)
        return prb_fail(err, PRB_CORRUPT, "the bus file %.200s is too large", path);
    return prb_fail_sys(err, errno, "the bus file %.200s", path);
}

/* NULL *out when there is none of that name. */
static bool take_text(const json_t *object, const char *name, size_t most, char **out,
                      struct prb_error *err)
{
    const json_t *value = json_object_get(object, name);
    if (!value)
        return true;
    const char *text = json_string_value(value);
    size_t len = json_string_length(value);
    if (!text || !len || len > most || strlen(text) != len)
        return prb_fail(err, PRB_CORRUPT, "\"%s\" must be a string of at most %zu bytes", name,
                        most);
    *out = strdup(text);
    return *out || prb_nomem(err);
}

static bool take_servers(const json_t *object, struct prb_bus_file *file, struct prb_error *err)
{
    const json_t *list = json_object_get(object, "servers");
    size_t count = json_array_size(list);
    if (!count || count > PRB_BUS_SERVERS_MAX)
        return prb_fail(err, PRB_CORRUPT, "\"servers\" must be a list of 1 to %d addresses",
                        PRB_BUS_SERVERS_MAX);
    for (size_t i = 0; i < count; i++) {
        const json_t *one = json_array_get(list, i);
        const char *text = json_string_value(one);
        if (!text || strlen(text) != json_string_length(one) || !good_server(text))
            return prb_fail(err, PRB_CORRUPT, "server %zu is not of the form tls://HOST:PORT",
                            i + 1);
        if (!(file->servers[i] = strdup(text)))
            return prb_nomem(err);
        file->server_count++;
    }
    return true;
}

static bool take_key(const json_t *object, struct prb_bus_file *file, struct prb_error *err)
{
    char *seed = NULL;
    if (!take_text(object, "nkey", TEXT_MAX, &seed, err) || !seed)
        return !json_object_get(object, "nkey");
    file->has_key = prb_nkey_parse(seed, &file->key, err);
    explicit_bzero(seed, strlen(seed));
    free(seed);
    return file->has_key || prb_error_prefix(err, "\"nkey\"");
}

static bool take_class(const json_t *object, struct prb_bus_file *file, struct prb_error *err)
{
    const json_t *value = json_object_get(object, "class");
    const char *text = json_string_value(value);
    for (int i = 0; text && i < PRB_BUS_CLASS_COUNT; i++) {
        if (strcmp(text, prb_bus_class_name(i)) == 0) {
            file->class = i;
            return file->has_class = true;
        }
    }
    return !value || prb_fail(err, PRB_CORRUPT, "\"class\" is agent, look, control or eval");
}

static bool take_trusted(const json_t *object, struct prb_bus_file *file, struct prb_error *err)
{
    const json_t *trusts = json_object_get(object, "trusts");
    if (trusts && !json_is_object(trusts))
        return prb_fail(err, PRB_CORRUPT, "\"trusts\" must be an object");
    for (int i = 0; i < PRB_BUS_CLASS_COUNT; i++) {
        const json_t *value = json_object_get(trusts, prb_bus_class_name(i));
        const char *text = json_string_value(value);
        if (!value)
            continue;
        if (!text || !prb_nkey_parse_public(text, file->trusted[i], err))
            return prb_fail(err, PRB_CORRUPT, "\"trusts\": \"%s\" is not a public key",
                            prb_bus_class_name(i));
        file->trusts[i] = true;
    }
    return true;
}

static bool take_all(const json_t *object, struct prb_bus_file *file, struct prb_error *err)
{
    const json_t *version = json_object_get(object, "v");
    if (!json_is_object(object) || !json_is_integer(version))
        return prb_fail(err, PRB_CORRUPT, "it must be an object with \"v\": 1");
    if (json_integer_value(version) != 1)
        return prb_fail(err, PRB_UNSUPPORTED, "it is of another version than 1");
    if (!take_servers(object, file, err) || !take_text(object, "ca", CA_MAX, &file->ca, err) ||
        !take_text(object, "creds", PATH_MAX - 1, &file->creds, err) ||
        !take_text(object, "user", TEXT_MAX, &file->user, err) ||
        !take_text(object, "password", TEXT_MAX, &file->password, err) ||
        !take_text(object, "name", TEXT_MAX, &file->name, err) || !take_class(object, file, err) ||
        !take_key(object, file, err) || !take_trusted(object, file, err))
        return false;
    if (file->ca && !strstr(file->ca, "-----BEGIN CERTIFICATE-----"))
        return prb_fail(err, PRB_CORRUPT, "\"ca\" must be a certificate in PEM");
    if (file->has_key + (file->creds != NULL) + (file->user != NULL) > 1)
        return prb_fail(err, PRB_CORRUPT, "one of \"nkey\", \"creds\", \"user\" is enough");
    return !file->password == !file->user ||
           prb_fail(err, PRB_CORRUPT, "\"user\" and \"password\" belong together");
}

bool prb_bus_file_read(const char *path, struct prb_bus_file *out, struct prb_error *err)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    json_error_t where;
    *out = (struct prb_bus_file){0};
    if (!read_text(path, &text, err))
        return false;
    json_t *object = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, &where);
    explicit_bzero(text.data, text.len);
    bool good = object ? take_all(object, out, err)
                       : prb_fail(err, PRB_CORRUPT, "line %d is not JSON", where.line);
    json_decref(object);
    if (good && !(out->path = strdup(path)))
        good = prb_nomem(err);
    if (!good) {
        prb_bus_file_deinit(out);
        return prb_error_prefix(err, "the bus file %.160s", path);
    }
    return true;
}

/* ---- which file ---- */

bool prb_bus_folder(char out[PATH_MAX], struct prb_error *err)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    bool whole = config && *config == '/';
    if (!whole && (!home || *home != '/'))
        return prb_fail(err, PRB_NOT_FOUND, "HOME is not set, where the bus's files belong");
    int len =
        snprintf(out, PATH_MAX, "%s%s/probing/bus", whole ? config : home, whole ? "" : "/.config");
    /* Names of files follow. */
    return len < PATH_MAX - 64 || prb_fail(err, PRB_USAGE, "the path of HOME is too long");
}

static bool by_address(const char *named, struct prb_bus_file *out, struct prb_error *err)
{
    *out = (struct prb_bus_file){0};
    if (!good_server(named))
        return prb_fail(err, PRB_USAGE, "\"%.100s\" is not of the form tls://HOST:PORT", named);
    if (!(out->servers[0] = strdup(named)))
        return prb_nomem(err);
    out->server_count = 1;
    return true;
}

bool prb_bus_file_find(const char *named, enum prb_bus_class class, struct prb_bus_file *out,
                       bool *found, struct prb_error *err)
{
    char path[PATH_MAX];
    struct stat info;
    *found = false;
    *out = (struct prb_bus_file){0};
    bool implied = !named && !((named = getenv("PROBING_BUS")) && *named);
    if (implied && (!prb_bus_folder(path, NULL) || access(path, F_OK) != 0))
        return true;
    if (!implied && strstr(named, "://"))
        return *found = by_address(named, out, err);
    if (!implied && snprintf(path, sizeof path, "%s", named) >= (int)sizeof path)
        return prb_fail(err, PRB_USAGE, "the path of the bus file is too long");
    if (stat(path, &info) != 0)
        return prb_fail_sys(err, errno, "the bus file %.200s", path);
    if (S_ISDIR(info.st_mode)) {
        size_t len = strlen(path);
        snprintf(path + len, sizeof path - len, "/%s", prb_bus_class_name(class));
        if (implied && access(path, F_OK) != 0 && errno == ENOENT)
            return true;
    }
    return *found = prb_bus_file_read(path, out, err);
}
