//! Loading a platform: the built-in ones, `extends`, overrides, and where each value came from.

use std::collections::HashMap;
use std::io;

use xpline_model::platform::{Entry, Memory, Optane, Origin, Replacement};
use xpline_model::{Platform, PlatformError};

/// A folder of files in memory, as `Platform::load` reads them.
fn load(files: &[(&str, &str)], name: &str, overrides: &[&str]) -> Result<Platform, PlatformError> {
    let files: HashMap<_, _> = files.iter().copied().collect();
    let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
    let read = |path: &str| match files.get(path) {
        Some(text) => Ok(text.to_string()),
        None => Err(io::Error::from(io::ErrorKind::NotFound)),
    };
    Platform::load(name, &overrides, &read)
}

fn message(files: &[(&str, &str)], name: &str, overrides: &[&str]) -> String {
    load(files, name, overrides).unwrap_err().to_string()
}

fn entry<'a>(platform: &'a Platform, key: &str) -> &'a Entry {
    let found = platform.describe().iter().find(|entry| entry.key == key);
    found.unwrap_or_else(|| panic!("{key} is not described"))
}

fn optane(platform: &Platform) -> &Optane {
    match &platform.memory {
        Memory::Optane(optane) => optane,
        _ => panic!("{} has no Optane memory", platform.name),
    }
}

/// A file that extends `parent`, its first line being line 1.
fn child(parent: &str, rest: &str) -> String {
    format!("name = \"child\"\ndescription = \"a test\"\nextends = \"{parent}\"\n{rest}")
}

#[test]
fn built_in_platforms_load_and_keep_the_name_they_are_listed_under() {
    assert_eq!(
        Platform::builtin_names(),
        [
            "optane",
            "optane-ni",
            "dram",
            "optane-remote",
            "dram-remote",
            "memory-mode",
            "pmep",
            "optane-ni-sec23",
            "optane-2018",
            "optane-2dimms",
            "optane-4dimms",
            "optane-128",
            "optane-512",
            "optane-200",
            "ddr5",
            "epyc-9005",
            "hbm",
            "cxl-dram",
            "cxl-hybrid",
        ]
    );
    for name in Platform::builtin_names() {
        let platform = Platform::builtin(&name).unwrap();
        assert_eq!(platform.name, name);
        assert!(
            platform.describe().len() > 40,
            "{name} describes {} values",
            platform.describe().len()
        );
    }
}

#[test]
fn every_number_of_a_built_in_platform_names_its_source() {
    for name in Platform::builtin_names() {
        let platform = Platform::builtin(&name).unwrap();
        for entry in platform.describe() {
            if !["name", "description"].contains(&entry.key.as_str()) {
                assert!(entry.source.is_some(), "{}: {} has no source", entry.origin, entry.key);
            }
        }
    }
}

#[test]
fn units_reach_the_fields_in_picoseconds_bytes_gigahertz_and_milliwatts() {
    let sets = [
        "core.clock=2200MHz",
        "core.window=224",
        "mesh.request=13.5ns",
        "l2.size=0.5MiB",
        "optane.power.budget=12.5W",
        "optane.power.idle=5740mW",
        "optane.xpbuffer.contention_slope=0.25",
        "optane.media.read_latency=0.2us",
    ];
    let platform = load(&[], "optane", &sets).unwrap();
    assert!((platform.core.clock - 2.2).abs() < 1e-9);
    assert_eq!(platform.core.window, 224);
    assert_eq!(platform.mesh.request, 13_500);
    assert_eq!(platform.l2.size, 512 << 10);
    let optane = optane(&platform);
    assert_eq!((optane.power.budget, optane.power.idle), (12_500, 5_740));
    assert_eq!(optane.xpbuffer.contention_slope, 0.25);
    assert_eq!(optane.media.read_latency, 200_000);
}

#[test]
fn the_non_interleaved_platform_differs_from_the_interleaved_one_in_its_dimms_only() {
    let (mut ni, optane) = (
        Platform::builtin("optane-ni").unwrap(),
        Platform::builtin("optane").unwrap(),
    );
    assert_eq!((ni.interleave.dimms, optane.interleave.dimms), (1, 6));
    ni.interleave = optane.interleave.clone();
    assert_eq!(
        (ni.core, ni.memory, ni.interleave),
        (optane.core, optane.memory, optane.interleave)
    );
}

