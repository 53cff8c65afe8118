/* The folder of `cluster up`: keys, certificate, configuration, bus files (up.h). */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <jansson.h>
#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/new_file.h"
#include "fleet/up/up.h"

#define STORE ((uint64_t)1 << 30)
#define STORE_LEAST ((uint64_t)16 << 20)
#define MEMORY "64MB"
#define OWN_ADDRESSES_MAX 12
#define PEM_MAX (64 << 10)

void prb_bus_path(const char *folder, const char *name, char out[PATH_MAX])
{
    snprintf(out, PATH_MAX, "%.*s/%.*s", PATH_MAX - 100, folder, 80, name);
}

/* ---- options ---- */

/* "HOST:PORT", "[V6]:PORT", "HOST", ":PORT" */
static bool take_listen(const char *text, struct prb_bus_place *out, struct prb_error *err)
{
    unsigned char address[sizeof(struct in6_addr)];
    const char *colon = strrchr(text, ':'), *end = text + strlen(text), *host = text;
    bool v6 = *text == '[';
    if (!v6 && colon && memchr(text, ':', (size_t)(colon - text)))
        colon = NULL; /* a bare V6 */
    if (v6) {
        host = text + 1;
        end = strchr(text, ']');
        colon = end && end[1] == ':' ? end + 1 : NULL;
        if (!end || (end[1] && end[1] != ':'))
            return prb_fail(err, PRB_USAGE, "\"%.80s\" is not an address to listen at", text);
    } else if (colon) {
        end = colon;
    }
    if (colon) {
        size_t digits = strspn(colon + 1, "0123456789");
        out->port = digits && digits <= 5 && !colon[1 + digits] ? atoi(colon + 1) : -1;
        if (out->port < 0 || out->port > 65535)
            return prb_fail(err, PRB_USAGE, "\"%.80s\" has no port from 0 to 65535", text);
    }
    if (end == host)
        return true;
    if ((size_t)(end - host) >= sizeof out->host)
        return prb_fail(err, PRB_USAGE, "\"%.80s\" is not an address to listen at", text);
    snprintf(out->host, sizeof out->host, "%.*s", (int)(end - host), host);
    if (inet_pton(AF_INET, out->host, address) == 1 || inet_pton(AF_INET6, out->host, address) == 1)
        return true;
    return prb_fail(err, PRB_USAGE, "\"%.80s\" is not an address of this host: give its number",
                    out->host);
}

static bool take_store(const char *text, uint64_t *out, struct prb_error *err)
{
    static const char units[] = "KMGT";
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    const char *unit = *end ? strchr(units, *end & ~0x20) : NULL;
    unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
    bool good = end != text && *text != '-' && !errno && (!*end || (unit && !end[1])) &&
                number <= UINT64_MAX >> 1 >> shift;
    *out = number << shift;
    return (good && *out >= STORE_LEAST) ||
           prb_fail(err, PRB_USAGE, "--store is a number of bytes, 16M or more, not \"%.40s\"",
                    text);
}

static bool make_folder(const char *path, struct prb_error *err)
{
    char part[PATH_MAX];
    struct stat info;
    snprintf(part, sizeof part, "%s", path);
    for (char *slash = part + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        if (mkdir(part, 0700) != 0 && errno != EEXIST)
            return prb_fail_sys(err, errno, "making %.200s", part);
        *slash = '/';
    }
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return prb_fail_sys(err, errno, "making %.200s", path);
    if (lstat(path, &info) != 0)
        return prb_fail_sys(err, errno, "%.200s", path);
    if (!S_ISDIR(info.st_mode) || info.st_uid != geteuid())
        return prb_fail(err, PRB_PERMISSION, "%.200s must be a folder of yours", path);
    if ((info.st_mode & 077) && chmod(path, 0700) != 0)
        return prb_fail_sys(err, errno, "%.200s", path);
    return true;
}

