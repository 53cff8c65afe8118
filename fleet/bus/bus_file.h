/*
 * A bus file: where the servers are that the hosts of a job meet at, and what lets one in.  One
 * JSON object: {"v": 1, "servers": ["tls://node0:4222"], "ca": "-----BEGIN ...", "nkey": "SU..."},
 * or "creds": the path of a file of NATS's own, or "user" and "password".  Optional:
 * "name", that the server's certificate must have (else probing-bus where "ca" is given), "class",
 * and "trusts".
 */
#ifndef PRB_FLEET_BUS_FILE_H
#define PRB_FLEET_BUS_FILE_H

#include <limits.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "fleet/bus/keys.h"

#define PRB_BUS_SERVERS_MAX 32
#define PRB_BUS_PORT 4222

/* What one may: each class has a file of its own in the folder. */
#define PRB_BUS_CLASSES(CLASS)                                                                     \
    CLASS(agent)                                                                                   \
    CLASS(look)                                                                                    \
    CLASS(control)                                                                                 \
    CLASS(eval)
enum prb_bus_class {
#define CLASS(name) PRB_BUS_##name,
    PRB_BUS_CLASSES(CLASS)
#undef CLASS
        PRB_BUS_CLASS_COUNT,
};
const char *prb_bus_class_name(enum prb_bus_class class);

struct prb_bus_file {
    char *path; /* it was read from; NULL: an address was named */
    char *servers[PRB_BUS_SERVERS_MAX];
    size_t server_count;
    char *ca; /* PEM, or NULL: those that the system trusts */
    bool has_key;
    struct prb_nkey key;
    char *creds, *user, *password;
    char *
        name; /* that the server's certificate must have, or NULL: PRB_BUS_NAME where ca is given */
    bool has_class; /* replies are heard below _INBOX.CLASS alone */
    enum prb_bus_class class;
    /* Whose signed requests an agent obeys: public keys by class; of the agent's file. */
    bool trusts[PRB_BUS_CLASS_COUNT];
    unsigned char trusted[PRB_BUS_CLASS_COUNT][PRB_NKEY_BYTES];
};

/* The folder that `cluster up` writes: $XDG_CONFIG_HOME/probing/bus, else ~/.config/probing/bus.
 * NOT_FOUND: no home. */
bool prb_bus_folder(char out[PATH_MAX], struct prb_error *err);

/*
 * The bus file, of a class where a folder has several: what the user named (a file, a folder, or an
 * address), else PROBING_BUS, else the folder above when it is there.  *found false: none of these,
 * and nothing is wrong.  What is named and cannot be read is an error, as is a file that others can
 * read.
 * Errors: NOT_FOUND, PERMISSION, CORRUPT, USAGE.
 */
bool prb_bus_file_find(const char *named, enum prb_bus_class class, struct prb_bus_file *out,
                       bool *found, struct prb_error *err);
bool prb_bus_file_read(const char *path, struct prb_bus_file *out, struct prb_error *err);
void prb_bus_file_deinit(struct prb_bus_file *file);
PRB_DEFINE_AUTO(prb_bus_file, struct prb_bus_file, prb_bus_file_deinit)

/* "tls://HOST:PORT" and the like: its scheme, and whether it is of this host alone. */
bool prb_bus_server_is_tls(const char *server);
bool prb_bus_server_is_loopback(const char *server);

#endif
