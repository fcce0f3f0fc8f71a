/* 10000 entries in a hundred transactions of LMDB, through a writable map: FOLDER. */
#include <lmdb.h>
#include <stdio.h>
#include <string.h>

static int put_hundred(MDB_env *env, int first) {
    MDB_txn *transaction;
    MDB_dbi database;
    mdb_txn_begin(env, NULL, 0, &transaction);
    mdb_dbi_open(transaction, NULL, MDB_CREATE, &database);
    for (int number = first; number < first + 100; number++) {
        char text[100];
        memset(text, number, sizeof text);
        MDB_val key = {sizeof number, &number}, value = {sizeof text, text};
        mdb_put(transaction, database, &key, &value, 0);
    }
    return mdb_txn_commit(transaction);
}

int main(int count, char **words) {
    MDB_env *env;
    MDB_stat stat;
    mdb_env_create(&env);
    mdb_env_set_mapsize(env, 64 << 20);
    if (mdb_env_open(env, words[count - 1], MDB_WRITEMAP, 0600) != 0)
        return 1;
    for (int first = 0; first < 10000; first += 100)
        if (put_hundred(env, first) != 0)
            return 2;
    mdb_env_stat(env, &stat);
    printf("%zu entries\n", stat.ms_entries);
    mdb_env_close(env);
    return 0;
}
