//! Whatever stands in a file or an override, loading ends with a platform or a message, never with a panic.

use proptest::prelude::*;
use xpline_model::Platform;

/// The files that a reader asks for, all of them holding `text`.
fn load(text: &str, overrides: &[String]) -> Result<Platform, String> {
    let platform = Platform::load("x.toml", overrides, &|_| Ok(text.into()));
    platform.map_err(|error| error.to_string())
}

/// A whole platform in one file: every key of `name`, as it was written.
fn whole(name: &str) -> Vec<String> {
    let platform = Platform::builtin(name).unwrap();
    platform
        .describe()
        .iter()
        .map(|entry| format!("{} = {}", entry.key, entry.value))
        .collect()
}

#[test]
fn the_description_of_a_platform_is_a_platform() {
    for name in Platform::builtin_names() {
        let (again, platform) = (
            load(&whole(&name).join("\n"), &[]).unwrap(),
            Platform::builtin(&name).unwrap(),
        );
        assert_eq!((again.core, again.memory), (platform.core, platform.memory));
        assert_eq!(
            (again.l1d, again.l2, again.l3),
            (platform.l1d, platform.l2, platform.l3)
        );
        assert_eq!(
            (again.mesh, again.imc, again.interleave),
            (platform.mesh, platform.imc, platform.interleave)
        );
    }
}

#[test]
fn a_byte_order_mark_and_any_line_ends_are_no_trouble() {
    let text = format!("\u{feff}{}", whole("optane").join("\r\n"));
    assert_eq!(load(&text, &[]).unwrap().describe().len(), whole("optane").len());
}

#[test]
fn nesting_without_end_is_refused() {
    let deep = "a.".repeat(100_000);
    assert!(load(&format!("{deep}a = 1"), &[]).is_err());
    assert!(load(&format!("[{deep}a]"), &[]).is_err());
    assert!(load(&format!("a = {}", "[".repeat(100_000)), &[]).is_err());
    assert!(load("", &[format!("core.count={}", "[".repeat(100_000))]).is_err());
}

/// Words that mean something to the parser, in any order, reach further than arbitrary characters.
fn word() -> impl Strategy<Value = String> {
    let keys: Vec<_> = Platform::keys().into_iter().map(|key| key.path).collect();
    let marks = vec![
        "=",
        "\n",
        "[",
        "]",
        "{",
        "}",
        ",",
        ".",
        "\"",
        "'''",
        "#",
        "-",
        "1",
        "0x",
        "1e999",
        "nan",
        "true",
        "ns",
        "\"64B\"",
        "\"-9GiB\"",
        "\"99999999999999999999ns\"",
        "extends = \"x.toml\"",
        "extends = \"/\"",
        "1979-05-27",
        "\u{feff}",
        "é",
    ];
    prop_oneof![
        proptest::sample::select(keys),
        proptest::sample::select(marks).prop_map(String::from),
    ]
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in any::<String>(), key in any::<String>()) {
        let _ = load(&text, &[]);
        prop_assert!(load(&whole("dram").join("\n"), &[key.replace('=', "")]).is_err());
    }

    #[test]
    fn arbitrary_words_never_panic(words in proptest::collection::vec(word(), 0..30)) {
        let _ = load(&words.concat(), &[]);
    }

    #[test]
    fn arbitrary_overrides_never_panic(
        key in proptest::sample::select(Platform::keys()),
        value in prop_oneof![any::<String>(), word(), any::<f64>().prop_map(|number| format!("{number}ns"))],
    ) {
        let _ = load(&whole("optane").join("\n"), &[format!("{}={value}", key.path)]);
    }

    /// One line changed, dropped or doubled: an error that names the file, or a platform that holds the same keys.
    #[test]
    fn a_file_with_a_changed_line_loads_or_says_where(
        at in 0..whole("optane").len(),
        replacement in prop_oneof![any::<String>(), Just(String::new()), word()],
        keep in any::<bool>(),
    ) {
        let mut lines = whole("optane");
        let count = lines.len();
        if keep {
            let key = lines[at].split_once('=').unwrap().0;
            lines[at] = format!("{key}= {replacement}");
        } else {
            lines[at] = replacement;
        }
        match load(&lines.join("\n"), &[]) {
            Ok(platform) => prop_assert_eq!(platform.describe().len(), count),
            Err(message) => prop_assert!(message.contains("x.toml"), "{}", message),
        }
    }

    #[test]
    fn times_are_read_to_the_picosecond(picoseconds in 1_u64..1_000_000) {
        for written in [
            format!("{picoseconds}ps"),
            format!("{}.{:03}ns", picoseconds / 1_000, picoseconds % 1_000),
            format!("{}.{:06} us", picoseconds / 1_000_000, picoseconds % 1_000_000),
        ] {
            let platform = load(&whole("optane").join("\n"), &[format!("mesh.request={written}")]).unwrap();
            prop_assert_eq!(platform.mesh.request, picoseconds);
        }
    }
}