#[test]
fn the_dram_platform_shares_the_host_of_the_optane_one() {
    let (mut dram, optane) = (Platform::builtin("dram").unwrap(), Platform::builtin("optane").unwrap());
    assert!(matches!(dram.memory, Memory::Dram(_)));
    // A law of the order in which lines leave for either memory, and the code that the sweep ran.
    dram.l3.in_step = optane.l3.in_step;
    dram.l3.in_step_most = optane.l3.in_step_most;
    dram.l3.in_step_queue = optane.l3.in_step_queue;
    dram.core.stride_store = optane.core.stride_store;
    assert_eq!((dram.core, dram.l3, dram.mesh), (optane.core, optane.l3, optane.mesh));
}

#[test]
fn the_nearest_file_wins_and_an_override_wins_over_all() {
    let parent = child(
        "optane",
        "[optane.xpbuffer]\nlines = 96 # parent\nhit_latency = \"61ns\"\n",
    );
    let child = child("parent.toml", "[optane.xpbuffer]\nlines = 80 # child\n");
    let files = [("lab/parent.toml", parent.as_str()), ("lab/child.toml", child.as_str())];

    let platform = load(&files, "lab/child.toml", &[]).unwrap();
    assert_eq!(entry(&platform, "optane.xpbuffer.lines").value, "80");
    assert_eq!(
        entry(&platform, "optane.xpbuffer.lines").source.as_deref(),
        Some("child")
    );
    assert_eq!(
        entry(&platform, "optane.xpbuffer.hit_latency").origin.to_string(),
        "lab/parent.toml:6"
    );
    assert!(
        entry(&platform, "optane.media.banks")
            .origin
            .to_string()
            .starts_with("platforms/optane.toml:")
    );
    assert!(
        entry(&platform, "core.count")
            .origin
            .to_string()
            .starts_with("platforms/cascade-lake.toml:")
    );

    let sets = ["optane.xpbuffer.lines=112", "optane.xpbuffer.lines = 128"];
    let platform = load(&files, "lab/child.toml", &sets).unwrap();
    let optane = optane(&platform);
    assert_eq!(optane.xpbuffer.lines, 128);
    assert_eq!(entry(&platform, "optane.xpbuffer.lines").origin, Origin::Override);
    assert_eq!(entry(&platform, "optane.xpbuffer.lines").source, None);
}

#[test]
fn overrides_take_units_with_and_without_quotes() {
    let sets = [
        "optane.power.budget=12.5W",
        "l2.size=\"2MiB\"",
        "l3.replacement=lru",
        "core.clock=2400 MHz",
    ];
    let platform = load(&[], "optane", &sets).unwrap();
    let optane = optane(&platform);
    assert_eq!(optane.power.budget, 12_500);
    assert_eq!(platform.l2.size, 2 << 20);
    assert_eq!(platform.l3.replacement, Replacement::Lru);
    assert!((platform.core.clock - 2.4).abs() < 1e-9);
}

#[test]
fn a_source_is_the_comment_beside_a_value_or_the_lines_right_above_it() {
    let text = child(
        "optane",
        "[core]\n# far above\n\nwindow = 1\n# two\n# lines\nfill_buffers = 2\n# above\nstore_buffer = 3 # beside\n\
         fence = \"1ns\" # has a # inside\n",
    );
    let platform = load(&[("x.toml", &text)], "x.toml", &[]).unwrap();
    let source = |key| entry(&platform, key).source.as_deref();
    assert_eq!(source("core.window"), None);
    assert_eq!(source("core.fill_buffers"), Some("two lines"));
    assert_eq!(source("core.store_buffer"), Some("beside"));
    assert_eq!(source("core.fence"), Some("has a # inside"));
}

#[test]
fn dotted_keys_inline_tables_and_sections_are_the_same_thing() {
    let written = [
        "optane.xpbuffer.lines = 99\noptane.xpbuffer.hit_latency = \"7ns\"\n",
        "optane.xpbuffer = { lines = 99, hit_latency = \"7ns\" }\n",
        "[optane]\nxpbuffer.lines = 99\nxpbuffer.hit_latency = \"7ns\"\n",
    ];
    for rest in written {
        let platform = load(&[("x.toml", &child("optane", rest))], "x.toml", &[]).unwrap();
        let optane = optane(&platform);
        assert_eq!(
            (optane.xpbuffer.lines, optane.xpbuffer.hit_latency),
            (99, 7_000),
            "{rest}"
        );
    }
}

