//! Quantities with units: how each is written, and what is allowed.

use std::ops::RangeInclusive;

use crate::time::Time;

/// A value as it stands in a platform file, before its unit is known.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    Text(String),
    Number(f64),
    Flag(bool),
    /// Something no key takes (a list, a date), by its name in TOML.
    Other(&'static str),
}

/// A type of value: how it is read, and how its rule is put in words.
pub trait Unit {
    type Value;
    type Allowed;

    /// The value, or what is wrong with it ("larger than allowed").
    fn parse(scalar: &Scalar, allowed: &Self::Allowed) -> Result<Self::Value, String>;

    /// What is allowed, in words ("a size from 64B to 4KiB").
    fn describe(allowed: &Self::Allowed) -> String;
}

/// The range of a number, ends included, and the grain it must keep.
#[derive(Clone, Copy, Debug)]
pub struct Range<T> {
    min: T,
    max: T,
    grain: Grain<T>,
}

#[derive(Clone, Copy, Debug)]
enum Grain<T> {
    Any,
    MultipleOf(T),
    PowerOfTwo,
}

impl<T: Copy> From<RangeInclusive<T>> for Range<T> {
    fn from(range: RangeInclusive<T>) -> Self {
        Self {
            min: *range.start(),
            max: *range.end(),
            grain: Grain::Any,
        }
    }
}

/// Grains of a range, as in `(64..=GIB).multiple_of(64)`.
pub trait Grained<T> {
    fn multiple_of(self, grain: T) -> Range<T>;
    fn power_of_two(self) -> Range<T>;
}

impl<T: Copy> Grained<T> for RangeInclusive<T> {
    fn multiple_of(self, grain: T) -> Range<T> {
        Range {
            grain: Grain::MultipleOf(grain),
            ..self.into()
        }
    }

    fn power_of_two(self) -> Range<T> {
        Range {
            grain: Grain::PowerOfTwo,
            ..self.into()
        }
    }
}

/// A number that a platform holds. All ranges stay below 2^53, where `f64` is exact.
pub trait Number: Copy {
    /// Whether only whole numbers exist (sizes in bytes, counts).
    const WHOLE: bool;
    fn to_f64(self) -> f64;
    fn from_f64(value: f64) -> Self;
}

macro_rules! number {
    ($($type:ident is whole: $whole:literal;)*) => {$(
        impl Number for $type {
            const WHOLE: bool = $whole;
            fn to_f64(self) -> f64 {
                self as f64
            }
            fn from_f64(value: f64) -> Self {
                value as $type
            }
        }
    )*};
}

number! {
    u32 is whole: true;
    u64 is whole: true;
    f64 is whole: false;
}

/// A number with a unit.
pub trait Quantity {
    type Value: Number;
    /// "a size"
    const NAME: &'static str;
    /// Suffixes and what they stand for, in steps of `Value`, smallest first; empty for a bare number.
    const SUFFIXES: &'static [(&'static str, f64)];
    /// Round to the nearest step of `Value` rather than refuse what lies between (times, to the picosecond).
    const ROUND: bool = false;
}

impl<Q: Quantity> Unit for Q {
    type Value = Q::Value;
    type Allowed = Range<Q::Value>;

    fn parse(scalar: &Scalar, allowed: &Range<Q::Value>) -> Result<Q::Value, String> {
        let mut steps = steps::<Q>(scalar)?;
        if Q::ROUND {
            steps = steps.round();
        }
        let (min, max) = (allowed.min.to_f64(), allowed.max.to_f64());
        if steps.is_nan() {
            return Err(format!("not {}", Q::NAME));
        }
        if steps < min {
            return Err("less than allowed".into());
        }
        if steps > max {
            return Err("more than allowed".into());
        }
        if Q::Value::WHOLE && steps.fract() != 0.0 {
            return Err("not whole".into());
        }
        match allowed.grain {
            Grain::MultipleOf(grain) if steps % grain.to_f64() != 0.0 => {
                Err(format!("not a multiple of {}", render::<Q>(grain)))
            }
            Grain::PowerOfTwo if !(steps as u64).is_power_of_two() => Err("not a power of two".into()),
            _ => Ok(Q::Value::from_f64(steps)),
        }
    }

    fn describe(allowed: &Range<Q::Value>) -> String {
        let grain = match allowed.grain {
            Grain::Any => String::new(),
            Grain::MultipleOf(grain) => format!(", a multiple of {}", render::<Q>(grain)),
            Grain::PowerOfTwo => ", a power of two".into(),
        };
        format!(
            "{} from {} to {}{grain}",
            Q::NAME,
            render::<Q>(allowed.min),
            render::<Q>(allowed.max)
        )
    }
}

/// The number in steps of `Q::Value`, whatever its size.
fn steps<Q: Quantity>(scalar: &Scalar) -> Result<f64, String> {
    match scalar {
        Scalar::Number(number) if Q::SUFFIXES.is_empty() => Ok(*number),
        Scalar::Text(text) if !Q::SUFFIXES.is_empty() => {
            let digits = text.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+'));
            let (number, suffix) = text.split_at(text.len() - digits.len());
            let number: f64 = number.parse().map_err(|_| format!("not {}", Q::NAME))?;
            let suffix = suffix.trim_start();
            match Q::SUFFIXES.iter().find(|(name, _)| *name == suffix) {
                Some((_, scale)) => Ok(number * scale),
                None if suffix.is_empty() => Err(format!("without a unit ({})", suffixes::<Q>())),
                None => Err(format!("in an unknown unit (known: {})", suffixes::<Q>())),
            }
        }
        Scalar::Number(_) => Err(format!("without a unit ({}, in quotes)", suffixes::<Q>())),
        _ => Err(format!("not {}", Q::NAME)),
    }
}

