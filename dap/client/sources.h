/* Sources as the client knows them (DAP's Source), made from paths and numbers of the target,
 * and back. */
#ifndef PRB_DAP_SOURCES_H
#define PRB_DAP_SOURCES_H

#include "dap/session/session.h"

/* path: the target's, or NULL; reference: the back end's number of a source without file, or 0;
 * own: not a library's. */
json_t *prb_dap_source_json(struct prb_dap_session *session, const char *path, json_int_t reference,
                            bool own);
/* From the client: {path} as the target knows it, or {sourceReference}; a new reference. */
json_t *prb_dap_source_wanted(struct prb_dap_session *session, const json_t *source,
                              struct prb_error *err);
/* The source, line and column members of an event's body, in place. */
void prb_dap_sources_map(struct prb_dap_session *session, json_t *body);
/* A breakpoint of the back end ({id, verified, line, path, ...}) as the client knows it, in
 * place. */
void prb_dap_lines_map(struct prb_dap_session *session, json_t *object);

#endif
