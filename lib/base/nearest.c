/* Edit distance over short names (optimal string alignment). */
#include "base/nearest.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#define LENGTH_MAX 63

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c | 32) : c; }

static unsigned least(unsigned a, unsigned b) { return a < b ? a : b; }

unsigned prb_edit_distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    if (n > LENGTH_MAX || m > LENGTH_MAX)
        return UINT_MAX;
    unsigned rows[3][LENGTH_MAX + 1];
    for (unsigned j = 0; j <= m; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        unsigned *row = rows[i % 3], *above = rows[(i + 2) % 3], *higher = rows[(i + 1) % 3];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= m; j++) {
            bool same = lower(a[i - 1]) == lower(b[j - 1]);
            row[j] = least(least(above[j] + 1, row[j - 1] + 1), above[j - 1] + !same);
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                lower(a[i - 2]) == lower(b[j - 1]))
                row[j] = least(row[j], higher[j - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

unsigned prb_edit_limit(const char *name)
{
    size_t len = strlen(name);
    return len < 3 ? 0 : len < 6 ? 1 : len < 12 ? 2 : 3;
}

const char *prb_nearest(const char *name, const char *const *names, size_t count)
{
    size_t len = strlen(name);
    unsigned best = prb_edit_limit(name) + 1;
    const char *found = NULL;
    for (size_t i = 0; i < count && best > 0; i++) {
        bool begins = len >= 3 && strncasecmp(names[i], name, len) == 0;
        unsigned distance = begins ? 0 : prb_edit_distance(name, names[i]);
        if (distance < best) {
            best = distance;
            found = names[i];
        }
    }
    return found;
}
