/* LATTester's loops over one thread's memory: OP PATTERN SIZE ACCESSES FILE.
 * OP is load, ntstore or store+clwb, PATTERN sequential or random, in accesses of SIZE bytes, a power of two from 64 on. */
#include <fcntl.h>
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SPAN ((uint64_t)256 << 20)

/* Each piece is a line: four vectors of 16 B. */
static inline void load(const char *place) {
    __asm__ volatile("movdqa (%0), %%xmm0\n\tmovdqa 16(%0), %%xmm1\n\tmovdqa 32(%0), %%xmm2\n\tmovdqa 48(%0), %%xmm3"
                     : : "r"(place) : "xmm0", "xmm1", "xmm2", "xmm3");
}

static inline void ntstore(char *place) {
    __asm__ volatile("movntdq %%xmm0, (%0)\n\tmovntdq %%xmm0, 16(%0)\n\tmovntdq %%xmm0, 32(%0)\n\tmovntdq %%xmm0, 48(%0)"
                     : : "r"(place) : "memory");
}

static inline void store_clwb(char *place) {
    __asm__ volatile("movdqa %%xmm0, (%0)\n\tmovdqa %%xmm0, 16(%0)\n\tmovdqa %%xmm0, 32(%0)\n\tmovdqa %%xmm0, 48(%0)\n\tclwb (%0)"
                     : : "r"(place) : "memory");
}

#define LOOP(op)                                                                    \
    for (uint64_t access = 0; access < accesses; access++) {                        \
        random = random * 6364136223846793005u + 1442695040888963407u;              \
        uint64_t at = (is_random ? random >> 20 : access * size) & mask;            \
        for (char *line = memory + at, *end = line + size; line < end; line += 64)  \
            op(line);                                                               \
    }

int main(int count, char **words) {
    if (count != 6)
        return 2;
    const char *op = words[1];
    int is_random = strcmp(words[2], "random") == 0;
    uint64_t size = strtoull(words[3], NULL, 10), accesses = strtoull(words[4], NULL, 10);
    uint64_t random = 1, mask = (SPAN - 1) & ~(size - 1);
    int file = open(words[5], O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, (off_t)SPAN) != 0) {
        perror(words[5]);
        return 1;
    }
    char *memory = mmap(NULL, SPAN, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (strcmp(op, "load") == 0)
        LOOP(load)
    else if (strcmp(op, "ntstore") == 0)
        LOOP(ntstore)
    else
        LOOP(store_clwb)
    return 0;
}