bool prb_bus_place_of(const struct prb_cluster_up_options *options, struct prb_bus_place *out,
                      struct prb_error *err)
{
    char run[PATH_MAX];
    *out = (struct prb_bus_place){.host = "0.0.0.0", .port = PRB_BUS_PORT, .store = STORE};
    if ((options->listen && !take_listen(options->listen, out, err)) ||
        (options->store && !take_store(options->store, &out->store, err)) ||
        !prb_bus_folder(out->folder, err) || !make_folder(out->folder, err))
        return false;
    prb_bus_path(out->folder, PRB_BUS_RUN, run);
    return make_folder(run, err);
}

/* ---- files ---- */

bool prb_bus_write(const char *path, const char *text, struct prb_error *err)
{
    PRB_AUTO(prb_new_file) struct prb_new_file file;
    if (!prb_new_file_begin(&file, path, 0600) || !prb_write_all(file.fd, text, strlen(text)) ||
        !prb_new_file_end(&file))
        return prb_fail_sys(err, errno, "writing %.200s", path);
    return true;
}

static bool write_in(const char *folder, const char *name, const char *text, struct prb_error *err)
{
    char path[PATH_MAX];
    prb_bus_path(folder, name, path);
    return prb_bus_write(path, text, err);
}

/* The certificate's three files; what is missing of them makes all new.  The owner frees *ca. */
static bool certificate(const char *folder, char **ca, struct prb_error *err)
{
    static const char *const names[] = {"ca.pem", "server.pem", "server.key"};
    PRB_AUTO(prb_certificate) struct prb_certificate made = {0};
    PRB_AUTO_FREE char *text = calloc(1, PEM_MAX);
    char path[PATH_MAX];
    bool whole = true;
    if (!text)
        return prb_nomem(err);
    for (int i = 2; i >= 0; i--) {
        prb_bus_path(folder, names[i], path);
        whole = whole && prb_read_text(path, text, PEM_MAX) > 0;
        if (i)
            explicit_bzero(text, PEM_MAX);
    }
    if (whole) {
        *ca = PRB_STEAL(text);
        return true;
    }
    if (!prb_certificate_make(&made, err))
        return false;
    *ca = strdup(made.authority);
    return (*ca || prb_nomem(err)) && write_in(folder, names[0], made.authority, err) &&
           write_in(folder, names[1], made.certificate, err) &&
           write_in(folder, names[2], made.key, err);
}

/* Those of the bus files that are there, else new ones. */
static bool take_keys(const char *folder, struct prb_nkey keys[PRB_BUS_CLASS_COUNT],
                      struct prb_error *err)
{
    for (int i = 0; i < PRB_BUS_CLASS_COUNT; i++) {
        PRB_AUTO(prb_bus_file) struct prb_bus_file file = {0};
        char path[PATH_MAX];
        prb_bus_path(folder, prb_bus_class_name(i), path);
        if (access(path, F_OK) != 0 && errno == ENOENT) {
            if (!prb_nkey_make(&keys[i], err))
                return false;
            continue;
        }
        if (!prb_bus_file_read(path, &file, err))
            return prb_error_remedy(err, "mend the file, or remove it: it is then made anew");
        if (!file.has_key) {
            prb_fail(err, PRB_CORRUPT, "the bus file %.200s has no key that `up` made", path);
            return prb_error_remedy(err, "a bus of your own is not started here; `cluster up "
                                         "--print` prints what it needs");
        }
        keys[i] = file.key;
    }
    return true;
}

/* A port that is not known yet is written once it is. */
static void add_server(json_t *list, const char *host, int port)
{
    bool v6 = strchr(host, ':');
    json_array_append_new(list, json_sprintf("tls://%s%s%s:%d", v6 ? "[" : "", host, v6 ? "]" : "",
                                             port ? port : PRB_BUS_PORT));
}

static bool is_any(const char *host)
{
    return strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
}

