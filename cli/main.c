/* probing: the command line. */
#include <stdio.h>

#include "probing.h"

int main(void)
{
    printf("probing %s\n", prb_version());
    return 0;
}
