/* What the examples of libpmemobj include and its packages leave out. */
#pragma once
#include <stdint.h>
#include <unistd.h>
#define CREATE_MODE_RW 0600
static inline int file_exists(const char *path) { return access(path, F_OK); }
static inline uint32_t find_last_set_64(uint64_t value) { return 63 - (uint32_t)__builtin_clzll(value); }
#define MIN(a, b) ((a) < (b) ? (a) : (b))
