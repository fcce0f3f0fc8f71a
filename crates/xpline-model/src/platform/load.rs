//! From a name to a platform: the file, what it extends, and the overrides.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::builtin;
use super::check;
use super::error::{BadValue, Origin, PlatformError};
use super::key::{Key, Node, Reader, Section, Written};
use super::schema::{Memory, Platform};
use super::source::{Source, override_value};
use super::unit::{Any, Flag, Text, Unit};

/// Keys that belong to a file rather than to the platform it describes.
const EXTENDS: &str = "extends";
const ABSTRACT: &str = "abstract";

/// Keys that describe one file and are not handed down to those that extend it.
const OWN: [&str; 2] = ["name", "description"];

/// More levels of `extends` than anyone needs; ends circles through links of the file system.
const DEEPEST: usize = 16;

/// Reads the text of a file: the model itself does no input or output.
pub type ReadFile<'a> = &'a dyn Fn(&str) -> io::Result<String>;

/// What `volatile` names where a platform has no memory but its own.
const NONE: &str = "none";

/// Load the platform `name`, with what it extends, with `overrides` on top, and with the volatile memory beside it.
pub fn load(name: &str, overrides: &[String], read: ReadFile) -> Result<Platform, PlatformError> {
    let mut platform = load_alone(name, None, overrides, read)?;
    if platform.volatile.name == NONE {
        return Ok(platform);
    }
    let entry = platform.describe().iter().find(|entry| entry.key == "volatile");
    let origin = entry.map_or(Origin::Override, |entry| entry.origin.clone());
    let named = match &origin {
        Origin::File { file, .. } => beside(file, platform.volatile.name.clone()),
        Origin::Override => platform.volatile.name.clone(),
    };
    let volatile = load_alone(&named, Some(&origin), &[], read)?;
    if !matches!(volatile.memory, Memory::Dram(_)) || volatile.volatile.name != NONE {
        return Err(BadValue {
            origin,
            key: "volatile".into(),
            value: platform.volatile.name,
            problem: "not volatile".into(),
            allowed: "a platform whose memory is \"dram\" and that has none beside it, such as dram".into(),
        }
        .into());
    }
    platform.volatile.platform = Some(Box::new(volatile));
    Ok(platform)
}

/// Load a platform without what is beside it; `origin` is the line that named it.
fn load_alone(
    name: &str,
    origin: Option<&Origin>,
    overrides: &[String],
    read: ReadFile,
) -> Result<Platform, PlatformError> {
    let keys = keys();
    let mut layers = layers(name, origin, &keys, read)?;
    let top = layers.remove(0);
    if top.base {
        return Err(PlatformError::Abstract {
            name: name.into(),
            known: names(),
        });
    }
    let file = top.source.file;
    let mut written: BTreeMap<_, _> = layers
        .into_iter()
        .rev()
        .flat_map(|layer| layer.source.written)
        .collect();
    OWN.iter().for_each(|key| drop(written.remove(*key)));
    written.extend(top.source.written);
    for text in overrides {
        let (key, value) = parse_override(text, &keys)?;
        written.insert(key, value);
    }

    let mut reader = Reader::new(file.clone(), written);
    let platform = Platform::read(&mut reader, "", "", &Section)?;
    refuse_unused(reader.left_over(), &file, platform.memory.name())?;
    check::check(&platform)?;
    Ok(platform)
}

/// Every key that a platform file may hold.
pub fn keys() -> Vec<Key> {
    let header = |path: &str, about: &str, allowed: String| Key {
        path: path.into(),
        about: about.into(),
        allowed,
    };
    let mut keys = vec![
        header(
            EXTENDS,
            "Platform that supplies every value not set here",
            "a built-in platform, or a path relative to this file; may be left out".into(),
        ),
        header(
            ABSTRACT,
            "Whether this is only a base for other platforms",
            format!("{}; may be left out", Flag::describe(&Any)),
        ),
    ];
    Platform::list("", "", &Section, &mut keys);
    keys
}

/// Names of the built-in platforms.
pub fn names() -> Vec<String> {
    builtin::PLATFORMS
        .iter()
        .map(|builtin| builtin.name.to_string())
        .collect()
}

/// One file of a chain of `extends`.
struct Layer {
    source: Source,
    /// `abstract = true`: only to be extended.
    base: bool,
}

/// The file called `name` and all that it extends, nearest first.
fn layers(name: &str, origin: Option<&Origin>, keys: &[Key], read: ReadFile) -> Result<Vec<Layer>, PlatformError> {
    let mut layers = Vec::new();
    let mut chain = Vec::new();
    let mut next = Some((name.to_string(), origin.cloned()));
    while let Some((name, origin)) = next {
        let (identity, file, text) = open(&name, origin.as_ref(), read)?;
        let circle = chain.contains(&identity) || chain.len() == DEEPEST;
        chain.push(identity);
        if let (true, Some(origin)) = (circle, origin) {
            return Err(PlatformError::ExtendsCycle { origin, chain });
        }
        let mut source = Source::parse(&file, &text)?;
        let base = header::<Flag>(&mut source, ABSTRACT)?.is_some_and(|(base, _)| base);
        let extends = header::<Text>(&mut source, EXTENDS)?;
        refuse_unknown(&source, keys)?;
        next = extends.map(|(parent, origin)| (beside(&file, parent), Some(origin)));
        layers.push(Layer { source, base });
    }
    Ok(layers)
}

