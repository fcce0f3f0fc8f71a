//! What can be wrong with a platform, said to the person who wrote it.

use std::fmt;

/// Where a value comes from; ordered by file and line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// A line of a platform file, counted from 1.
    File { file: String, line: usize },
    /// An override, such as `--set optane.xpbuffer.lines=128` on the command line.
    Override,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { file, line } => write!(f, "{file}:{line}"),
            Self::Override => f.write_str("--set"),
        }
    }
}

/// Why a platform could not be loaded: what was wrong, where, and what is allowed.
#[derive(Debug, thiserror::Error)]
pub enum PlatformError {
    #[error("{origin}: not valid TOML: {message}")]
    Syntax { origin: Origin, message: String },

    #[error("{origin}: unknown key `{key}`{}", hint(.nearest))]
    UnknownKey {
        origin: Origin,
        key: String,
        nearest: Option<String>,
    },

    #[error("{file}: missing key `{key}` ({about}; allowed: {allowed})")]
    MissingKey {
        file: String,
        key: String,
        about: String,
        allowed: String,
    },

    #[error(transparent)]
    BadValue(Box<BadValue>),

    #[error(
        "{origin}: `{key}` has no effect on a platform whose memory is \"{memory}\"; remove it, or change `memory`"
    )]
    UnusedKey {
        origin: Origin,
        key: String,
        memory: String,
    },

    #[error("--set: `{text}` is not an override; write KEY=VALUE, such as optane.xpbuffer.lines=128")]
    BadOverride { text: String },

    #[error("--set: `{key}` belongs to a platform file and cannot be overridden")]
    NotOverridable { key: String },

    #[error("{origin}: `extends` goes round in a circle or too deep: {}", .chain.join(" extends "))]
    ExtendsCycle { origin: Origin, chain: Vec<String> },

    #[error(
        "{}no platform `{name}`: it is not built in, and as a file it cannot be read ({cause}); built in are {}",
        place(.origin), .known.join(", ")
    )]
    NotFound {
        origin: Option<Origin>,
        name: String,
        cause: String,
        known: Vec<String>,
    },

    #[error("`{name}` is only a base for other platforms to extend; platforms to run on are {}", .known.join(", "))]
    Abstract { name: String, known: Vec<String> },
}

/// A value that its key cannot take.
#[derive(Debug, thiserror::Error)]
#[error("{origin}: {key} = {} is {problem}; allowed: {allowed}", quoted(.value))]
pub struct BadValue {
    pub origin: Origin,
    pub key: String,
    pub value: String,
    pub problem: String,
    pub allowed: String,
}

impl From<BadValue> for PlatformError {
    fn from(bad: BadValue) -> Self {
        Self::BadValue(Box::new(bad))
    }
}

/// The start of a value, enough to recognise it by.
fn quoted(value: &str) -> String {
    const LONGEST: usize = 60;
    let line = value.lines().next().unwrap_or_default();
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.into(),
    }
}

fn hint(nearest: &Option<String>) -> String {
    match nearest {
        Some(key) => format!("; did you mean `{key}`?"),
        None => "; `xpline platform show optane` lists the keys".into(),
    }
}

fn place(origin: &Option<Origin>) -> String {
    origin.as_ref().map(|origin| format!("{origin}: ")).unwrap_or_default()
}