/* How other hosts reach all addresses: by number, then by name. */
static void add_own(json_t *list, bool v6, int port)
{
    struct ifaddrs *all = NULL;
    char name[80], text[INET6_ADDRSTRLEN];
    if (getifaddrs(&all) != 0)
        all = NULL;
    for (const struct ifaddrs *at = all; at; at = at->ifa_next) {
        if (!at->ifa_addr || (at->ifa_flags & IFF_LOOPBACK) || !(at->ifa_flags & IFF_UP) ||
            json_array_size(list) >= OWN_ADDRESSES_MAX)
            continue;
        const struct sockaddr_in6 *six = (const void *)at->ifa_addr;
        const struct sockaddr_in *four = (const void *)at->ifa_addr;
        if (at->ifa_addr->sa_family == AF_INET)
            add_server(list, inet_ntop(AF_INET, &four->sin_addr, text, sizeof text), port);
        else if (v6 && at->ifa_addr->sa_family == AF_INET6 &&
                 !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr))
            add_server(list, inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof text), port);
    }
    if (all)
        freeifaddrs(all);
    if (!json_array_size(list))
        add_server(list, "127.0.0.1", port);
    else if (gethostname(name, sizeof name) == 0 && memchr(name, '\0', sizeof name) &&
             name[strspn(
                 name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-")] == '\0')
        add_server(list, name, port);
}

static bool bus_file(const struct prb_bus_place *place, enum prb_bus_class class, const char *ca,
                     const struct prb_nkey keys[PRB_BUS_CLASS_COUNT], struct prb_error *err)
{
    char seed[PRB_NKEY_SEED_SIZE], public[PRB_NKEY_TEXT_SIZE];
    json_t *servers = json_array(), *file;
    if (is_any(place->host))
        add_own(servers, strcmp(place->host, "::") == 0, place->port);
    else
        add_server(servers, place->host, place->port);
    prb_nkey_seed(&keys[class], seed);
    file = json_pack("{si ss so ss ss}", "v", 1, "class", prb_bus_class_name(class), "servers",
                     servers, "ca", ca, "nkey", seed);
    if (class == PRB_BUS_agent) {
        json_t *trusts = json_object();
        for (int i = PRB_BUS_control; i < PRB_BUS_CLASS_COUNT; i++) {
            prb_nkey_text(keys[i].public, public);
            json_object_set_new(trusts, prb_bus_class_name(i), json_string(public));
        }
        json_object_set_new(file, "trusts", trusts);
    }
    char *text = json_dumps(file, JSON_INDENT(1));
    json_decref(file);
    bool good =
        text ? write_in(place->folder, prb_bus_class_name(class), text, err) : prb_nomem(err);
    if (text)
        explicit_bzero(text, strlen(text));
    explicit_bzero(seed, sizeof seed);
    free(text);
    return good;
}

/* ---- configuration ---- */

/* Who may publish and hear what.  ROSTER: a stream that agents make and fill; the others read it
 * message by message, as who may make consumers may have anything sent to anybody. */
#define ROSTER "KV_probing_roster"
#define HISTORY "probing_history"
#define EVENTS "probing_events"
#define READ                                                                                       \
    "\"$JS.API.STREAM.INFO." ROSTER "\", \"$JS.API.DIRECT.GET." ROSTER ".>\", "                    \
    "\"$JS.API.DIRECT.GET." EVENTS "\""
static const struct {
    const char *publish, *subscribe;
    bool replies; /* whoever asked is answered, and nobody else */
} may[] = {
    [PRB_BUS_agent] = {"\"probing.v1.*.event.>\", \"probing.v1.*.history.>\", "
                       "\"$KV.probing_roster.>\", \"$JS.API.STREAM.CREATE." ROSTER "\", "
                       "\"$JS.API.STREAM.INFO." ROSTER "\", \"$JS.API.STREAM.CREATE." HISTORY "\", "
                       "\"$JS.API.STREAM.CREATE." EVENTS "\"",
                       "\"probing.v1.find\", \"probing.v1.end\", \"probing.v1.*.look.>\", "
                       "\"probing.v1.*.control.>\", \"probing.v1.*.eval.>\", "
                       "\"probing.v1.*.cancel\", \"_INBOX.agent.>\"",
                       true},
    [PRB_BUS_look] = {"\"probing.v1.find\", \"probing.v1.*.look.>\", \"probing.v1.*.cancel\", "
                      "\"$JS.API.STREAM.INFO." HISTORY "\", \"$JS.API.DIRECT.GET." HISTORY
                      "\", \"$JS.API.STREAM.INFO." EVENTS "\", " READ,
                      "\"_INBOX.look.>\", \"probing.v1.*.event.>\"", false},
    [PRB_BUS_control] = {"\"probing.v1.find\", \"probing.v1.end\", \"probing.v1.*.look.>\", "
                         "\"probing.v1.*.control.>\", \"probing.v1.*.cancel\", " READ,
                         "\"_INBOX.control.>\", \"probing.v1.*.event.>\"", false},
    [PRB_BUS_eval] = {"\"probing.v1.find\", \"probing.v1.*.look.>\", \"probing.v1.*.eval.>\", "
                      "\"probing.v1.*.cancel\", " READ,
                      "\"_INBOX.eval.>\", \"probing.v1.*.event.>\"", false},
};

static void add_quoted(struct prb_buf *out, const char *folder, const char *name)
{
    char path[PATH_MAX];
    prb_bus_path(folder, name, path);
    prb_buf_addc(out, '"');
    for (const char *at = path; *at; at++) {
        if (*at == '"' || *at == '\\')
            prb_buf_addc(out, '\\');
        prb_buf_addc(out, *at);
    }
    prb_buf_adds(out, "\"\n");
}

static void add_users(struct prb_buf *out, const struct prb_nkey keys[PRB_BUS_CLASS_COUNT])
{
    char public[PRB_NKEY_TEXT_SIZE];
    prb_buf_adds(out, "authorization {\n  users: [\n");
    for (int i = 0; i < PRB_BUS_CLASS_COUNT; i++) {
        prb_nkey_text(keys[i].public, public);
        prb_buf_addf(out,
                     "    { # %s\n      nkey: %s\n      permissions: {\n"
                     "        publish: { allow: [%s] }\n        subscribe: { allow: [%s] }\n",
                     prb_bus_class_name(i), public, may[i].publish, may[i].subscribe);
        if (may[i].replies)
            prb_buf_adds(out, "        allow_responses: { max: -1, expires: \"15m\" }\n");
        prb_buf_adds(out, "      }\n    }\n");
    }
    prb_buf_adds(out, "  ]\n}\n");
}

static void add_configuration(struct prb_buf *out, const struct prb_bus_place *place,
                              const struct prb_nkey keys[PRB_BUS_CLASS_COUNT])
{
    bool v6 = strchr(place->host, ':');
    prb_buf_addf(out,
                 "# Written by `probing cluster up`, each time anew.\nserver_name: " PRB_BUS_NAME
                 "\nlisten: \"%s%s%s:%d\"\nports_file_dir: ",
                 v6 ? "[" : "", place->host, v6 ? "]" : "", place->port ? place->port : -1);
    add_quoted(out, place->folder, PRB_BUS_RUN);
    /* A host that is gone is noticed within 15 s. */
    prb_buf_adds(out, "max_payload: 1MB\nmax_pending: 64MB\nping_interval: \"5s\"\nping_max: 2\n"
                      "tls {\n  timeout: 10\n  cert_file: ");
    add_quoted(out, place->folder, "server.pem");
    prb_buf_adds(out, "  key_file: ");
    add_quoted(out, place->folder, "server.key");
    prb_buf_adds(out, "}\njetstream {\n  max_memory_store: " MEMORY "\n");
    prb_buf_addf(out, "  max_file_store: %llu\n  store_dir: ", (unsigned long long)place->store);
    add_quoted(out, place->folder, "store");
    prb_buf_adds(out, "}\n");
    add_users(out, keys);
}

bool prb_bus_write_files(const struct prb_bus_place *place, struct prb_error *err)
{
    struct prb_nkey keys[PRB_BUS_CLASS_COUNT];
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    PRB_AUTO_FREE char *ca = NULL;
    bool good = take_keys(place->folder, keys, err) && certificate(place->folder, &ca, err);
    for (int i = 0; good && i < PRB_BUS_CLASS_COUNT; i++)
        good = bus_file(place, i, ca, keys, err);
    if (good) {
        add_configuration(&text, place, keys);
        good = prb_buf_ok(&text) ? write_in(place->folder, PRB_BUS_CONFIGURATION, text.data, err)
                                 : prb_nomem(err);
    }
    explicit_bzero(keys, sizeof keys);
    return good;
}