#[test]
fn a_description_is_told_whole() {
    let long = "memory ".repeat(40);
    let text = format!("name = \"x\"\ndescription = \"{long}\"\nextends = \"optane\"\n");
    let platform = load(&[("x.toml", &text)], "x.toml", &[]).unwrap();
    assert_eq!(platform.description, long);
    assert_eq!(entry(&platform, "description").value, format!("\"{long}\""));
}

#[test]
fn name_and_description_are_not_handed_down() {
    let text = "extends = \"optane\"\nname = \"x\"\n";
    assert_eq!(
        message(&[("x.toml", text)], "x.toml", &[]),
        "x.toml: missing key `description` (What the platform is, in a line; allowed: a line of text)"
    );
}

#[test]
fn a_base_cannot_be_run_on_but_can_be_extended_by_a_whole_platform() {
    assert_eq!(
        message(&[], "cascade-lake", &[]),
        "`cascade-lake` is only a base for other platforms to extend; platforms to run on are optane, optane-ni, dram, optane-remote, dram-remote, memory-mode, pmep, optane-ni-sec23, optane-2018, optane-2dimms, optane-4dimms, optane-128, optane-512, optane-200, ddr5, epyc-9005, hbm, cxl-dram, cxl-hybrid"
    );
    let text = child("cascade-lake", "memory = \"dram\"\n");
    assert_eq!(
        message(&[("x.toml", &text)], "x.toml", &[]),
        "x.toml: missing key `dram.ranks` (Ranks of a channel; allowed: a whole number from 1 to 16)"
    );
}

#[test]
fn circles_of_extends_end_under_any_spelling() {
    let files = [
        ("lab/a.toml", child("b.toml", "")),
        ("lab/b.toml", child("./sub/../a.toml", "")),
        ("lab/./sub/../a.toml", child("b.toml", "")),
        ("self.toml", child("self.toml", "")),
    ];
    let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    assert_eq!(
        message(&files, "lab/a.toml", &[]),
        "lab/b.toml:3: `extends` goes round in a circle or too deep: lab/a.toml extends lab/b.toml extends lab/a.toml"
    );
    assert_eq!(
        message(&files, "self.toml", &[]),
        "self.toml:3: `extends` goes round in a circle or too deep: self.toml extends self.toml"
    );
    // A link to its own folder never spells the same path twice.
    let link = |_: &str| Ok(child("link/x.toml", ""));
    let error = Platform::load("x.toml", &[], &link).unwrap_err().to_string();
    assert!(error.starts_with("link/link/link/"), "{error}");
    assert!(error.contains("too deep"), "{error}");
}

#[test]
fn names_that_lead_nowhere_list_what_is_built_in() {
    assert_eq!(
        message(&[], "optan", &[]),
        "no platform `optan`: it is not built in, and as a file it cannot be read (entity not found); \
         built in are optane, optane-ni, dram, optane-remote, dram-remote, memory-mode, pmep, optane-ni-sec23, optane-2018, optane-2dimms, optane-4dimms, optane-128, optane-512, optane-200, ddr5, epyc-9005, hbm, cxl-dram, cxl-hybrid"
    );
    assert_eq!(
        message(&[("lab/x.toml", &child("y.toml", ""))], "lab/x.toml", &[]),
        "lab/x.toml:3: no platform `lab/y.toml`: it is not built in, and as a file it cannot be read \
         (entity not found); built in are optane, optane-ni, dram, optane-remote, dram-remote, memory-mode, pmep, optane-ni-sec23, optane-2018, optane-2dimms, optane-4dimms, optane-128, optane-512, optane-200, ddr5, epyc-9005, hbm, cxl-dram, cxl-hybrid, cascade-lake, sapphire-rapids"
    );
}

#[test]
fn the_key_table_has_every_value_of_a_platform_with_its_meaning() {
    let keys = Platform::keys();
    for platform in Platform::builtin_names()
        .iter()
        .map(|name| Platform::builtin(name).unwrap())
    {
        for entry in platform.describe() {
            let key = keys.iter().find(|key| key.path == entry.key).unwrap();
            assert_eq!(key.about, entry.about);
            assert!(!key.about.is_empty() && !key.allowed.is_empty(), "{key:?}");
        }
    }
    let lines = keys.iter().find(|key| key.path == "optane.xpbuffer.line").unwrap();
    assert_eq!(lines.allowed, "a size from 64B to 512B, a power of two");
}
