//! What was mapped where, and when.

use crate::frame::{Epoch, Mapping};

/// The mappings of a process over time, so that an op is looked up as of when it happened.
///
/// ```
/// use xpline_wire::{AddressSpace, Mapping};
///
/// let mapping = Mapping {
///     epoch: 1, address: 0x10000, size: 0x4000, file: Some(0), offset: 0, shared: true, executable: false, traced: true,
/// };
/// let mut space = AddressSpace::default();
/// space.map(mapping);
/// space.unmap(2, 0x11000, 0x1000);
/// assert_eq!(space.find(1, 0x11008).map(|found| found.offset_of(0x11008)), Some(0x1008));
/// assert_eq!(space.find(2, 0x11008), None);
/// assert_eq!(space.find(2, 0x12008).map(|found| found.offset_of(0x12008)), Some(0x2008));
/// ```
#[derive(Clone, Debug, Default)]
pub struct AddressSpace {
    /// What stands now; none overlap.
    now: Vec<Mapping>,
    /// What stood once, and the epoch from which it did no more.
    gone: Vec<(Epoch, Mapping)>,
}

impl Mapping {
    /// Where in its file a byte of the mapping is.
    pub fn offset_of(&self, address: u64) -> u64 {
        self.offset.wrapping_add(address.wrapping_sub(self.address))
    }

    fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.address) < self.size
    }

    /// The part from `begin` to before `end`; not empty.
    fn part(&self, begin: u64, end: u64) -> Self {
        Self {
            address: begin,
            size: end - begin,
            offset: self.offset_of(begin),
            ..self.clone()
        }
    }
}

impl AddressSpace {
    /// A frame of kind `Map` has come.
    pub fn map(&mut self, mapping: Mapping) {
        self.unmap(mapping.epoch, mapping.address, mapping.size);
        let place = self.now.partition_point(|other| other.address < mapping.address);
        self.now.insert(place, mapping);
    }

    /// A frame of kind `Unmap` has come.
    pub fn unmap(&mut self, epoch: Epoch, address: u64, size: u64) {
        let end = address.saturating_add(size);
        let ends = |mapping: &Mapping| mapping.address.saturating_add(mapping.size);
        let first = self.now.partition_point(|mapping| ends(mapping) <= address);
        let last = first + self.now[first..].partition_point(|mapping| mapping.address < end);
        let mut left = Vec::new();
        for mapping in &self.now[first..last] {
            if mapping.address < address {
                left.push(mapping.part(mapping.address, address));
            }
            if ends(mapping) > end {
                left.push(mapping.part(end, ends(mapping)));
            }
        }
        self.gone
            .extend(self.now.splice(first..last, left).map(|mapping| (epoch, mapping)));
    }

    /// The mapping that held an address at an epoch.
    pub fn find(&self, epoch: Epoch, address: u64) -> Option<&Mapping> {
        let place = self.now.partition_point(|mapping| mapping.address <= address);
        let now = place.checked_sub(1).map(|place| &self.now[place]);
        now.filter(|mapping| mapping.contains(address) && mapping.epoch <= epoch)
            .or_else(|| {
                let gone = self.gone.iter().rev();
                gone.map(|(until, mapping)| (mapping.epoch..*until, mapping))
                    .find(|(epochs, mapping)| mapping.contains(address) && epochs.contains(&epoch))
                    .map(|(_, mapping)| mapping)
            })
    }

    /// Every thread has reached this epoch: what was gone by then is forgotten.
    pub fn forget(&mut self, epoch: Epoch) {
        self.gone.retain(|(until, _)| *until > epoch);
    }

    /// What stands now, in ascending order of address.
    pub fn mappings(&self) -> &[Mapping] {
        &self.now
    }
}
