//! Keys and sections: the one macro that turns a line of the schema into a field, its reader and its documentation.

use std::collections::BTreeMap;

use super::error::{BadValue, Origin, PlatformError};
use super::unit::{Scalar, Unit};

/// A value as it stands in a platform file or an override.
#[derive(Clone, Debug)]
pub struct Written {
    pub scalar: Scalar,
    /// As it was written, quotes included.
    pub text: String,
    /// The comment beside or above it.
    pub source: Option<String>,
    pub origin: Origin,
}

impl Written {
    /// The typed value, as `key` takes it.
    pub fn read<U: Unit>(&self, key: &str, allowed: &U::Allowed) -> Result<U::Value, PlatformError> {
        U::parse(&self.scalar, allowed).map_err(|problem| {
            PlatformError::from(BadValue {
                origin: self.origin.clone(),
                key: key.into(),
                value: self.text.clone(),
                problem,
                allowed: U::describe(allowed),
            })
        })
    }
}

/// A key that platforms have: its path, what it is, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Dotted path, such as `optane.xpbuffer.lines`.
    pub path: String,
    /// What it means, in a sentence.
    pub about: String,
    /// Its type and range in words.
    pub allowed: String,
}

/// One value of a loaded platform: what it is, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Dotted path of the key.
    pub key: String,
    /// The value as it was written.
    pub value: String,
    /// What the key means.
    pub about: String,
    /// The source of the number, as the comment beside it says.
    pub source: Option<String>,
    /// The line that set it.
    pub origin: Origin,
}

/// The values of a platform as they were written, in the order of the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provenance(pub(super) Vec<Entry>);

/// No key of its own: what has been read so far, so it comes last in the schema.
impl Node for Provenance {
    type Value = Self;
    type Allowed = Section;

    fn read(reader: &mut Reader, _: &str, _: &str, _: &Section) -> Result<Self, PlatformError> {
        Ok(Self(std::mem::take(&mut reader.used)))
    }

    fn list(_: &str, _: &str, _: &Section, _: &mut Vec<Key>) {}
}

/// Turns written values into typed ones, key by key, and remembers what it used.
pub struct Reader {
    file: String,
    written: BTreeMap<String, Written>,
    used: Vec<Entry>,
}

impl Reader {
    pub fn new(file: String, written: BTreeMap<String, Written>) -> Self {
        Self {
            file,
            written,
            used: Vec::new(),
        }
    }

    fn take<U: Unit>(&mut self, path: &str, about: &str, allowed: &U::Allowed) -> Result<U::Value, PlatformError> {
        let Some(written) = self.written.remove(path) else {
            return Err(PlatformError::MissingKey {
                file: self.file.clone(),
                key: path.into(),
                about: sentence(about),
                allowed: U::describe(allowed),
            });
        };
        let value = written.read::<U>(path, allowed)?;
        self.used.push(Entry {
            key: path.into(),
            value: written.text,
            about: sentence(about),
            source: written.source,
            origin: written.origin,
        });
        Ok(value)
    }

    /// What no key asked for.
    pub fn left_over(self) -> BTreeMap<String, Written> {
        self.written
    }
}

/// Something a section is made of: a key, or a section inside it.
pub trait Node {
    type Value;
    type Allowed;
    fn read(
        reader: &mut Reader,
        path: &str,
        about: &str,
        allowed: &Self::Allowed,
    ) -> Result<Self::Value, PlatformError>;
    /// Append the keys at and under `path`.
    fn list(path: &str, about: &str, allowed: &Self::Allowed, keys: &mut Vec<Key>);
}

impl<U: Unit> Node for U {
    type Value = U::Value;
    type Allowed = U::Allowed;

    fn read(reader: &mut Reader, path: &str, about: &str, allowed: &U::Allowed) -> Result<U::Value, PlatformError> {
        reader.take::<U>(path, about, allowed)
    }

    fn list(path: &str, about: &str, allowed: &U::Allowed, keys: &mut Vec<Key>) {
        keys.push(Key {
            path: path.into(),
            about: sentence(about),
            allowed: U::describe(allowed),
        });
    }
}

/// The rule of a field that is a section of its own.
pub struct Section;

/// `about` as it comes from a doc comment, without the blanks of its margin.
fn sentence(about: &str) -> String {
    about
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .trim_end_matches('.')
        .into()
}

/// The path of `key` inside the section at `path`, which is empty for the platform itself.
pub fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.into()
    } else {
        format!("{path}.{key}")
    }
}

/// A section of the platform, a line a key: documentation, name, type, and what is allowed.
macro_rules! section {
    ($(#[doc = $about:expr])* pub struct $name:ident {
        $($(#[doc = $doc:expr])* $key:ident : $node:ident in $allowed:expr,)*
    }) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $($(#[doc = $doc])* pub $key: <$node as Node>::Value,)*
        }

        impl Node for $name {
            type Value = Self;
            type Allowed = Section;

            fn read(reader: &mut Reader, path: &str, _: &str, _: &Section) -> Result<Self, PlatformError> {
                Ok(Self {
                    $($key: <$node as Node>::read(
                        reader, &join(path, stringify!($key)), concat!($($doc),*), &$allowed.into(),
                    )?,)*
                })
            }

            fn list(path: &str, _: &str, _: &Section, keys: &mut Vec<Key>) {
                $(<$node as Node>::list(
                    &join(path, stringify!($key)), concat!($($doc),*), &$allowed.into(), keys,
                );)*
            }
        }
    };
}

pub(super) use section;
