/*
 * Framing of the Debug Adapter Protocol (base protocol): header lines, an empty line, a body of
 * Content-Length bytes.  Pure: bytes in, bodies out.  The client's bytes are hostile.
 */
#ifndef PRB_DAP_WIRE_H
#define PRB_DAP_WIRE_H

#include <jansson.h>

#include "base/buf.h"
#include "probing.h"

#define PRB_DAP_HEADER_MAX 8192          /* bytes of all header lines of a message */
#define PRB_DAP_BODY_MAX (16u << 20)     /* bytes of a message, as in the stock Python debugger */
#define PRB_DAP_STRANGER_MAX (64u << 10) /* the same, from a client without a token */
#define PRB_DAP_DEPTH_MAX 100            /* of arrays and objects */
#define PRB_DAP_COST_MAX (64u << 20)     /* bytes that a parsed message may take */

struct prb_dap_wire {
    struct prb_buf in;
    size_t used;     /* bytes of in that were taken */
    size_t body_max; /* 0: PRB_DAP_BODY_MAX */
};

void prb_dap_wire_deinit(struct prb_dap_wire *wire);
/* Add bytes that were read.  False: out of memory. */
bool prb_dap_wire_add(struct prb_dap_wire *wire, const void *data, size_t len);

enum prb_dap_taken { PRB_DAP_TAKEN, PRB_DAP_TAKEN_MORE, PRB_DAP_TAKEN_MALFORMED };
/* The next body, borrowed until the next call.  MORE: it is not complete.  MALFORMED: err says why;
 * what follows cannot be parsed. */
enum prb_dap_taken prb_dap_wire_take(struct prb_dap_wire *wire, const char **body_out,
                                     size_t *len_out, struct prb_error *err);

/* A body as a JSON object, a new reference.  CORRUPT: not JSON, not an object, nested too deeply,
 * or too many values. */
json_t *prb_dap_wire_parse(const char *body, size_t len, struct prb_error *err) PRB_MUST_CHECK;
/* About how many bytes of memory the parsed body takes: its text, and jansson's part for each
 * value. */
size_t prb_dap_wire_cost(const char *body, size_t len);
/* A message with its header, appended to out. */
bool prb_dap_wire_write(struct prb_buf *out, const json_t *message);

#endif
