/* What the parts of `cluster up` share: the folder's files, and the process that keeps the server
 * running. */
#ifndef PRB_FLEET_UP_H
#define PRB_FLEET_UP_H

#include "fleet/bus/bus_file.h"
#include "fleet/cluster.h"

#include <limits.h>

/* ---- files.c ---- */

struct prb_bus_place {
    char folder[PATH_MAX];
    char host[80];  /* to listen at: an address, no brackets */
    int port;       /* 0: any */
    uint64_t store; /* bytes */
};
/* Check the options, and make the folder (0700).  Errors: USAGE, PERMISSION, IO. */
bool prb_bus_place_of(const struct prb_cluster_up_options *options, struct prb_bus_place *out,
                      struct prb_error *err);
/* FOLDER/NAME; the folder's path leaves room for it. */
void prb_bus_path(const char *folder, const char *name, char out[PATH_MAX]);
/* Keys and the server's certificate where they are missing, the bus files and the configuration, for
 * this address.  Those keys that are there stay. */
bool prb_bus_write_files(const struct prb_bus_place *place, struct prb_error *err);
bool prb_bus_write(const char *path, const char *text, struct prb_error *err);

/* ---- server.c ---- */

#define PRB_BUS_STATE "server" /* JSON: host, boot, pid, started, port */
#define PRB_BUS_LOCK "lock"    /* held by the process that keeps the server running */
#define PRB_BUS_CONFIGURATION "server.conf"
#define PRB_BUS_RUN "run" /* folder: the server's file of ports */

/* The path of nats-server.  Errors: UNSUPPORTED. */
bool prb_bus_server_program(char out[PATH_MAX], struct prb_error *err);
/*
 * Run the server, and again when it ends, until SIGTERM.  told: a line is written there, "ready" or
 * what is wrong, as soon as that is known.  In a process of its own.
 */
void prb_bus_keep_running(const char *program, struct prb_bus_place *place, int told);

#endif
