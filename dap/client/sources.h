/* Sources: from paths and numbers of the target to DAP's Source, and back. */
#ifndef PRB_DAP_SOURCES_H
#define PRB_DAP_SOURCES_H

#include "dap/session/session.h"

/* path: of the target, or NULL; reference: the back end's number of a source without a file, or 0;
 * own: not in a library. */
json_t *prb_dap_source_json(struct prb_dap_session *session, const char *path, json_int_t reference,
                            bool own);
/* A source of the client as the back end takes it: {path} or {sourceReference}; a new reference. */
json_t *prb_dap_source_wanted(struct prb_dap_session *session, const json_t *source,
                              struct prb_error *err);
/* The source, line and column members of an event's body, in place. */
void prb_dap_sources_map(struct prb_dap_session *session, json_t *body);
/* A breakpoint of the back end ({id, verified, line, path, ...}) as the client knows it, in
 * place. */
void prb_dap_lines_map(struct prb_dap_session *session, json_t *object);

#endif
