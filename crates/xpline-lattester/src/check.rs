//! What a platform can run: every parameter of a point in its range.

use std::fmt::Display;

use xpline_model::platform::Memory;
use xpline_model::{Platform, VOLATILE};

use crate::point::{Align, Binding, Buffer, Chase, Experiment, Flush, Op, Point, PointError, Ratio, Replacement};
use crate::stream::{self, LINE, Masked, REGION, SPACE};

/// Read points from JSON objects and check them; an error says which one it is about.
pub fn read_points(platform: &Platform, texts: &[impl AsRef<str>]) -> Result<Vec<Point>, PointError> {
    let read = |text: &str| {
        let point = Point::parse(text)?;
        point.check(platform)?;
        Ok(point)
    };
    let located = |(index, text): (usize, &_)| {
        read(AsRef::as_ref(text)).map_err(|error| match texts.len() {
            1 => error,
            _ => PointError::At {
                index,
                error: Box::new(error),
            },
        })
    };
    texts.iter().enumerate().map(located).collect()
}

impl Point {
    /// Whether the point can run on the platform.
    ///
    /// ```
    /// # use xpline_lattester::Point;
    /// let platform = xpline_model::Platform::builtin("optane").unwrap();
    /// let point = Point::parse(r#"{"experiment": "random", "op": "load", "size": 100, "threads": 1}"#).unwrap();
    /// let error = point.check(&platform).unwrap_err();
    /// assert_eq!(error.to_string(), "size = 100: must be a multiple of 64 bytes (a cache line), such as 64 or 128");
    /// ```
    pub fn check(&self, platform: &Platform) -> Result<(), PointError> {
        if self.max_requests == Some(0) {
            return refuse("max_requests", 0, "must be at least 1");
        }
        threads(self.experiment.threads(), platform)?;
        match &self.experiment {
            Experiment::Random(random) => size("size", random.size),
            Experiment::Stride(stride) => {
                size("size", stride.size)?;
                if stride.stride != 0 {
                    size("stride", stride.stride)?;
                }
                if stride.fence != 0 {
                    fence(stride.fence, stride.size)?;
                }
                Ok(())
            }
            Experiment::Flush(flush) => flush_sizes(flush),
            Experiment::Align(align) => {
                if align.fence != 0 {
                    fence(align.fence, align.size)?;
                    if align.fenced {
                        return refuse("fenced", true, format!("needs fence = 0; found {}", align.fence));
                    }
                }
                binding(align, platform)
            }
            Experiment::Latency(latency) => match latency.op {
                Op::Store => refuse(
                    "op",
                    "store",
                    "its latency ends in the cache; use load, store+clwb or ntstore",
                ),
                _ => Ok(()),
            },
            Experiment::XpBuffer(xpbuffer) => {
                let (line, lines) = (stream::line_bytes(platform), xpbuffer.lines);
                if line < 2 * LINE {
                    return refuse(
                        "optane.xpbuffer.line",
                        line,
                        "too short to be written in halves of 64 B or more",
                    );
                }
                let most = REGION / line;
                if (1..=most).contains(&lines) {
                    Ok(())
                } else {
                    refuse("lines", lines, format!("must be 1 to {most}"))
                }
            }
            Experiment::PersistLatency(persist) => {
                persists(persist.op)?;
                size("size", persist.size)
            }
            Experiment::Chase(chase) => spread_region(chase),
            Experiment::Replacement(probes) => replacement(probes, platform),
            Experiment::Wear(wear) => {
                persists(wear.op)?;
                size("size", wear.size)
            }
            Experiment::Tail(tail) => {
                persists(tail.op)?;
                size("region", tail.region)
            }
            Experiment::Workload(workload) => match platform.volatile.platform {
                Some(_) => workload.check(VOLATILE, Some(SPACE - VOLATILE)),
                None => workload.check(SPACE, None),
            },
            Experiment::Mix(mix) => {
                ratio(mix.mix, mix.op)?;
                size("size", mix.size)?;
                buffer(mix.region, mix.size)
            }
            Experiment::Loaded(loaded) => {
                ratio(loaded.mix, loaded.op)?;
                if loaded.delay > LONGEST_DELAY {
                    let allowed = format!("must be at most {LONGEST_DELAY} core clocks");
                    return refuse("delay", loaded.delay, allowed);
                }
                buffer(loaded.region, LINE)
            }
        }
    }
}

fn threads(threads: u32, platform: &Platform) -> Result<(), PointError> {
    let most = u64::from(platform.core.count).min(SPACE / REGION);
    if (1..=most).contains(&u64::from(threads)) {
        return Ok(());
    }
    refuse(
        "threads",
        threads,
        format!(
            "must be 1 to {most}, a core each ({} has {})",
            platform.name, platform.core.count
        ),
    )
}

/// A size in bytes: whole cache lines, and inside a thread's region.
fn size(parameter: &'static str, bytes: u64) -> Result<(), PointError> {
    if bytes == 0 || !bytes.is_multiple_of(LINE) {
        return refuse(
            parameter,
            bytes,
            "must be a multiple of 64 bytes (a cache line), such as 64 or 128",
        );
    }
    if bytes > REGION {
        return refuse(
            parameter,
            bytes,
            format!("must be at most {REGION}, the 2 GiB of a thread"),
        );
    }
    Ok(())
}

/// The longest pause between two accesses, in core clocks: longer ones leave the memory idle anyway.
const LONGEST_DELAY: u64 = 1_000_000;

