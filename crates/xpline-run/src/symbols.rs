//! From places in files to functions and source lines: DWARF where there is some, else the symbol table.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use addr2line::Loader;
use object::{Object, ObjectSegment, ObjectSymbol, SymbolKind};

use crate::sites::{Frame, Named, Origin, call_name};

/// Name every site, or every call. A file that cannot be read leaves its sites with module and offset.
pub fn name_sites(origins: &[Origin]) -> Vec<Named> {
    let mut modules: HashMap<&[u8], Option<Module>> = HashMap::new();
    origins
        .iter()
        .map(|origin| {
            let frames = match origin.module.as_deref() {
                None => Vec::new(),
                Some(path) => {
                    let module = modules.entry(path).or_insert_with(|| Module::open(path));
                    module
                        .as_ref()
                        .map(|module| module.frames(origin.offset))
                        .unwrap_or_default()
                }
            };
            Named {
                module: origin
                    .module
                    .as_deref()
                    .map(|path| String::from_utf8_lossy(path).into_owned()),
                offset: origin.offset,
                call: origin.call.as_ref().map(|(call, _)| call_name(*call).to_owned()),
                target: origin
                    .call
                    .as_ref()
                    .map(|(_, path)| String::from_utf8_lossy(path).into_owned()),
                stack: origin.stack,
                frames,
            }
        })
        .collect()
}

/// A name as its source has it. Only what begins as mangled names do is one: to demanglers a plain `w` is a `wchar_t`.
fn demangled(name: Cow<'_, str>) -> String {
    if ["_Z", "_R"].iter().any(|prefix| name.starts_with(prefix)) {
        addr2line::demangle_auto(name, None).into_owned()
    } else {
        name.into_owned()
    }
}

/// A file with code.
struct Module {
    /// Where parts of the file stand in memory: first byte, bytes, address.
    segments: Vec<(u64, u64, u64)>,
    /// Functions that the file offers to others: first address, bytes, name; ascending.
    exported: Vec<(u64, u64, String)>,
    loader: Option<Loader>,
}

impl Module {
    fn open(path: &[u8]) -> Option<Self> {
        let path = Path::new(OsStr::from_bytes(path));
        let data = fs::read(path).ok()?;
        let file = object::File::parse(&*data).ok()?;
        let segments = file.segments().map(|segment| {
            let (begin, size) = segment.file_range();
            (begin, size, segment.address())
        });
        let symbols = file
            .dynamic_symbols()
            .filter(|symbol| symbol.kind() == SymbolKind::Text);
        let mut exported: Vec<(u64, u64, String)> = symbols
            .filter_map(|symbol| Some((symbol.address(), symbol.size(), symbol.name().ok()?.to_owned())))
            .collect();
        exported.sort_unstable();
        Some(Self {
            exported,
            segments: segments.collect(),
            loader: Loader::new(path).ok(),
        })
    }

    fn frames(&self, offset: u64) -> Vec<Frame> {
        let Some(address) = self.address(offset) else {
            return Vec::new();
        };
        let Some(loader) = &self.loader else {
            return Vec::new();
        };
        let mut frames = Vec::new();
        if let Ok(mut found) = loader.find_frames(address) {
            while let Ok(Some(frame)) = found.next() {
                let function = frame.function.as_ref().and_then(|name| name.raw_name().ok());
                let place = frame.location.as_ref();
                frames.push(Frame {
                    function: function.map(demangled),
                    file: place.and_then(|place| place.file).map(str::to_owned),
                    line: place.and_then(|place| place.line).filter(|&line| line > 0),
                });
            }
        }
        if frames.last().is_none_or(|frame| frame.function.is_none())
            && let Some(symbol) = loader.find_symbol(address).or_else(|| self.exported_at(address))
        {
            let function = Some(demangled(symbol.into()));
            match frames.last_mut() {
                Some(frame) => frame.function = function,
                None => frames.push(Frame {
                    function,
                    ..Frame::default()
                }),
            }
        }
        frames
    }

    /// The exported function that an address is in.
    fn exported_at(&self, address: u64) -> Option<&str> {
        let next = self.exported.partition_point(|(begin, ..)| *begin <= address);
        let (begin, size, name) = &self.exported[next.checked_sub(1)?];
        (address - begin < *size).then_some(name)
    }

    fn address(&self, offset: u64) -> Option<u64> {
        let mut segments = self.segments.iter();
        let (begin, _, address) = segments.find(|(begin, size, _)| (*begin..begin + size).contains(&offset))?;
        Some(address + (offset - begin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_mangled_names_are_demangled() {
        for (name, wanted) in [
            ("w", "w"),
            ("i", "i"),
            ("St", "St"),
            ("_start", "_start"),
            ("_ZN2kv3putEi", "kv::put(int)"),
            (
                "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
                "core::fmt::Write::write_fmt",
            ),
            ("_RNvC6_123foo3bar", "123foo::bar"),
        ] {
            assert_eq!(demangled(name.into()), wanted);
        }
    }
}
