//! What a user may say about a trace, as text, and what it means.

use serde::Deserialize;

use crate::convert::ConvertOptions;
use crate::error::TraceError;
use crate::format::{Format, Geometry};
use crate::record::Level;
use crate::replay::{ReplayOptions, ThreadsMap};
use crate::trace::ReadOptions;

/// Femtoseconds of a second.
const SECOND_FS: f64 = 1e15;

/// The options of the command line. What is left out has its default.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    pub format: Option<String>,
    pub geometry: Option<String>,
    pub clock: Option<String>,
    pub level: Option<String>,
    pub threads_map: Option<String>,
    pub in_flight: Option<u32>,
    pub paced: bool,
    pub timeline: bool,
    pub to: Option<String>,
    pub lossy: bool,
}

impl Options {
    pub fn read(&self) -> Result<ReadOptions, TraceError> {
        let format = match self.format.as_deref() {
            None | Some("auto") => None,
            Some(name) => Some(named(name, "--format", "auto, ")?),
        };
        let geometry = self.geometry.as_deref().map(Geometry::parse).transpose();
        Ok(ReadOptions {
            format,
            geometry: geometry.map_err(|what| TraceError::new("--geometry", what))?,
        })
    }

    pub fn replay(&self) -> Result<ReplayOptions, TraceError> {
        let level = match self.level.as_deref() {
            None => None,
            Some(name) => {
                let level = Level::NAMES.iter().find(|(known, _)| *known == name);
                let wrong = || TraceError::new("--level", format!("`{name}`: must be core or memory"));
                Some(level.ok_or_else(wrong)?.1)
            }
        };
        let threads = ThreadsMap::parse(self.threads_map.as_deref().unwrap_or("trace"));
        Ok(ReplayOptions {
            read: self.read()?,
            level,
            threads: threads.map_err(|what| TraceError::new("--threads-map", what))?,
            in_flight: self.in_flight,
            paced: self.paced,
            timeline: self.timeline,
            tick_fs: self.tick_fs()?,
        })
    }

    pub fn convert(&self) -> Result<ConvertOptions, TraceError> {
        Ok(ConvertOptions {
            read: self.read()?,
            to: named(self.to.as_deref().unwrap_or("xpline"), "--to", "")?,
            lossy: self.lossy,
            tick_fs: self.tick_fs()?,
        })
    }

    fn tick_fs(&self) -> Result<Option<u64>, TraceError> {
        let Some(text) = &self.clock else { return Ok(None) };
        let wrong = || {
            let what = format!("`{text}`: write a frequency of 1 kHz to 1000 GHz, such as 1200MHz or 1.2GHz");
            TraceError::new("--clock", what)
        };
        let unit = text
            .find(|letter: char| letter.is_ascii_alphabetic())
            .unwrap_or(text.len());
        let scale = match &text[unit..] {
            "kHz" => 1e3,
            "MHz" => 1e6,
            "GHz" => 1e9,
            _ => return Err(wrong()),
        };
        let number: f64 = text[..unit].trim().parse().map_err(|_| wrong())?;
        let frequency = number * scale;
        if (1e3..=1e12).contains(&frequency) {
            Ok(Some((SECOND_FS / frequency).round() as u64))
        } else {
            Err(wrong())
        }
    }
}

fn named(name: &str, option: &str, others: &str) -> Result<Format, TraceError> {
    Format::named(name).ok_or_else(|| {
        let what = format!("no format `{name}`; known are {others}{}", Format::names());
        TraceError::new(option, what)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(json: &str) -> Options {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn nothing_said_has_defaults() {
        let replay = options("{}").replay().unwrap();
        assert_eq!(
            (replay.read, replay.level, replay.threads),
            (ReadOptions::default(), None, ThreadsMap::Trace)
        );
        assert_eq!(options("{}").convert().unwrap().to, Format::Xpline);
    }

    #[test]
    fn a_clock_is_a_tick() {
        for (clock, tick_fs) in [
            ("1GHz", 1_000_000),
            ("1200 MHz", 833_333),
            ("1.2GHz", 833_333),
            ("1kHz", 1_000_000_000_000),
        ] {
            let json = format!(r#"{{"clock": "{clock}"}}"#);
            assert_eq!(options(&json).tick_fs().unwrap(), Some(tick_fs), "{clock}");
        }
        for wrong in ["", "1200", "0GHz", "-1GHz", "1e30GHz", "NaNGHz", "GHz", "1Hz"] {
            let json = format!(r#"{{"clock": "{wrong}"}}"#);
            let error = options(&json).tick_fs().unwrap_err().to_string();
            assert!(
                error.starts_with("--clock: `") && error.contains("such as 1200MHz"),
                "{error}"
            );
        }
    }

    #[test]
    fn what_is_wrong_is_named_by_its_option() {
        for (json, message) in [
            (
                r#"{"format": "dramsim"}"#,
                "--format: no format `dramsim`; known are auto, xpline, ramulator2",
            ),
            (r#"{"level": "cache"}"#, "--level: `cache`: must be core or memory"),
            (r#"{"threads_map": "all"}"#, "--threads-map: `all`: write trace, one"),
            (r#"{"geometry": "7"}"#, "--geometry: `7`: write how many"),
        ] {
            let error = options(json).replay().unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
        let error = options(r#"{"to": "csv"}"#).convert().unwrap_err().to_string();
        assert!(error.starts_with("--to: no format `csv`; known are xpline"), "{error}");
    }
}
