/* The text of a watched variable's value, from its recorded row (training/variable_rows.h). */
#ifndef PRB_TABLE_VARIABLE_TEXT_H
#define PRB_TABLE_VARIABLE_TEXT_H

#include "ring/ring.h"
#include "sql/table.h"

/* Why it has no value, up to the end of the text of PRB_VARIABLES_VALUE; NULL: it has one, or is not
 * bound. */
const char *prb_variable_why(const struct prb_ring_value *values);
/* Cell: as repr() prints it; of a numpy scalar and a tensor the number alone. */
void prb_row_variable_text(struct prb_rows *rows, const struct prb_ring_value *values);

#endif
