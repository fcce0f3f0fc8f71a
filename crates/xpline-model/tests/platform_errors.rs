//! What a person reads who wrote a wrong platform: each message whole, with file, line, key, value, and what is allowed.

use std::io;

use xpline_model::Platform;

/// Load a file of three lines that extends `optane`, then `rest`.
fn file(rest: &str) -> String {
    let text = format!("name = \"x\"\ndescription = \"x\"\nextends = \"optane\"\n{rest}");
    raw(&text)
}

fn raw(text: &str) -> String {
    Platform::load("x.toml", &[], &|_| Ok(text.into()))
        .unwrap_err()
        .to_string()
}

fn set(platform: &str, text: &str) -> String {
    let nothing = |_: &str| Err(io::ErrorKind::NotFound.into());
    Platform::load(platform, &[text.into()], &nothing)
        .unwrap_err()
        .to_string()
}

/// Each case: what was written, and the message.
fn assert_messages(write: impl Fn(&str) -> String, cases: &[(&str, &str)]) {
    for (written, expected) in cases {
        assert_eq!(&write(written), expected, "for {written:?}");
    }
}

#[test]
fn text_that_is_not_toml() {
    assert_messages(
        raw,
        &[
            (
                "name = \"x\"\nextends = ",
                "x.toml:2: not valid TOML: string values must be quoted, expected literal string",
            ),
            (
                "name = \"x\"\nname = \"y\"\n",
                "x.toml:2: not valid TOML: duplicate key",
            ),
        ],
    );
}

#[test]
fn unknown_keys_and_sections() {
    assert_messages(
        file,
        &[
            (
                "[core]\nwindows = 4\n",
                "x.toml:5: unknown key `core.windows`; did you mean `core.window`?",
            ),
            (
                "[core]\ncount = 4\n[xpbuffer]\nlines = 4\n",
                "x.toml:7: unknown key `xpbuffer.lines`; did you mean `optane.xpbuffer.lines`?",
            ),
            (
                "[optane.xpbufer]\n",
                "x.toml:4: unknown key `[optane.xpbufer]`; did you mean `optane.xpbuffer.line`?",
            ),
            ("core = 4\n", "x.toml:4: unknown key `core`; did you mean `core.count`?"),
            (
                "zzz = 4\n",
                "x.toml:4: unknown key `zzz`; `xpline platform show optane` lists the keys",
            ),
            (
                "\"core.count\" = 4\n",
                "x.toml:4: unknown key `\"core.count\"`; did you mean `core.count`?",
            ),
            (
                "core.count.more = 4\n",
                "x.toml:4: unknown key `core.count.more`; did you mean `core.count`?",
            ),
            (
                "core.count = {}\n",
                "x.toml:4: unknown key `[core.count]`; did you mean `core.count`?",
            ),
            (
                "extend = \"dram\"\n",
                "x.toml:4: unknown key `extend`; did you mean `extends`?",
            ),
        ],
    );
}

#[test]
fn values_that_a_key_cannot_take() {
    assert_messages(
        file,
        &[
            (
                "l1d.size = \"-32KiB\"\n",
                "x.toml:4: l1d.size = \"-32KiB\" is less than allowed; allowed: a size from 1KiB to 64MiB, a multiple of 64B",
            ),
            (
                "l1d.size = \"1100B\"\n",
                "x.toml:4: l1d.size = \"1100B\" is not a multiple of 64B; allowed: a size from 1KiB to 64MiB, a multiple of 64B",
            ),
            (
                "l1d.size = \"32KB\"\n",
                "x.toml:4: l1d.size = \"32KB\" is in an unknown unit (known: B, KiB, MiB, GiB); allowed: a size from 1KiB to 64MiB, a multiple of 64B",
            ),
            (
                "l1d.size = 32768\n",
                "x.toml:4: l1d.size = 32768 is without a unit (B, KiB, MiB, GiB, in quotes); allowed: a size from 1KiB to 64MiB, a multiple of 64B",
            ),
            (
                "l1d.size = \"32768\"\n",
                "x.toml:4: l1d.size = \"32768\" is without a unit (B, KiB, MiB, GiB); allowed: a size from 1KiB to 64MiB, a multiple of 64B",
            ),
            (
                "l1d.hit = \"4KiB\"\n",
                "x.toml:4: l1d.hit = \"4KiB\" is in an unknown unit (known: ps, ns, us, ms); allowed: a time from 1ps to 1us",
            ),
            (
                "l1d.hit = \"soon\"\n",
                "x.toml:4: l1d.hit = \"soon\" is not a time; allowed: a time from 1ps to 1us",
            ),
            (
                "l1d.hit = \"0.0001ns\"\n",
                "x.toml:4: l1d.hit = \"0.0001ns\" is less than allowed; allowed: a time from 1ps to 1us",
            ),
            (
                "interleave.granularity = \"3KiB\"\n",
                "x.toml:4: interleave.granularity = \"3KiB\" is not a power of two; allowed: a size from 256B to 1GiB, a power of two",
            ),
            (
                "core.count = 0\n",
                "x.toml:4: core.count = 0 is less than allowed; allowed: a whole number from 1 to 256",
            ),
            (
                "core.count = 99999999999999999999\n",
                "x.toml:4: core.count = 99999999999999999999 is more than allowed; allowed: a whole number from 1 to 256",
            ),
            (
                "core.count = -99999999999999999999\n",
                "x.toml:4: core.count = -99999999999999999999 is less than allowed; allowed: a whole number from 1 to 256",
            ),
            (
                "l1d.hit = \"a very long text, longer than anyone would want to read again in a message\"\n",
                "x.toml:4: l1d.hit = \"a very long text, longer than anyone would want to read aga... is not a time; allowed: a time from 1ps to 1us",
            ),
            (
                "core.count = 1.5\n",
                "x.toml:4: core.count = 1.5 is not whole; allowed: a whole number from 1 to 256",
            ),
            (
                "core.count = \"24\"\n",
                "x.toml:4: core.count = \"24\" is not a whole number; allowed: a whole number from 1 to 256",
            ),
            (
                "core.count = [24]\n",
                "x.toml:4: core.count = [24] is not a whole number; allowed: a whole number from 1 to 256",
            ),
            (
                "core.clock = \"2.2Ghz\"\n",
                "x.toml:4: core.clock = \"2.2Ghz\" is in an unknown unit (known: MHz, GHz); allowed: a frequency from 100MHz to 10GHz",
            ),
            (
                "optane.power.budget = \"15kW\"\n",
                "x.toml:4: optane.power.budget = \"15kW\" is in an unknown unit (known: mW, W); allowed: a power from 1W to 100W",
            ),
            (
                "optane.xpbuffer.contention_slope = nan\n",
                "x.toml:4: optane.xpbuffer.contention_slope = nan is not a number; allowed: a number from 0 to 16",
            ),
            (
                "l3.replacement = \"fifo\"\n",
                "x.toml:4: l3.replacement = \"fifo\" is not one of the choices; allowed: \"random\" or \"lru\"",
            ),
            (
                "memory = \"flash\"\n",
                "x.toml:4: memory = \"flash\" is not one of the choices; allowed: \"optane\" or \"dram\" or \"hybrid\" or \"memory-mode\"",
            ),
            (
                "abstract = 1\n",
                "x.toml:4: abstract = 1 is not true or false; allowed: true or false",
            ),
        ],
    );
    assert_messages(
        raw,
        &[
            (
                "extends = 1\n",
                "x.toml:1: extends = 1 is not a text in quotes; allowed: a line of text",
            ),
            (
                "extends = \"optane\"\nname = \" \"\n",
                "x.toml:2: name = \" \" is empty; allowed: a line of text",
            ),
            (
                "extends = \"optane\"\nname = '''\na\nb'''\n",
                "x.toml:2: name = ''' is more than one line of text; allowed: a line of text",
            ),
        ],
    );
}

