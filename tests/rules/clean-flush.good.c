/* Only the line that changed is flushed. */
#include "pmem.h"

int main(int count, char **words) {
    char *memory = map_file(words[count - 1], 4 * MIB);
    for (int round = 0; round < 128; round++)
        for (size_t at = 0; at < 32 * XPLINE; at += XPLINE) {
            store(memory + at, LINE, at);
            flush_line(memory + at);
            fence();
        }
}