/// What memory reads and writes must be what the threads can ask for.
fn ratio(mix: Ratio, op: Op) -> Result<(), PointError> {
    let text = String::from(mix);
    match op {
        Op::Load if mix.writes > 0 => refuse("op", "load", "writes nothing; use ntstore, store or store+clwb"),
        Op::Store | Op::StoreClwb if mix.reads < mix.writes => refuse(
            "mix",
            text,
            "each write of a store reads its line, too; use as many reads as writes or more, or ntstore",
        ),
        _ => Ok(()),
    }
}

/// A buffer for reads, and one for writes.
fn buffer(region: u64, access: u64) -> Result<(), PointError> {
    size("region", region)?;
    if region > REGION / 2 || region < access {
        let allowed = format!(
            "must be from {access}, an access, to {}, half of a thread's 2 GiB",
            REGION / 2
        );
        return refuse("region", region, allowed);
    }
    Ok(())
}

/// An access is whole fence intervals, and those are whole flush intervals.
fn flush_sizes(flush: &Flush) -> Result<(), PointError> {
    size("size", flush.size)?;
    fence(flush.fence, flush.size)?;
    size("clwb", flush.clwb)?;
    if !flush.fence.is_multiple_of(flush.clwb) {
        return refuse("clwb", flush.clwb, format!("must divide fence = {}", flush.fence));
    }
    Ok(())
}

/// A fence interval: whole cache lines, and an access is whole intervals.
fn fence(bytes: u64, access: u64) -> Result<(), PointError> {
    size("fence", bytes)?;
    if access.is_multiple_of(bytes) {
        return Ok(());
    }
    refuse("fence", bytes, format!("must divide size = {access}"))
}

fn persists(op: Op) -> Result<(), PointError> {
    match op {
        Op::NtStore | Op::StoreClwb => Ok(()),
        Op::Load | Op::Store => {
            let op = if op == Op::Load { "load" } else { "store" };
            refuse("op", op, "makes nothing persistent; use ntstore or store+clwb")
        }
    }
}

/// A region that fits in the memory of a thread once it is spread over the bits outside the mask.
fn spread_region(chase: &Chase) -> Result<(), PointError> {
    let &Chase { region, mask, .. } = chase;
    size("region", region)?;
    if mask >= REGION || !mask.is_multiple_of(LINE) {
        let allowed = "address bits to keep 0, as their sum: of the bits 6 to 30, so that 4096 is bit 12 (0 for none)";
        return refuse("mask", mask, allowed);
    }
    if Masked::spread(region - LINE, mask) >= REGION {
        let allowed = format!("too many bits: a region of {region} B no longer fits in the 2 GiB of a thread");
        return refuse("mask", mask, allowed);
    }
    Ok(())
}

fn replacement(probes: &Replacement, platform: &Platform) -> Result<(), PointError> {
    let name = match probes.buffer {
        Buffer::XpBuffer => "xpbuffer",
        Buffer::Ait => "ait",
    };
    let Memory::Optane(optane) = &platform.memory else {
        return refuse(
            "buffer",
            name,
            format!("{} has none; use an Optane platform", platform.name),
        );
    };
    if platform.interleave.dimms != 1 {
        let allowed = format!("{} spreads a buffer's lines over DIMMs; use one DIMM", platform.name);
        return refuse("buffer", name, allowed);
    }
    let (line, page) = (optane.xpbuffer.line, optane.ait.page);
    if page < 2 * line {
        let allowed = "too short for two lines, of which one is read first and one again";
        return refuse("optane.ait.page", page, allowed);
    }
    let most = match probes.buffer {
        Buffer::XpBuffer => REGION / 2 / line,
        Buffer::Ait => REGION / 2 / (optane.ait.cache / u64::from(optane.ait.ways)),
    };
    let most = most.clamp(1, 1 << 16);
    if (1..=most).contains(&probes.lines) {
        return Ok(());
    }
    refuse("lines", probes.lines, format!("must be 1 to {most}"))
}

fn binding(align: &Align, platform: &Platform) -> Result<(), PointError> {
    size("size", align.size)?;
    if platform.interleave.hashed && !matches!(align.binding, Binding::SharedAll | Binding::OwnAll) {
        let allowed = format!(
            "{} hashes addresses over its DIMMs; use shared-all or own-all",
            platform.name
        );
        return refuse("binding", "a DIMM", allowed);
    }
    let (chunk, imc) = (platform.interleave.granularity, &platform.imc);
    let by_imc = matches!(align.binding, Binding::SharedImc | Binding::OwnPair);
    if by_imc && (imc.controllers < 2 || platform.interleave.dimms != imc.controllers * imc.channels) {
        let text = if align.binding == Binding::OwnPair {
            "own-pair"
        } else {
            "shared-imc"
        };
        let allowed = format!(
            "needs a DIMM on every channel of two memory controllers or more; {} has not",
            platform.name
        );
        return refuse("binding", text, allowed);
    }
    if (by_imc || align.binding == Binding::OwnDimm) && chunk % align.size != 0 {
        let allowed = format!("must divide the {chunk} B that lie on one DIMM (interleave.granularity)");
        return refuse("size", align.size, allowed);
    }
    let last = stream::placement(platform, align, align.threads - 1);
    if last.is_some_and(|last| last.places(align.size) == 0 || last.end() > SPACE) {
        let dimms = platform.interleave.dimms;
        return refuse(
            "threads",
            align.threads,
            format!("too many for buffers on each of {dimms} DIMMs in 128 GiB"),
        );
    }
    Ok(())
}

fn refuse(parameter: &'static str, value: impl Display, allowed: impl Into<String>) -> Result<(), PointError> {
    Err(PointError::NotAllowed {
        parameter,
        value: value.to_string(),
        allowed: allowed.into(),
    })
}
