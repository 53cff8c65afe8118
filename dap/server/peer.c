/* The user at the other end: a loopback port is open to everybody on the machine, a debugger must
 * not be.  The kernel's list of connections says whose the client's socket is; the row of a socket
 * without owner (closed) counts for nobody. */
#include "dap/server/peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/error.h"

#define ESTABLISHED 1
#define PLACE_MAX 48 /* "ADDRESS:PORT" in hexadecimal, with the NUL */

bool prb_dap_is_loopback(const struct sockaddr *address)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
    if (address->sa_family == AF_INET)
        return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    if (address->sa_family != AF_INET6)
        return address->sa_family == AF_UNIX;
    return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) ||
           (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) && v6->sin6_addr.s6_addr[12] == 127);
}

/* As a row of /proc/net/tcp (or tcp6: six) has it: words of the address as the processor reads
 * them, the port. */
static bool place_of(const struct sockaddr_storage *address, bool six, char place[PLACE_MAX])
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
    uint32_t words[4] = {0, 0, htonl(0xffff), 0};
    unsigned port = address->ss_family == AF_INET ? ntohs(v4->sin_port) : ntohs(v6->sin6_port);
    if (address->ss_family == AF_INET)
        words[3] = v4->sin_addr.s_addr;
    else
        memcpy(words, &v6->sin6_addr, sizeof words);
    if (six)
        snprintf(place, PLACE_MAX, "%08X%08X%08X%08X:%04X", words[0], words[1], words[2], words[3],
                 port);
    else
        snprintf(place, PLACE_MAX, "%08X:%04X", words[3], port);
    return six || address->ss_family == AF_INET || IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr);
}

/* The owner of the socket whose own place and whose other end's are these. */
static bool find_owner(const char *path, const char *its, const char *other, uid_t *uid_out)
{
    PRB_AUTO(file) FILE *file = fopen(path, "re");
    PRB_AUTO_FREE char *line = NULL;
    size_t size = 0;
    char local[PLACE_MAX], remote[PLACE_MAX];
    unsigned state, uid;
    unsigned long inode;
    while (file && getline(&line, &size, file) > 0)
        if (sscanf(line, "%*s %47s %47s %x %*s %*s %*s %u %*s %lu", local, remote, &state, &uid,
                   &inode) == 5 &&
            state == ESTABLISHED && inode && strcmp(local, its) == 0 &&
            strcmp(remote, other) == 0) {
            *uid_out = uid;
            return true;
        }
    return false;
}

static bool find_tcp(int fd, uid_t *uid_out)
{
    static const char *const paths[] = {"/proc/self/net/tcp", "/proc/self/net/tcp6"};
    struct sockaddr_storage mine = {0}, its = {0};
    socklen_t mine_len = sizeof mine, its_len = sizeof its;
    char here[PLACE_MAX], there[PLACE_MAX];
    if (getsockname(fd, (struct sockaddr *)&mine, &mine_len) != 0 ||
        getpeername(fd, (struct sockaddr *)&its, &its_len) != 0)
        return false;
    for (int six = 0; six < 2; six++)
        if (place_of(&its, six, there) && place_of(&mine, six, here) &&
            find_owner(paths[six], there, here, uid_out))
            return true;
    return false;
}

bool prb_dap_peer_check(int fd, uid_t also, struct prb_error *err)
{
    struct ucred who;
    int family = AF_UNSPEC;
    socklen_t size = sizeof who, family_size = sizeof family;
    uid_t uid = (uid_t)-1;
    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &family_size);
    if (family == AF_UNIX && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0)
        uid = who.uid;
    else if (!find_tcp(fd, &uid))
        return prb_fail(err, PRB_PERMISSION,
                        "whose the connection is cannot be found: it is refused");
    if (uid == geteuid() || uid == 0 || uid == also)
        return true;
    return prb_fail(err, PRB_PERMISSION, "a connection of user %u is refused", (unsigned)uid);
}
