/*
 * Writes the rings that test_rings.py looks for: ring_write FOLDER TABLE COLUMNS < rows.
 * COLUMNS as prb_ring_table_parse wants them; a row is a line of fields between tabs, "NULL" is
 * NULL.  Every line is answered by "1" (written) or "0"; the end of the input ends the program.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ring/writer.h"

static void parse(const struct prb_ring_table *table, char *line, struct prb_ring_value *values)
{
    for (size_t i = 0; i < table->column_count; i++) {
        const char *field = strsep(&line, "\t");
        field = field ? field : "NULL";
        values[i] = (struct prb_ring_value){.null = strcmp(field, "NULL") == 0};
        if (table->type[i] == PRB_RING_REAL || table->type[i] == PRB_RING_TIME) {
            values[i].real = strtod(field, NULL);
        } else if (table->type[i] != PRB_RING_TEXT) {
            values[i].integer = strtoll(field, NULL, 10);
        } else {
            values[i].text = field;
            values[i].len = strlen(field);
        }
    }
}

int main(int argc, char **argv)
{
    struct prb_error err;
    struct prb_ring_value values[PRB_RING_COLUMNS_MAX];
    struct prb_ring_table *table =
        argc == 4 ? prb_ring_table_parse(argv[1], argv[2], argv[3], NULL, &err) : NULL;
    if (!table) {
        fprintf(stderr, "%s\n", argc == 4 ? err.text : "usage: ring_write FOLDER TABLE COLUMNS");
        return 1;
    }
    PRB_AUTO_FREE char *line = NULL;
    size_t size = 0;
    for (ssize_t len; (len = getline(&line, &size, stdin)) > 0;) {
        line[len - (line[len - 1] == '\n')] = '\0';
        parse(table, line, values);
        printf("%d\n", prb_ring_write(table, values));
        fflush(stdout);
    }
    return 0;
}
