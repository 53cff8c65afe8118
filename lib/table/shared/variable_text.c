#include "table/shared/variable_text.h"

#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "py/object/reader.h"
#include "training/variable_rows.h"

static bool is(const struct prb_ring_value *value, const char *text)
{
    return !value->null && value->len == strlen(text) && memcmp(value->text, text, value->len) == 0;
}

const char *prb_variable_why(const struct prb_ring_value *values)
{
    const struct prb_ring_value *text = &values[PRB_VARIABLES_VALUE];
    bool why = !text->null && text->len > 1 && text->text[0] == PRB_VARIABLES_WHY &&
               !is(&values[PRB_VARIABLES_TYPE], "str");
    return why ? text->text + 1 : NULL;
}

/* Python prefers single quotes. */
static void quote(struct prb_rows *rows, const struct prb_ring_value *value)
{
    PRB_AUTO(prb_buf) struct prb_buf text = {0};
    bool single = memchr(value->text, '\'', value->len) && !memchr(value->text, '"', value->len);
    char mark = single ? '"' : '\'';
    prb_buf_add(&text, &mark, 1);
    for (size_t i = 0; i < value->len; i++) {
        char c = value->text[i];
        if (c == mark || c == '\\')
            prb_buf_adds(&text, "\\");
        if (c == '\n')
            prb_buf_adds(&text, "\\n");
        else
            prb_buf_add(&text, &c, 1);
    }
    prb_buf_add(&text, &mark, 1);
    if (prb_buf_ok(&text))
        prb_row_textn(rows, text.data, text.len);
    else
        prb_row_null(rows);
}

void prb_row_variable_text(struct prb_rows *rows, const struct prb_ring_value *values)
{
    const struct prb_ring_value *type = &values[PRB_VARIABLES_TYPE],
                                *text = &values[PRB_VARIABLES_VALUE],
                                *number = &values[PRB_VARIABLES_NUMBER];
    char out[PRB_FLOAT_TEXT];
    if (prb_variable_why(values)) {
        prb_row_null(rows);
    } else if (!text->null && number->null) {
        quote(rows, text);
    } else if (!text->null) {
        prb_row_textn(rows, text->text, text->len);
    } else if (is(type, "NoneType")) {
        prb_row_text(rows, "None");
    } else if (number->null) {
        prb_row_null(rows);
    } else if (is(type, "bool")) {
        prb_row_text(rows, number->real != 0 ? "True" : "False");
    } else {
        prb_float_format(number->real, is(type, "float"), out);
        prb_row_text(rows, out);
    }
}