#[test]
fn values_that_contradict_each_other() {
    assert_messages(
        file,
        &[
            (
                "l1d.size = \"32832B\"\nl1d.ways = 8\n",
                "x.toml:4: l1d.size = \"32832B\" is not a multiple of 512B; allowed: a multiple of ways x 64B = 512B",
            ),
            (
                "imc.controllers = 2\nimc.channels = 3\ninterleave.dimms = 7\n",
                "x.toml:6: interleave.dimms = 7 is more than there are channels; allowed: at most imc.controllers x imc.channels = 6",
            ),
            (
                "imc.wpq = 32\nimc.wpq_per_core = 33\n",
                "x.toml:5: imc.wpq_per_core = 33 is more than the queue holds; allowed: at most imc.wpq = 32",
            ),
            (
                "interleave.granularity = \"256B\"\noptane.xpbuffer.line = \"512B\"\n",
                "x.toml:4: interleave.granularity = \"256B\" is not a multiple of 512B; allowed: a multiple of optane.xpbuffer.line = 512B",
            ),
            (
                "optane.ait = { page = \"4KiB\", ways = 4, cache = \"20KiB\" }\n",
                "x.toml:4: optane.ait.cache = \"20KiB\" is not a multiple of 16KiB; allowed: a multiple of optane.ait.ways x optane.ait.page = 16KiB",
            ),
            (
                "optane.power.budget = \"12W\"\noptane.power.idle = \"12000mW\"\n",
                "x.toml:4: optane.power.budget = \"12W\" is not above the idle power; allowed: more than optane.power.idle = 12W",
            ),
        ],
    );
    let dram = |rest: &str| {
        raw(&format!(
            "name = \"x\"\ndescription = \"x\"\nextends = \"dram\"\n{rest}"
        ))
    };
    assert_messages(
        dram,
        &[
            (
                "dram.trcd = \"14.25ns\"\ndram.tras = \"10ns\"\n",
                "x.toml:5: dram.tras = \"10ns\" is less than dram.trcd; allowed: at least dram.trcd = 14.25ns",
            ),
            (
                "dram.ranks = 1\ndram.banks = 4\ndram.low_banks = 8\n",
                "x.toml:6: dram.low_banks = 8 is more than there are banks; allowed: at most dram.ranks x dram.banks = 4",
            ),
        ],
    );
}

#[test]
fn keys_of_a_memory_that_the_platform_does_not_have() {
    let expected = "has no effect on a platform whose memory is \"optane\"; remove it, or change `memory`";
    assert_eq!(
        file("\n[dram]\nranks = 1\n"),
        format!("x.toml:6: `dram.ranks` {expected}")
    );
    assert_eq!(set("optane", "dram.ranks=1"), format!("--set: `dram.ranks` {expected}"));
}

#[test]
fn overrides() {
    assert_messages(
        |text| set("optane", text),
        &[
            (
                "lines",
                "--set: `lines` is not an override; write KEY=VALUE, such as optane.xpbuffer.lines=128",
            ),
            (
                "lines=128",
                "--set: unknown key `lines`; did you mean `optane.xpbuffer.lines`?",
            ),
            (
                "optane.xpbuffer.line=100B",
                "--set: optane.xpbuffer.line = 100B is not a power of two; allowed: a size from 64B to 512B, a power of two",
            ),
            (
                "optane.xpbuffer.lines=",
                "--set: optane.xpbuffer.lines =  is not a whole number; allowed: a whole number from 1 to 32768",
            ),
            (
                "extends=dram",
                "--set: `extends` belongs to a platform file and cannot be overridden",
            ),
        ],
    );
}
