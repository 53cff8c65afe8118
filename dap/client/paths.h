/*
 * Paths of the client and of the target: pathMappings of attach, file URIs, Windows clients, and
 * numbers for sources that the client cannot open by path.
 */
#ifndef PRB_DAP_PATHS_H
#define PRB_DAP_PATHS_H

#include <jansson.h>
#include <stdbool.h>

#include "probing.h"

#define PRB_DAP_MAPPINGS_MAX 64

struct prb_dap_mapping {
    char *local, *remote; /* no separator at the end */
};

struct prb_dap_paths {
    struct prb_dap_mapping items[PRB_DAP_MAPPINGS_MAX];
    size_t count;
    bool elsewhere; /* a local root is not here: the client is on another machine */
    bool uris;      /* the client's paths are URIs */
    char **sources; /* target paths that have a number, from PRB_DAP_SOURCE_FIRST on */
    size_t source_count, source_cap;
};

/* sourceReferences of the session; the back end's are below. */
#define PRB_DAP_SOURCE_FIRST (1 << 29)
#define PRB_DAP_SOURCES_MAX 65536

/* mappings: an array of {localRoot, remoteRoot}, of pairs, or one object {local: remote}.  cwd: of
 * the target, for the remote ".". */
bool prb_dap_paths_set(struct prb_dap_paths *paths, const json_t *mappings, const char *cwd,
                       struct prb_error *err);
void prb_dap_paths_clear(struct prb_dap_paths *paths);
/* A path of the client as the target knows it, and back.  The caller frees it; NULL: out of
 * memory. */
char *prb_dap_paths_in(const struct prb_dap_paths *paths, const char *client_path);
char *prb_dap_paths_out(const struct prb_dap_paths *paths, const char *target_path);
/* Whether a mapping applies to the path. */
bool prb_dap_paths_is_mapped(const struct prb_dap_paths *paths, const char *target_path);
/* A number for a target path that the client cannot open; 0: too many. */
int prb_dap_paths_number(struct prb_dap_paths *paths, const char *target_path);
const char *prb_dap_paths_numbered(const struct prb_dap_paths *paths, json_int_t number);

#endif