/// The text called `name`, with the name that messages give its file and one that tells files apart.
fn open(name: &str, origin: Option<&Origin>, read: ReadFile) -> Result<(String, String, String), PlatformError> {
    if let Some(builtin) = builtin::find(name) {
        return Ok((builtin.name.into(), builtin.file.into(), builtin.text.into()));
    }
    match read(name) {
        Ok(text) => Ok((normal(name), name.into(), text)),
        Err(cause) => {
            let mut known = names();
            if origin.is_some() {
                known.extend(builtin::BASES.iter().map(|base| base.name.to_string()));
            }
            Err(PlatformError::NotFound {
                origin: origin.cloned(),
                name: name.into(),
                cause: cause.to_string(),
                known,
            })
        }
    }
}

/// What `extends = parent` in `file` names: a built-in platform, or a path relative to the file.
fn beside(file: &str, parent: String) -> String {
    if builtin::find(&parent).is_some() {
        return parent;
    }
    Path::new(file)
        .with_file_name("")
        .join(parent)
        .to_string_lossy()
        .into_owned()
}

/// A path without `.` and `..`, to recognise a file under another spelling.
fn normal(path: &str) -> String {
    let mut normal = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(normal.components().next_back(), Some(Component::Normal(_))) => {
                normal.pop();
            }
            part => normal.push(part),
        }
    }
    normal.to_string_lossy().into_owned()
}

/// Take a key of the file itself out of `source`.
fn header<U: Unit<Allowed = Any>>(source: &mut Source, key: &str) -> Result<Option<(U::Value, Origin)>, PlatformError> {
    match source.written.remove(key) {
        Some(written) => Ok(Some((written.read::<U>(key, &Any)?, written.origin))),
        None => Ok(None),
    }
}

fn parse_override(text: &str, keys: &[Key]) -> Result<(String, Written), PlatformError> {
    let Some((key, value)) = text.split_once('=') else {
        return Err(PlatformError::BadOverride { text: text.into() });
    };
    let (key, value) = (key.trim(), value.trim());
    if [EXTENDS, ABSTRACT].contains(&key) {
        return Err(PlatformError::NotOverridable { key: key.into() });
    }
    if !keys.iter().any(|known| known.path == key) {
        return Err(PlatformError::UnknownKey {
            origin: Origin::Override,
            key: key.into(),
            nearest: nearest(key, keys),
        });
    }
    Ok((key.into(), override_value(value)))
}

/// Refuse the first key or empty section of the file that no platform has.
fn refuse_unknown(source: &Source, keys: &[Key]) -> Result<(), PlatformError> {
    let is_key = |path: &str| keys.iter().any(|key| key.path == path);
    let is_section = |path: &str| keys.iter().any(|key| is_inside(&key.path, path));
    let values = source.written.iter().filter(|(path, _)| !is_key(path));
    let values = values.map(|(path, written)| (&written.origin, path, path.clone()));
    let empty = source.empty.iter().filter(|(path, _)| !is_section(path));
    let empty = empty.map(|(path, origin)| (origin, path, format!("[{path}]")));
    match values.chain(empty).min() {
        Some((origin, path, shown)) => Err(PlatformError::UnknownKey {
            origin: origin.clone(),
            key: shown,
            nearest: nearest(path, keys),
        }),
        None => Ok(()),
    }
}

/// Refuse what the platform's own file or an override sets for a kind of memory that the platform does not have.
fn refuse_unused(left: BTreeMap<String, Written>, top: &str, memory: &str) -> Result<(), PlatformError> {
    let own = left.into_iter().filter(|(_, written)| match &written.origin {
        Origin::File { file, .. } => file == top,
        Origin::Override => true,
    });
    match own.min_by(|(_, a), (_, b)| a.origin.cmp(&b.origin)) {
        Some((key, Written { origin, .. })) => Err(PlatformError::UnusedKey {
            origin,
            key,
            memory: memory.into(),
        }),
        None => Ok(()),
    }
}

/// The key that was probably meant: the same name in another section, or a near spelling.
fn nearest(key: &str, keys: &[Key]) -> Option<String> {
    let close = |known: &&Key| {
        let distance = strsim::normalized_damerau_levenshtein(key, &known.path);
        if is_inside(&known.path, key) || known.path.ends_with(&format!(".{key}")) {
            1.0
        } else {
            distance
        }
    };
    // `max_by` takes the last of equals; the first in the schema is wanted.
    let best = keys.iter().rev().max_by(|a, b| close(a).total_cmp(&close(b)))?;
    (close(&best) >= 0.6).then(|| best.path.clone())
}

fn is_inside(path: &str, section: &str) -> bool {
    path.strip_prefix(section).is_some_and(|rest| rest.starts_with('.'))
}
