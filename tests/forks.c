/* What a program of tests/forks.py is, where there is a C compiler: it asks the server and becomes what it answers.
 *
 * A file that names it as its interpreter holds a word on each further line: the socket, then the words of the
 * program. The request is marshal data, as Python reads it, with all texts as bytes.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static char *request;
static size_t length, room;

static void put(const void *bytes, size_t count)
{
    if (length + count > room) {
        room = 2 * (length + count);
        if (!(request = realloc(request, room)))
            abort();
    }
    memcpy(request + length, bytes, count);
    length += count;
}

static void number(char type, uint32_t value)
{
    unsigned char bytes[] = {(unsigned char)type, value & 255, value >> 8 & 255, value >> 16 & 255, value >> 24};
    put(bytes, sizeof bytes);
}

static void text(const char *bytes, size_t count)
{
    number('s', (uint32_t)count);
    put(bytes, count);
}

static volatile pid_t child;

static void pass_on(int signal)
{
    kill(child, signal);
}

static void die(void)
{
    kill(getpid(), SIGKILL);
}

static uint64_t answer(int connection)
{
    unsigned char bytes[8];
    uint64_t value = 0;
    for (size_t have = 0; have < sizeof bytes;) {
        ssize_t more = read(connection, bytes + have, sizeof bytes - have);
        if (more <= 0)
            die();
        have += (size_t)more;
    }
    for (size_t i = 0; i < sizeof bytes; i++)
        value = value << 8 | bytes[i];
    return value;
}

int main(int count, char **words)
{
    char file[65536], *lines[64], folder[4096];
    uint32_t known = 0;
    if (count < 2)
        return 0;
    FILE *source = fopen(words[1], "r");
    size_t size = source ? fread(file, 1, sizeof file - 1, source) : 0;
    file[size] = 0;
    for (char *line = strtok(file, "\n"); line && known < 64; line = strtok(NULL, "\n"))
        lines[known++] = line;
    if (known < 3 || !getcwd(folder, sizeof folder))
        die();
    fclose(source);

    number('(', 6);
    number('[', known - 2 + (uint32_t)count - 2);
    for (uint32_t i = 2; i < known; i++)
        text(lines[i], strlen(lines[i]));
    for (int i = 2; i < count; i++)
        text(words[i], strlen(words[i]));
    text(folder, strlen(folder));
    put("{", 1);
    for (char **one = environ; *one; one++) {
        char *value = strchr(*one, '=');
        if (value) {
            text(*one, (size_t)(value - *one));
            text(value + 1, strlen(value + 1));
        }
    }
    put("0", 1);
    mode_t mask = umask(0);
    number('i', mask);
    number('i', (uint32_t)getppid());
    put("{0", 2);

    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(lines[1]) >= sizeof address.sun_path)
        die();
    strcpy(address.sun_path, lines[1]);
    int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), streams[] = {0, 1, 2};
    if (connect(connection, (struct sockaddr *)&address, sizeof address))
        die();
    unsigned char head[8];
    for (int i = 0; i < 8; i++)
        head[i] = (unsigned char)((uint64_t)length >> (56 - 8 * i));
    union { char bytes[CMSG_SPACE(sizeof streams)]; struct cmsghdr alignment; } control = {{0}};
    struct iovec piece = {head, sizeof head};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof streams);
    memcpy(CMSG_DATA(rights), streams, sizeof streams);
    if (sendmsg(connection, &message, 0) != sizeof head)
        die();
    for (size_t sent = 0; sent < length;) {
        ssize_t more = write(connection, request + sent, length - sent);
        if (more <= 0)
            die();
        sent += (size_t)more;
    }
    child = (pid_t)answer(connection);
    int signals[] = {SIGTERM, SIGINT, SIGHUP}, commands = !strcmp(lines[2], "sssjob");
    for (int i = 0; commands && i < 3; i++)         /* stand-ins are killed with whom they are asked by */
        if (signal(signals[i], pass_on) == SIG_IGN)
            signal(signals[i], SIG_IGN);
    int status = (int)answer(connection);
    if (commands && WIFSIGNALED(status)) {
        signal(WTERMSIG(status), SIG_DFL);
        kill(getpid(), WTERMSIG(status));
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status) & 255;
}
