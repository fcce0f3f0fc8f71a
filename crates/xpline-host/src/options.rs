//! Which memory is measured, and how.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::HostError;
use crate::kernel::{Flush, Isa};

/// The memory that is measured.
///
/// ```
/// use xpline_host::Target;
///
/// let target: Target = "host:node=1".parse().unwrap();
/// assert_eq!(target, Target::Anonymous { node: Some(1) });
/// assert!("host:disk=/x".parse::<Target>().unwrap_err().to_string().contains("host:block=PATH"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Memory that the system gives: of any NUMA node, or of one.
    Anonymous { node: Option<u32> },
    /// A new file, mapped.
    File(PathBuf),
    /// A device-DAX device, mapped.
    Dax(PathBuf),
    /// A new file, or a block device, by read and write past the page cache.
    Block(PathBuf),
}

impl FromStr for Target {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        let known = "write host, host:node=N, host:file=PATH, host:dax=PATH or host:block=PATH";
        let wrong = || HostError::option(format!("target {text}"), known);
        let rest = text.strip_prefix("host").ok_or_else(wrong)?;
        if rest.is_empty() {
            return Ok(Self::Anonymous { node: None });
        }
        let (kind, value) = rest
            .strip_prefix(':')
            .and_then(|rest| rest.split_once('='))
            .ok_or_else(wrong)?;
        if value.is_empty() {
            return Err(wrong());
        }
        match kind {
            "node" => {
                let node = value.parse().map_err(|_| {
                    HostError::option(
                        format!("target {text}"),
                        format!("{value} is not the number of a NUMA node"),
                    )
                })?;
                Ok(Self::Anonymous { node: Some(node) })
            }
            "file" => Ok(Self::File(value.into())),
            "dax" => Ok(Self::Dax(value.into())),
            "block" => Ok(Self::Block(value.into())),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anonymous { node: None } => write!(f, "host"),
            Self::Anonymous { node: Some(node) } => write!(f, "host:node={node}"),
            Self::File(path) => write!(f, "host:file={}", path.display()),
            Self::Dax(path) => write!(f, "host:dax={}", path.display()),
            Self::Block(path) => write!(f, "host:block={}", path.display()),
        }
    }
}

/// The pages that memory is mapped with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pages {
    /// 2 MiB where the kernel finds them, by itself.
    #[default]
    #[serde(rename = "transparent")]
    Transparent,
    #[serde(rename = "4KiB")]
    Small,
    /// Out of the pool that an administrator has set aside.
    #[serde(rename = "2MiB")]
    Huge,
    #[serde(rename = "1GiB")]
    Giant,
}

impl Pages {
    pub fn bytes(self) -> u64 {
        match self {
            Self::Transparent | Self::Huge => 2 << 20,
            Self::Small => 4 << 10,
            Self::Giant => 1 << 30,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Transparent => "transparent",
            Self::Small => "4KiB",
            Self::Huge => "2MiB",
            Self::Giant => "1GiB",
        }
    }
}

/// How memory is measured.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// The instructions that move data; the widest that the CPU has if not given.
    pub isa: Option<Isa>,
    /// The instruction that writes lines back.
    pub flush: Flush,
    pub pages: Pages,
    /// CPUs that threads are pinned to, in this order; those that the process may use if empty.
    pub cpus: Vec<u32>,
    /// NUMA node whose CPUs are used.
    pub cpu_node: Option<u32>,
    /// Bytes that each thread works in.
    pub span: u64,
    /// The half-width that the 95 % confidence interval of a median may have, as a share of it.
    pub precision: f64,
    /// The longest that a point may take, in seconds.
    pub time_limit: f64,
    /// How long one repeat lasts, in seconds. Short ones, so that those in which another program has the CPU are few, and
    /// the median is of the others.
    pub window: f64,
    /// Whether a device may be overwritten.
    pub destroy: bool,
    /// Whether a file that was created stays.
    pub keep: bool,
    /// DIMMs that a DAX device is interleaved over, and the bytes of a chunk; for experiments that bind threads to DIMMs.
    pub dimms: u32,
    pub chunk: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            isa: None,
            flush: Flush::default(),
            pages: Pages::default(),
            cpus: vec![],
            cpu_node: None,
            span: 2 << 30,
            precision: 0.01,
            time_limit: 10.0,
            window: 0.002,
            destroy: false,
            keep: false,
            dimms: 0,
            chunk: 4096,
        }
    }
}

impl Options {
    /// Whether the numbers are in their ranges.
    pub fn check(&self) -> Result<(), HostError> {
        let refuse = |what: String, problem: &str| Err(HostError::option(what, problem));
        if self.span == 0 || !self.span.is_multiple_of(4096) || self.span > 1 << 40 {
            return refuse(
                format!("span = {}", self.span),
                "bytes that each thread works in: a multiple of 4096, at most 1 TiB",
            );
        }
        if !(self.precision > 0.0 && self.precision < 1.0) {
            return refuse(
                format!("precision = {}", self.precision),
                "must be above 0 and below 1 (0.01 is 1 %)",
            );
        }
        if !(self.window >= 0.0005 && self.window <= 60.0) {
            return refuse(format!("window = {}", self.window), "must be 0.0005 to 60 seconds");
        }
        if !(self.time_limit >= self.window && self.time_limit <= 86_400.0) {
            return refuse(
                format!("time_limit = {}", self.time_limit),
                "must be at least a window, and at most a day, in seconds",
            );
        }
        if !self.chunk.is_power_of_two() || self.chunk < 64 {
            return refuse(format!("chunk = {}", self.chunk), "must be a power of two, 64 or more");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_read_as_they_are_written() {
        for text in [
            "host",
            "host:node=3",
            "host:file=/mnt/a=b",
            "host:dax=/dev/dax0.0",
            "host:block=x",
        ] {
            assert_eq!(text.parse::<Target>().unwrap().to_string(), text);
        }
        for text in [
            "hosts",
            "host:",
            "host:node=",
            "host:node=-1",
            "host:node=x",
            "host:pmem=1",
            "dram",
        ] {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
    }

    #[test]
    fn options_out_of_range_are_named() {
        let bad = [
            r#"{"span": 100}"#,
            r#"{"precision": 0}"#,
            r#"{"window": 0}"#,
            r#"{"time_limit": 1e9}"#,
            r#"{"chunk": 100}"#,
        ];
        for text in bad {
            let options: Options = serde_json::from_str(text).unwrap();
            let name = text.split('"').nth(1).unwrap();
            assert!(options.check().unwrap_err().to_string().starts_with(name), "{text}");
        }
        Options::default().check().unwrap();
    }
}
