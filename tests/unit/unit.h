/* What every unit test includes, in the order cmocka wants it. */
#ifndef PRB_TESTS_UNIT_H
#define PRB_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

/* Fails with the error's own words. */
#define assert_ok(call, err)                                                                       \
    do {                                                                                           \
        if (!(call))                                                                               \
            fail_msg("%s: %s", #call, (err).text);                                                 \
    } while (0)

#endif
