/* A store of records: they are appended to a log, and an index in DRAM knows where each is. */
#include <fcntl.h>
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define SLOTS (1u << 18)
#define RECORDS 50000

struct record {
    uint64_t key, value[7];
};

struct store {
    struct record records[SLOTS]; /* those in use come first and have a key other than 0 */
};

static void persist(const void *from, size_t bytes) {
    for (const char *line = from; line < (const char *)from + bytes; line += 64)
        __asm__ volatile("clwb %0" : : "m"(*line));
    _mm_sfence();
}

static uint32_t count, index_of[SLOTS];

static void put(struct store *store, uint64_t key) {
    struct record *record = &store->records[count];
    index_of[key * 0x9e3779b97f4a7c15u >> 46] = count;
    record->key = key;
    for (int word = 0; word < 7; word++)
        record->value[word] = key + word;
    persist(record, sizeof *record);
    count++;
}

int main(int words_given, char **words) {
    int file = open(words[words_given - 1], O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, sizeof(struct store)) != 0)
        return 1;
    struct store *store = mmap(NULL, sizeof *store, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    for (uint64_t key = 1; key <= RECORDS; key++)
        put(store, key);
    printf("%u records\n", count);
    return 0;
}
