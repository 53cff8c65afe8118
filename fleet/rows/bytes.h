/* What both sides of pack.h know of the bytes. */
#ifndef PRB_FLEET_ROWS_BYTES_H
#define PRB_FLEET_ROWS_BYTES_H

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "numbers are little-endian"
#endif

#define PRB_PACKED_MAGIC "PRB\x01"
#define PRB_PACKED_OVER "PRB\x7f" /* instead: there is too much, and a text says of what */

enum { PRB_SECTION_REPEATS = 1, PRB_SECTION_MISSING = 2 };

enum {
    PRB_COLUMN_NULL,
    PRB_COLUMN_INTEGER,
    PRB_COLUMN_REAL,
    PRB_COLUMN_TEXT,
    PRB_COLUMN_MIXED, /* each value begins with its enum prb_type */
    PRB_COLUMN_NULLS = 0x80,
};

#endif
