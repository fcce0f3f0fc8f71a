/* LATTester's loops over one thread's memory: OP PATTERN SIZE ACCESSES FILE.
 * OP is load, ntstore or store+clwb, PATTERN sequential or random, in accesses of SIZE bytes, a power of two from 64 on. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SPAN ((uint64_t)256 << 20)
#define TAPS 0xd800000000000000u

/* Each moves a line: four vectors of 16 B. */
static inline void load(char *line) {
    __asm__ volatile("movdqa (%0), %%xmm0\n\tmovdqa 16(%0), %%xmm1\n\tmovdqa 32(%0), %%xmm2\n\tmovdqa 48(%0), %%xmm3"
                     : : "r"(line) : "xmm0", "xmm1", "xmm2", "xmm3");
}

static inline void ntstore(char *line) {
    __asm__ volatile("movntdq %%xmm0, (%0)\n\tmovntdq %%xmm0, 16(%0)\n\tmovntdq %%xmm0, 32(%0)\n\tmovntdq %%xmm0, 48(%0)"
                     : : "r"(line) : "memory");
}

static inline void store_clwb(char *line) {
    __asm__ volatile("movdqa %%xmm0, (%0)\n\tmovdqa %%xmm0, 16(%0)\n\tmovdqa %%xmm0, 32(%0)\n\tmovdqa %%xmm0, 48(%0)\n\tclwb (%0)"
                     : : "r"(line) : "memory");
}

#define SEQUENTIAL(op)                                         \
    for (uint64_t at = 0; at < accesses * size; at += 64)      \
        op(memory + (at & (SPAN - 1)));

/* The place is the state of a shift register with linear feedback. */
#define RANDOM(op)                                                                  \
    do {                                                                            \
        random = (random >> 1) ^ (-(random & 1) & TAPS);                            \
        char *line = memory + (random & mask), *end = line + size;                  \
        do {                                                                        \
            op(line);                                                               \
            line += 64;                                                             \
        } while (line < end);                                                       \
    } while (--accesses > 0);

#define LOOP(op)                                \
    if (strcmp(words[2], "random") == 0) {      \
        RANDOM(op)                              \
    } else {                                    \
        SEQUENTIAL(op)                          \
    }

int main(int count, char **words) {
    if (count != 6)
        return 2;
    uint64_t size = strtoull(words[3], NULL, 10), accesses = strtoull(words[4], NULL, 10);
    uint64_t random = 0x9e3779b97f4a7c15u, mask = (SPAN - 1) & ~(size - 1);
    int file = open(words[5], O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, (off_t)SPAN) != 0) {
        perror(words[5]);
        return 1;
    }
    char *memory = mmap(NULL, SPAN, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (strcmp(words[1], "load") == 0) {
        LOOP(load)
    } else if (strcmp(words[1], "ntstore") == 0) {
        LOOP(ntstore)
    } else {
        LOOP(store_clwb)
    }
    return 0;
}