fn suffixes<Q: Quantity>() -> String {
    Q::SUFFIXES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// A value with the largest unit that leaves at least 1 of it: 16384 B is "16KiB".
pub fn render<Q: Quantity>(value: Q::Value) -> String {
    let value = value.to_f64();
    match Q::SUFFIXES
        .iter()
        .rev()
        .find(|(_, scale)| value >= *scale)
        .or(Q::SUFFIXES.first())
    {
        Some((name, scale)) => format!("{}{name}", value / scale),
        None => value.to_string(),
    }
}

/// A span of time, such as "39.3ns"; held in picoseconds.
pub struct Duration;

impl Quantity for Duration {
    type Value = Time;
    const NAME: &'static str = "a time";
    const SUFFIXES: &'static [(&'static str, f64)] = &[("ps", 1.0), ("ns", 1e3), ("us", 1e6), ("ms", 1e9)];
    const ROUND: bool = true;
}

/// A size, such as "16KiB"; held in bytes.
pub struct Bytes;

impl Quantity for Bytes {
    type Value = u64;
    const NAME: &'static str = "a size";
    const SUFFIXES: &'static [(&'static str, f64)] = &[
        ("B", 1.0),
        ("KiB", KIB as f64),
        ("MiB", MIB as f64),
        ("GiB", GIB as f64),
    ];
}

/// A clock, such as "2.2GHz"; held in GHz.
pub struct Frequency;

impl Quantity for Frequency {
    type Value = f64;
    const NAME: &'static str = "a frequency";
    const SUFFIXES: &'static [(&'static str, f64)] = &[("MHz", 1e-3), ("GHz", 1.0)];
}

/// Electrical power, such as "15W"; held in milliwatts.
pub struct Power;

impl Quantity for Power {
    type Value = u32;
    const NAME: &'static str = "a power";
    const SUFFIXES: &'static [(&'static str, f64)] = &[("mW", 1.0), ("W", 1e3)];
    const ROUND: bool = true;
}

/// A whole number without a unit.
pub struct Count;

impl Quantity for Count {
    type Value = u32;
    const NAME: &'static str = "a whole number";
    const SUFFIXES: &'static [(&'static str, f64)] = &[];
}

/// A number without a unit that need not be whole: a fraction, a slope, a multiplier.
pub struct Factor;

impl Quantity for Factor {
    type Value = f64;
    const NAME: &'static str = "a number";
    const SUFFIXES: &'static [(&'static str, f64)] = &[];
}

/// The rule of a key that needs none.
pub struct Any;

/// True or false.
pub struct Flag;

impl Unit for Flag {
    type Value = bool;
    type Allowed = Any;

    fn parse(scalar: &Scalar, _: &Any) -> Result<bool, String> {
        match scalar {
            Scalar::Flag(flag) => Ok(*flag),
            _ => Err("not true or false".into()),
        }
    }

    fn describe(_: &Any) -> String {
        "true or false".into()
    }
}

/// One of two sockets, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sockets {
    /// Socket 0 or 1.
    One(usize),
    /// Both, in turn.
    Both,
}

impl Sockets {
    /// The socket of the `index`th of something that may be on both.
    ///
    /// On both, even ones are on socket 0 and odd ones on socket 1.
    #[inline]
    pub fn of(self, index: usize) -> usize {
        match self {
            Self::One(socket) => socket,
            Self::Both => index & 1,
        }
    }
}

impl Unit for Sockets {
    type Value = Self;
    type Allowed = Any;

    fn parse(scalar: &Scalar, _: &Any) -> Result<Self, String> {
        match scalar {
            Scalar::Number(0.0) => Ok(Self::One(0)),
            Scalar::Number(1.0) => Ok(Self::One(1)),
            Scalar::Text(text) if text == "both" => Ok(Self::Both),
            _ => Err("not one of the choices".into()),
        }
    }

    fn describe(_: &Any) -> String {
        "0, 1 or \"both\"".into()
    }
}

/// A line of text for people.
pub struct Text;

impl Unit for Text {
    type Value = String;
    type Allowed = Any;

    fn parse(scalar: &Scalar, _: &Any) -> Result<String, String> {
        match scalar {
            Scalar::Text(text) if text.trim().is_empty() => Err("empty".into()),
            Scalar::Text(text) if text.contains(char::is_control) => Err("more than one line of text".into()),
            Scalar::Text(text) => Ok(text.clone()),
            _ => Err("not a text in quotes".into()),
        }
    }

    fn describe(_: &Any) -> String {
        "a line of text".into()
    }
}

/// An enum whose variants are written by name.
macro_rules! choice {
    ($(#[doc = $about:expr])* pub enum $name:ident { $($(#[doc = $doc:expr])* $variant:ident = $text:literal,)* }) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[doc = $doc])* $variant,)*
        }

        impl Unit for $name {
            type Value = Self;
            type Allowed = Any;

            fn parse(scalar: &Scalar, _: &Any) -> Result<Self, String> {
                match scalar {
                    $(Scalar::Text(text) if text == $text => Ok(Self::$variant),)*
                    _ => Err("not one of the choices".into()),
                }
            }

            fn describe(_: &Any) -> String {
                [$(concat!("\"", $text, "\"")),*].join(" or ")
            }
        }
    };
}

pub(super) use choice;

pub const KIB: u64 = 1 << 10;
pub const MIB: u64 = 1 << 20;
pub const GIB: u64 = 1 << 30;
