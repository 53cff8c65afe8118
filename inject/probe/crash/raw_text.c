/* Texts and times for a handler: nothing of libc's state is used. */
#include <signal.h>
#include <time.h>

#include "base/raw.h"
#include "inject/probe/crash/crash.h"

void prb_crash_add(struct prb_crash_text *text, const char *word)
{
    while (*word && text->at + 1 < text->end)
        *text->at++ = *word++;
    *text->at = '\0';
}

void prb_crash_add_number(struct prb_crash_text *text, uint64_t number, unsigned base,
                          unsigned digits)
{
    char reversed[24], word[24];
    unsigned count = 0, i = 0;
    do {
        reversed[count++] = "0123456789abcdef"[number % base];
        number /= base;
    } while ((number || count < digits) && count < sizeof reversed - 1);
    while (count)
        word[i++] = reversed[--count];
    word[i] = '\0';
    prb_crash_add(text, word);
}

/* Days after 1970-01-01 to a date of the Gregorian calendar: eras of 400 years that begin in March,
 * so that the leap day is the last of its year. */
void prb_crash_add_time(struct prb_crash_text *text, int64_t seconds)
{
    uint64_t day = (uint64_t)seconds / 86400 + 719468, rest = (uint64_t)seconds % 86400;
    uint64_t era = day / 146097, of_era = day % 146097;
    uint64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    uint64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    uint64_t month = (5 * of_year + 2) / 153;
    prb_crash_add_number(text, year + era * 400 + (month >= 10), 10, 4);
    prb_crash_add_number(text, month < 10 ? month + 3 : month - 9, 10, 2);
    prb_crash_add_number(text, of_year - (153 * month + 2) / 5 + 1, 10, 2);
    prb_crash_add(text, "T");
    prb_crash_add_number(text, rest / 3600, 10, 2);
    prb_crash_add_number(text, rest / 60 % 60, 10, 2);
    prb_crash_add_number(text, rest % 60, 10, 2);
    prb_crash_add(text, "Z");
}

uint64_t prb_crash_now(void)
{
    struct timespec now = {0};
    PRB_RAW2(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
