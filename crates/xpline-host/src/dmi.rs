//! Memory modules, from the tables of the firmware (DMTF DSP0134, "SMBIOS Reference Specification", structure type 17).

use serde::Serialize;

/// A memory module in its slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Module {
    pub slot: String,
    pub kind: &'static str,
    pub bytes: u64,
    /// Million transfers a second.
    pub speed: Option<u16>,
    pub manufacturer: String,
    pub part: String,
}

/// The modules that are plugged in. What does not read as a table ends the search.
pub fn modules(tables: &[u8]) -> Vec<Module> {
    let mut found = vec![];
    let mut rest = tables;
    while let Some((structure, strings, after)) = split(rest) {
        if structure[0] == 17 {
            found.extend(module(structure, strings));
        }
        rest = after;
    }
    found
}

/// The first structure, its strings, and what follows.
fn split(tables: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let length = usize::from(*tables.get(1)?);
    if length < 4 || tables.len() < length {
        return None;
    }
    let (structure, rest) = tables.split_at(length);
    let end = rest.windows(2).position(|pair| pair == [0, 0])?;
    Some((structure, &rest[..end], &rest[end + 2..]))
}

fn module(structure: &[u8], strings: &[u8]) -> Option<Module> {
    let word = |at: usize| Some(u16::from_le_bytes(structure.get(at..at + 2)?.try_into().ok()?));
    let string = |at: usize| {
        let index = usize::from(*structure.get(at)?).checked_sub(1)?;
        let text = strings.split(|&byte| byte == 0).nth(index)?;
        Some(String::from_utf8_lossy(text).trim().to_string())
    };
    let bytes = match word(0x0c)? {
        0 | 0xffff => return None, // empty, or unknown
        0x7fff => {
            let size = structure.get(0x1c..0x20)?;
            u64::from(u32::from_le_bytes(size.try_into().ok()?) & 0x7fff_ffff) << 20
        }
        small if small & 0x8000 != 0 => u64::from(small & 0x7fff) << 10,
        megabytes => u64::from(megabytes) << 20,
    };
    let technology = structure.get(0x28).copied();
    let kind = match (structure.get(0x12)?, technology) {
        (_, Some(7)) => "Optane DC",
        (_, Some(4..=6)) => "NVDIMM",
        (0x18, _) => "DDR3",
        (0x1a, _) => "DDR4",
        (0x1b, _) => "LPDDR",
        (0x1c, _) => "LPDDR2",
        (0x1d, _) => "LPDDR3",
        (0x1e, _) => "LPDDR4",
        (0x20, _) => "HBM",
        (0x21, _) => "HBM2",
        (0x22, _) => "DDR5",
        (0x23, _) => "LPDDR5",
        (0x07, _) => "RAM",
        _ => "memory",
    };
    Some(Module {
        slot: string(0x10).unwrap_or_default(),
        kind,
        bytes,
        speed: word(0x20)
            .filter(|&speed| speed != 0)
            .or_else(|| word(0x15).filter(|&speed| speed != 0)),
        manufacturer: string(0x17).unwrap_or_default(),
        part: string(0x1a).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A module of 32 GiB DDR4-2666, as the tables hold it.
    fn table() -> Vec<u8> {
        let mut structure = vec![0; 0x28];
        (structure[0], structure[1]) = (17, 0x28);
        structure[0x0c..0x0e].copy_from_slice(&0x7fffu16.to_le_bytes());
        structure[0x1c..0x20].copy_from_slice(&(32u32 << 10).to_le_bytes());
        structure[0x10] = 1;
        structure[0x12] = 0x1a;
        structure[0x15..0x17].copy_from_slice(&2933u16.to_le_bytes());
        structure[0x17] = 2;
        structure[0x1a] = 3;
        structure[0x20..0x22].copy_from_slice(&2666u16.to_le_bytes());
        structure.extend(b"DIMM_A1\0Micron\x0036ASF4G72\0\0");
        structure
    }

    #[test]
    fn a_module_is_read() {
        let mut tables = vec![1, 4, 0, 0, 0, 0]; // a structure of another type, without strings
        tables.extend(table());
        let found = modules(&tables);
        let module = &found[0];
        assert_eq!(found.len(), 1);
        assert_eq!(
            (module.slot.as_str(), module.kind, module.bytes),
            ("DIMM_A1", "DDR4", 32 << 30)
        );
        assert_eq!((module.speed, module.manufacturer.as_str()), (Some(2666), "Micron"));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_do(mut tables in proptest::collection::vec(0u8.., 0..200), cut in 0usize..60) {
            modules(&tables);
            let mut real = table();
            real.truncate(cut);
            tables.extend(real);
            modules(&tables);
        }
    }
}
