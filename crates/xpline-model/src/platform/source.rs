//! The text of a platform file, taken apart into dotted keys, values, and the comments that name their sources.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::error::{Origin, PlatformError};
use super::key::{Written, join};
use super::unit::Scalar;

/// One file: its keys and values.
pub struct Source {
    pub file: String,
    pub written: BTreeMap<String, Written>,
    /// Tables without a key, which leave no other trace.
    pub empty: Vec<(String, Origin)>,
}

impl Source {
    pub fn parse(file: &str, text: &str) -> Result<Self, PlatformError> {
        let at = |offset: usize| Origin::File {
            file: file.into(),
            line: line_number(text, offset),
        };
        let root = DeTable::parse(text).map_err(|error| PlatformError::Syntax {
            origin: at(error.span().map_or(0, |span| span.start)),
            message: error.message().to_string(),
        })?;
        let mut source = Self {
            file: file.into(),
            written: BTreeMap::new(),
            empty: Vec::new(),
        };
        let mut open = vec![(String::new(), root.get_ref())];
        while let Some((section, table)) = open.pop() {
            for (key, value) in table {
                let path = join(&section, &bare(key.get_ref()));
                let origin = at(key.span().start);
                if let DeValue::Table(table) = value.get_ref() {
                    if table.is_empty() {
                        source.empty.push((path.clone(), origin));
                    }
                    open.push((path, table));
                } else {
                    let written = Written {
                        scalar: scalar(value.get_ref()),
                        text: text[value.span()].into(),
                        source: comment(text, key.span(), value.span()),
                        origin,
                    };
                    source.written.insert(path, written);
                }
            }
        }
        Ok(source)
    }
}

/// The value of an override: TOML where it is TOML (`128`, `true`, `"16KiB"`), else the text itself (`16KiB`).
pub fn override_value(text: &str) -> Written {
    let scalar = match DeValue::parse(text) {
        Ok(value) => scalar(value.get_ref()),
        Err(_) => Scalar::Text(text.into()),
    };
    Written {
        scalar,
        text: text.into(),
        source: None,
        origin: Origin::Override,
    }
}

fn scalar(value: &DeValue) -> Scalar {
    match value {
        DeValue::String(text) => Scalar::Text(text.to_string()),
        DeValue::Integer(digits) => Scalar::Number(match i64::from_str_radix(digits.as_str(), digits.radix()) {
            Ok(number) => number as f64,
            // Beyond 64 bits is beyond every range, too.
            Err(_) if digits.as_str().starts_with('-') => f64::NEG_INFINITY,
            Err(_) => f64::INFINITY,
        }),
        DeValue::Float(digits) => Scalar::Number(digits.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(flag) => Scalar::Flag(*flag),
        other => Scalar::Other(other.type_str()),
    }
}

/// A key as it stands in a path: in quotes if it has a dot inside.
fn bare(key: &str) -> String {
    if key.contains('.') {
        format!("{key:?}")
    } else {
        key.into()
    }
}

fn line_number(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|&byte| byte == b'\n').count()
}

/// The comment after the value on its line, or else the comment lines right above its key.
fn comment(text: &str, key: Range<usize>, value: Range<usize>) -> Option<String> {
    let beside = text[value.end..].lines().next().and_then(comment_text);
    beside.or_else(|| {
        let start = text[..key.start].rfind('\n')?;
        let mut above: Vec<_> = text[..start].rsplit('\n').map_while(comment_text).collect();
        above.reverse();
        (!above.is_empty()).then(|| above.join(" "))
    })
}

fn comment_text(line: &str) -> Option<String> {
    let text = line.trim().strip_prefix('#')?.trim();
    (!text.is_empty()).then(|| text.into())
}
