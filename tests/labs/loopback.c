/* Preloaded into the labs' daemons, which have no setting for it: who listens on every address listens on the
 * loopback alone, and the machine's name is what SSSJOB_LAB_HOST says (Grid Engine wants one that resolves to an
 * address it can reach itself at). The processes that a daemon starts, its jobs for one, do not inherit either.
 *
 * No headers, so that a compiler without the C library's development files will do (tcc -shared -nostdlib). */

typedef unsigned long size;
typedef int binder(int, const void *, unsigned);

extern void *dlsym(void *, const char *);
extern char *getenv(const char *);
extern int unsetenv(const char *);
extern void *memcpy(void *, const void *, size);
extern size strlen(const char *);
extern int uname(void *);

enum { INET = 2, INET6 = 10, IN_AT = 4, IN6_AT = 8, IN_SIZE = 16, IN6_SIZE = 28, NODENAME_AT = 65 };
static const unsigned char LOOPBACK[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};    /* 127.0.0.1, mapped into IPv6 */

static binder *real_bind;
static char name[256];

static void
enter(void)
{
    const char *wanted;

    if (real_bind)
        return;
    wanted = getenv("SSSJOB_LAB_HOST");
    if (wanted && strlen(wanted) < sizeof name)
        memcpy(name, wanted, strlen(wanted) + 1);
    unsetenv("SSSJOB_LAB_HOST");
    unsetenv("LD_PRELOAD");
    real_bind = (binder *)dlsym((void *)-1L, "bind");      /* RTLD_NEXT */
}

static int
any(const unsigned char *address, unsigned length)
{
    while (length--)
        if (*address++)
            return 0;
    return 1;
}

int
bind(int socket, const void *address, unsigned length)
{
    unsigned char local[IN6_SIZE];
    unsigned short family = 0;

    enter();
    if (address && length >= sizeof family)
        memcpy(&family, address, sizeof family);
    if (family == INET && length >= IN_SIZE && any((const unsigned char *)address + IN_AT, 4)) {
        memcpy(local, address, IN_SIZE);
        memcpy(local + IN_AT, LOOPBACK + 12, 4);
        return real_bind(socket, local, IN_SIZE);
    }
    if (family == INET6 && length >= IN6_SIZE && any((const unsigned char *)address + IN6_AT, 16)) {
        memcpy(local, address, IN6_SIZE);
        memcpy(local + IN6_AT, LOOPBACK, 16);
        return real_bind(socket, local, IN6_SIZE);
    }
    return real_bind(socket, address, length);
}

int
gethostname(char *to, size length)
{
    char system[6 * 65];
    const char *from = name;

    enter();
    if (!name[0]) {
        if (uname(system))
            return -1;
        from = system + NODENAME_AT;
    }
    if (strlen(from) >= length)
        return -1;
    memcpy(to, from, strlen(from) + 1);
    return 0;
}
